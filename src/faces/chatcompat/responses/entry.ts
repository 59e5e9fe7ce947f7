import { encodeInput } from '#dialects/openai/responses/encode-input';
import type { ResponseBeingWritten } from '#dialects/openai/responses/encoder';
import { outputOf } from '#dialects/openai/responses/listed-items';
import { dialect, type ResponsesRequest } from '#dialects/openai/responses/wire';
import { fieldNames } from '#dialects/openai/responses/field-names';
import { clientField } from '#dialects/shared/field-names';
import { isGiven } from '#dialects/shared/read-fields';
import type { Part } from '#core/conversation';
import { isObject, own, textOf, type JsonObject } from '#core/json';
import type { FieldWords } from '../../answer.ts';
import type { Continuation } from './continuation.ts';
import type { Entry, StoredResponseBody } from './stored-body.ts';

interface Worded {
  readonly input?: ResponsesRequest['input'] | undefined;
  readonly text?: ResponsesRequest['text'] | undefined;
}

/**
 * The fields of a request as its client spelled them. Several items may be one turn: they are counted only where each is a turn.
 * @param said the turns of the input
 */
export function fieldWords({ input, text }: Worded, { said }: Pick<Continuation, 'said'>): Required<FieldWords> {
  const memberOf = (name: string) => (name === 'verbosity' && isGiven(text?.verbosity) ? 'text.verbosity' : name);
  return {
    memberOf,
    fieldOf(field, call) {
      const before = call.turns.length - said.length;
      const [, item, rest] = /^input\[(\d{1,9})\](.{0,200})$/.exec(field) ?? [];
      if (item === undefined) return memberOf(clientField(fieldNames, field, call, Array.isArray(input) && input.length === said.length ? before : null));
      // A provider of the same API counts the items of the stored conversation, too.
      const stored = call.turns.slice(0, before).filter(({ extra }) => own(extra, dialect)['.instructions'] !== true);
      const at = Number(item) - encodeInput(stored, new Set()).length;
      return Array.isArray(input) && at >= 0 && at < input.length ? `input[${at}]${rest}` : 'input';
    },
  };
}

/** Members of an answer that the client gets where it asks for them. */
type Included = Pick<ResponseBeingWritten, 'encrypted' | 'sources'>;

export const includedBy = ({ include }: Pick<ResponsesRequest, 'include'>): Included => ({
  encrypted: include?.includes('reasoning.encrypted_content') ?? false,
  sources: include?.includes('web_search_call.action.sources') ?? false,
});

/** The same of a response that is kept. */
export function includedIn({ run, response }: StoredResponseBody): Included {
  if (run) return includedBy(run.request);
  const items = outputOf(response);
  return {
    encrypted: items.some(({ encrypted_content: encrypted }) => encrypted !== undefined),
    sources: items.some(({ action }) => isObject(action) && action['sources'] !== undefined),
  };
}

/** A response that has ended. */
export interface Ended {
  readonly response: JsonObject;
  readonly answer: readonly Part[];
  /** That of the response as JSON, where it is there. */
  readonly text?: string;
}

/** A response that has ended, as it is kept. */
export function entryOf(userId: number, { previousId, said }: Pick<Continuation, 'previousId' | 'said'>, { response, answer, text }: Ended): Entry {
  return {
    userId,
    id: textOf(response['id']),
    ...(previousId === undefined ? {} : { previousId }),
    status: textOf(response['status']),
    items: said.length + outputOf(response).length,
    body: { response, said, answer },
    ...(text === undefined ? {} : { text: `{"response":${text},"said":${JSON.stringify(said)},"answer":${JSON.stringify(answer)}}` }),
  };
}

import { encodeInput } from '#dialects/openai/responses/encode-input';
import { outputOf } from '#dialects/openai/responses/listed-items';
import { dialect, type ResponsesRequest } from '#dialects/openai/responses/wire';
import { fieldNames } from '#dialects/openai/responses/field-names';
import { clientField } from '#dialects/shared/field-names';
import type { GenerateCall } from '#core/call';
import type { Part } from '#core/conversation';
import { own, textOf, type JsonObject } from '#core/json';
import type { Continuation } from './continuation.ts';
import type { Entry } from './stored-body.ts';

/** The fields of a request as its client spelled them. Several items may be one turn: they are counted only where each is a turn. @param said the turns of the input */
export const fieldsOf =
  (input: ResponsesRequest['input'] | undefined, { said }: Pick<Continuation, 'said'>) =>
  (field: string, call: GenerateCall): string => {
    const before = call.turns.length - said.length;
    const [, item, rest] = /^input\[(\d{1,9})\](.{0,200})$/.exec(field) ?? [];
    if (item === undefined) return clientField(fieldNames, field, call, Array.isArray(input) && input.length === said.length ? before : null);
    // A provider of the same API counts the items of the stored conversation, too.
    const stored = call.turns.slice(0, before).filter(({ extra }) => own(extra, dialect)['.instructions'] !== true);
    const at = Number(item) - encodeInput(stored, new Set()).length;
    return Array.isArray(input) && at >= 0 && at < input.length ? `input[${at}]${rest}` : 'input';
  };

export const givesEncrypted = ({ include }: ResponsesRequest): boolean => include?.includes('reasoning.encrypted_content') ?? false;

/** A response that has ended, as it is kept. */
export function entryOf(userId: number, { previousId, said }: Pick<Continuation, 'previousId' | 'said'>, response: JsonObject, answer: readonly Part[]): Entry {
  return {
    userId,
    id: textOf(response['id']),
    ...(previousId === undefined ? {} : { previousId }),
    status: textOf(response['status']),
    items: said.length + outputOf(response).length,
    body: { response, said, answer },
  };
}

import { outputOf } from '#dialects/openai/responses/listed-items';
import type { ResponsesRequest } from '#dialects/openai/responses/wire';
import { spelling } from '#dialects/shared/read-fields';
import type { Part } from '#core/conversation';
import { textOf, type JsonObject } from '#core/json';
import type { Continuation } from './continuation.ts';
import type { Entry } from './stored-body.ts';

/** The fields of a request as its client spelled them. */
export const fieldOf = spelling({ turns: 'input', schema: 'text.format.schema', parameters: 'parameters' });

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

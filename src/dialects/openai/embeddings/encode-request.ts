import type { EmbedCall } from '#core/embed';
import type { JsonObject } from '#core/json';

/** Call → an embeddings request. @param model its upstream name */
export function encodeRequest({ inputs, dimensions, encoding, user }: EmbedCall, model: string): JsonObject {
  return {
    model,
    input: inputs.length === 1 ? inputs[0]! : inputs,
    ...(encoding === 'float' ? {} : { encoding_format: encoding }), // what everybody sends unasked; others than OpenAI may not know the field
    ...(dimensions === undefined ? {} : { dimensions }),
    ...(user === undefined ? {} : { user }),
  };
}

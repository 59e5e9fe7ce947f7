import type { EmbedCall } from '#core/embed';
import { Fault } from '#core/fault';
import { withoutPassthrough } from '#core/passthrough';
import type { Decode } from '#kit/tokens/index';

/** Are the inputs of a call tokens? Clients such as LangChain send those of OpenAI's embedding models to every model. */
export const hasTokens = ({ inputs }: EmbedCall): boolean => typeof inputs[0] !== 'string';

/** The call with texts in place of its tokens, for a model that reads no tokens, or others. @throws Fault `invalid` where they are not of that vocabulary */
export function withTexts(call: EmbedCall, decode: Decode): EmbedCall & { readonly inputs: readonly string[] } {
  const inputs = call.inputs.map((input, at) => {
    if (typeof input === 'string') return input;
    try {
      return decode(input);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      const field = call.inputs.length === 1 ? 'input' : `input[${at}]`;
      throw new Fault('invalid', `${field} must be text, or tokens of cl100k_base.`, { field, cause: error });
    }
  });
  return { ...withoutPassthrough(call), inputs };
}

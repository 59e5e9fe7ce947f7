import { checked } from '#kit/json/check';
import type { JsonObject } from '#core/json';
import { invalid, bodyFault } from '../../shared/read-fields.ts';
import { decodeRequest as decodeChat } from '../chat/decode-request.ts';
import { CompletionRequest } from './wire.ts';

const check = checked(CompletionRequest, bodyFault);

/**
 * A completion request → call: the prompt is what the user says in a chat.
 *
 * @param body parsed JSON
 * @returns `usageWanted`: did the client ask for the usage chunk of a stream?
 * @throws Fault `invalid` for what cannot be asked in a chat
 */
export const decodeRequest = (body: unknown): Omit<ReturnType<typeof decodeChat>, 'asItCame'> => decodeChat(asChat(body));

/** The body of a chat request that asks the same. */
function asChat(body: unknown): JsonObject {
  const { prompt, echo, suffix, logprobs, best_of: best, ...others } = check(body) as CompletionRequest & JsonObject;
  const text = typeof prompt === 'string' ? prompt : prompt[0]!;
  if (echo) throw invalid('echo', 'must be false: the prompt is not repeated here');
  if (suffix) throw invalid('suffix', 'cannot be honoured: a chat model goes on at the end only');
  if (typeof logprobs === 'number') throw invalid('logprobs', 'cannot be honoured here: ask /chat/completions for them');
  if (typeof best === 'number' && best !== (others.n ?? 1)) throw invalid('best_of', 'must be as n: no answers are made to be thrown away');
  return { ...others, messages: [{ role: 'user', content: text }] };
}

import { checked } from '#kit/json/check';
import { isObject, type JsonObject } from '#core/json';
import { invalid } from '#core/fault';
import { bodyFault } from '../../shared/read-fields.ts';
import { decodeRequest as decodeChat } from '../chat/decode-request.ts';
import { CompletionRequest } from './wire.ts';

const check = checked(CompletionRequest, bodyFault);

/**
 * A completion request → call: the prompt becomes the user message of a chat.
 * @param body parsed JSON
 * @returns `usageWanted`: did the client ask for the usage chunk of a stream?
 * @throws Fault `invalid`, also for what a chat request cannot express
 */
export const decodeRequest = (body: unknown): Omit<ReturnType<typeof decodeChat>, 'asItCame'> => decodeChat(asChat(body));

function asChat(body: unknown): JsonObject {
  if (isObject(body)) checkPrompt(body['prompt']);
  const { prompt, echo, suffix, logprobs, best_of: best, ...others } = check(body) as CompletionRequest & JsonObject;
  const text = typeof prompt === 'string' ? prompt : prompt[0]!;
  if (echo) throw invalid('echo', 'must be false: echoing the prompt is not supported');
  if (suffix) throw invalid('suffix', 'is not supported: a chat model can only continue a text at its end');
  if (typeof logprobs === 'number') throw invalid('logprobs', 'is not supported here: use /chat/completions');
  if (typeof best === 'number' && best !== (others.n ?? 1)) throw invalid('best_of', 'must equal n: answers are not generated to be discarded');
  return { ...others, messages: [{ role: 'user', content: text }] };
}

function checkPrompt(prompt: unknown): void {
  if (!Array.isArray(prompt)) return;
  if (prompt.some((one) => typeof one === 'number' || Array.isArray(one))) throw invalid('prompt', 'must be text: prompts of tokens are not read');
  if (prompt.length > 1) throw invalid('prompt', 'must be one text: send a request for each');
}

import type { GenerateCall } from '#core/call';
import type { Sampling } from '#core/sampling';
import type { Json } from '#core/json';
import type { EncodedRequest } from '../dialect.ts';
import { textCall, textOfTurn } from '../shared/text-call.ts';
import type { RequestOptions } from './request-options.ts';
import type { Quirks } from './quirks.ts';
import { dialect } from './wire.ts';

const sampled: ReadonlySet<keyof Sampling> = new Set(['temperature', 'topP', 'topK', 'maxTokens']);

/** A call that is nothing but texts → the same request that `encodeRequest` makes of it; undefined for any other call. */
export function plainRequest(call: GenerateCall, model: string, { without }: Quirks, { caching }: RequestOptions): EncodedRequest | undefined {
  const { temperature = 1, maxTokens } = call.sampling;
  if (maxTokens === undefined || temperature > 1 || caching === 'auto' || (without && without.length > 0)) return undefined;
  const plain = textCall(call, dialect, sampled);
  if (!plain) return undefined;
  const { system, turns, sampling } = plain;
  const body: Record<string, Json> = {
    model,
    max_tokens: maxTokens,
    messages: turns.map((turn) => ({ role: turn.role === 'user' ? 'user' : 'assistant', content: textOfTurn(turn) })),
  };
  if (system !== undefined) body['system'] = system;
  if (sampling.temperature !== undefined) body['temperature'] = temperature;
  if (sampling.topP !== undefined) body['top_p'] = sampling.topP;
  if (sampling.topK !== undefined) body['top_k'] = sampling.topK;
  if (call.stream) body['stream'] = true;
  return { body, ignored: [] };
}

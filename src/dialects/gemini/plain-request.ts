import type { GenerateCall } from '#core/call';
import type { Sampling } from '#core/sampling';
import { isEmpty, type Json } from '#core/json';
import type { EncodedRequest } from '../dialect.ts';
import { textCall, textOfTurn } from '../shared/text-call.ts';
import { dialect } from './wire.ts';

const sampled: ReadonlySet<keyof Sampling> = new Set(['temperature', 'topP', 'topK', 'maxTokens']);

/** A call that is nothing but texts → the same request that `encodeRequest` makes of it; undefined for any other call. */
export function plainRequest(call: GenerateCall): EncodedRequest | undefined {
  const plain = textCall(call, dialect, sampled);
  if (!plain) return undefined;
  const { system, turns, sampling } = plain;
  const contents = turns.map((turn) => ({ role: turn.role, parts: [{ text: textOfTurn(turn) }] }));
  const body: Record<string, Json> = system === undefined ? { contents } : { systemInstruction: { role: 'user', parts: [{ text: system }] }, contents };
  const config: Record<string, Json> = {};
  if (sampling.temperature !== undefined) config['temperature'] = sampling.temperature;
  if (sampling.topP !== undefined) config['topP'] = sampling.topP;
  if (sampling.topK !== undefined) config['topK'] = sampling.topK;
  if (sampling.maxTokens !== undefined) config['maxOutputTokens'] = sampling.maxTokens;
  if (!isEmpty(config)) body['generationConfig'] = config;
  return { body, ignored: [] };
}

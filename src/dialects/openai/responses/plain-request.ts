import type { GenerateCall } from '#core/call';
import type { Sampling } from '#core/sampling';
import { own, type Extra, type Json, type JsonObject } from '#core/json';
import type { EncodedRequest } from '../../dialect.ts';
import { textCall, textOfTurn } from '../../shared/text-call.ts';
import type { Quirks } from './quirks.ts';
import { dialect } from './wire.ts';

const sampled: ReadonlySet<keyof Sampling> = new Set(['temperature', 'topP', 'maxTokens']);

const isInstructions = (extra: Extra | undefined): boolean => own(extra, dialect)['.instructions'] === true;

/** A call that is nothing but texts → the same request that `encodeRequest` makes of it; undefined for any other call. */
export function plainRequest(call: GenerateCall, model: string, { encrypted, atLeast16 }: Quirks): EncodedRequest | undefined {
  if (atLeast16) return undefined;
  const plain = textCall(call, dialect, sampled, isInstructions);
  if (!plain) return undefined;
  const { system, turns, sampling } = plain;
  const body: Record<string, Json> = { model };
  if (system !== undefined) body['instructions'] = system;
  body['input'] = turns.map((turn): JsonObject => {
    const text = textOfTurn(turn);
    return turn.role === 'user'
      ? { type: 'message', role: 'user', content: [{ type: 'input_text', text }] }
      : { type: 'message', role: 'assistant', content: [{ type: 'output_text', text, annotations: [] }] };
  });
  if (sampling.temperature !== undefined) body['temperature'] = sampling.temperature;
  if (sampling.topP !== undefined) body['top_p'] = sampling.topP;
  if (sampling.maxTokens !== undefined) body['max_output_tokens'] = sampling.maxTokens;
  if (encrypted !== false) body['include'] = ['reasoning.encrypted_content'];
  body['store'] = false;
  if (call.stream) body['stream'] = true;
  return { body, ignored: [] };
}

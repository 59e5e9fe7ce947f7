import type { GenerateCall } from '#core/call';
import { isDefault } from '#core/dropped-extra';
import { own, type Json } from '#core/json';
import { anyThinking, thinkingOf, type RefusedFields } from '../thinking.ts';
import type { SentEffort } from './efforts.ts';
import { dialect } from './wire.ts';

/** Fields that a translated call may go without: their values in a call, and the value that says the same as none. */
const optional: Readonly<Record<string, readonly [value: (call: GenerateCall) => unknown, neutral?: Json]>> = {
  temperature: [({ sampling }) => sampling.temperature, 1],
  top_p: [({ sampling }) => sampling.topP, 1],
  top_k: [({ sampling }) => sampling.topK],
  frequency_penalty: [({ sampling }) => sampling.frequencyPenalty, 0],
  presence_penalty: [({ sampling }) => sampling.presencePenalty, 0],
  logit_bias: [({ sampling }) => sampling.logitBias],
  stop: [({ sampling }) => sampling.stop],
  seed: [({ sampling }) => sampling.seed],
  n: [({ sampling }) => sampling.candidates, 1],
  logprobs: [({ sampling }) => sampling.logprobs],
  top_logprobs: [({ sampling }) => sampling.logprobs],
  user: [({ extra, endUser }) => own(extra, dialect)['user'] ?? endUser],
  parallel_tool_calls: [({ parallelToolCalls }) => parallelToolCalls, true],
  ...Object.fromEntries(
    'metadata moderation prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier service_tier verbosity'
      .split(' ')
      .map((name) => [name, [({ extra }: GenerateCall) => own(extra, dialect)[name]]]),
  ),
};

/** Removes from the body of a translated call what the model refuses beside the effort that is sent. */
export function removeRefused(body: Record<string, Json>, refused: RefusedFields, { effort }: SentEffort, ignored: Set<string>): void {
  for (const [name, kinds] of Object.entries(refused)) {
    const value = body[name];
    if (value === undefined || !kinds.includes(thinkingOf(effort))) continue;
    delete body[name];
    if (name === 'logprobs') delete body['top_logprobs'];
    if (value !== optional[name]?.[1] && !isDefault(name, value))
      ignored.add(`${name}: this model does not take it${kinds.includes('none') ? '' : ' while it thinks'}.`);
  }
}

/** Fields about how tokens are drawn: models refuse them while they think. */
const drawing: ReadonlySet<string> = new Set('temperature top_p top_k frequency_penalty presence_penalty logit_bias stop logprobs top_logprobs'.split(' '));

/** Was the field sent, and can the call go without it? */
export function isRefusable(call: GenerateCall, name: string, refused: RefusedFields = {}, { effort }: SentEffort): boolean {
  if (!Object.hasOwn(optional, name) || refused[name]?.includes(thinkingOf(effort))) return false;
  return optional[name]![0](call) !== undefined;
}

/** The refused fields with one more, which was refused beside this effort. */
export function withRefused(refused: RefusedFields = {}, name: string, { effort }: SentEffort): RefusedFields {
  const kinds = drawing.has(name) ? [...(refused[name] ?? []), thinkingOf(effort)] : anyThinking;
  return { ...refused, [name]: kinds };
}

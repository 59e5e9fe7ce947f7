import type { Usage } from '#core/event';
import { isEmpty, isObject, own, type JsonObject } from '#core/json';
import { atTier, carriedUsage, usageFrom, unknownTier, writtenIn, type Served } from '../usage.ts';
import { isCount } from '../../shared/read-fields.ts';
import { dialect } from './wire.ts';

/** @returns undefined where the provider's counts are missing or impossible: the caller then estimates */
export function usageOf(value: unknown, served: Served = unknownTier): Usage | undefined {
  if (!isObject(value)) return undefined;
  const {
    input_tokens: input,
    output_tokens: output,
    total_tokens: _total,
    input_tokens_details: prompt,
    output_tokens_details: completion,
    ...others
  } = value;
  if (!isCount(input) || !isCount(output)) return undefined;
  const { cached_tokens: cached, cache_write_tokens: written, ...details } = isObject(prompt) ? prompt : {};
  const { reasoning_tokens: thought, ...completionOthers } = isObject(completion) ? completion : {};
  const carried = carriedUsage(others, { input_tokens_details: details, output_tokens_details: completionOthers });
  const usage = usageFrom({ input, output, cached, written: written === 0 ? undefined : written, thought }, isEmpty(carried) ? {} : { [dialect]: carried });
  return atTier(usage, served);
}

export function encodeUsage({ input, output, cached, cacheWrite, cacheWrite1h, thought, extra }: Usage): JsonObject {
  const { input_tokens_details: prompt, output_tokens_details: completion, ...others } = own(extra, dialect);
  return {
    input_tokens: input,
    input_tokens_details: { ...(prompt as JsonObject | undefined), cache_write_tokens: writtenIn(cacheWrite, cacheWrite1h) ?? 0, cached_tokens: cached ?? 0 },
    output_tokens: output,
    output_tokens_details: { ...(completion as JsonObject | undefined), reasoning_tokens: thought ?? 0 },
    total_tokens: input + output,
    ...others,
  };
}

import type { Usage } from '#core/event';
import { isEmpty, isObject, own, type Json, type JsonObject } from '#core/json';
import { atTier, carriedUsage, usageFrom, unknownTier, writtenIn, type Served } from '../usage.ts';
import { audioIn } from '../../shared/audio-tokens.ts';
import { isCount } from '../../shared/read-fields.ts';
import { dialect } from './wire.ts';

/** @returns undefined where the provider's counts are missing or impossible: the caller then estimates */
export function usageOf(value: unknown, served: Served = unknownTier): Usage | undefined {
  if (!isObject(value)) return undefined;
  const {
    prompt_tokens: input,
    completion_tokens,
    total_tokens: total,
    prompt_tokens_details: prompt,
    completion_tokens_details: completion,
    ...others
  } = value;
  if (!isCount(input) || !isCount(completion_tokens)) return undefined;
  // Moonshot and DeepSeek count them beside the others: https://platform.moonshot.ai/docs/api/chat, https://api-docs.deepseek.com/guides/kv_cache
  const {
    cached_tokens: cached = value['cached_tokens'] ?? value['prompt_cache_hit_tokens'],
    cache_write_tokens: written,
    ...promptOthers
  } = isObject(prompt) ? prompt : {};
  const { reasoning_tokens: thought, ...completionOthers } = isObject(completion) ? completion : {};
  const isSeparate = isCount(thought) && thought > 0 && total === input + completion_tokens + thought; // xAI excludes thoughts from the completion tokens
  const output = isSeparate ? completion_tokens + thought : completion_tokens;
  const carried = carriedUsage(others, { prompt_tokens_details: promptOthers, completion_tokens_details: completionOthers });
  const usage = usageFrom({ input, output, cached, written, thought }, isEmpty(carried) ? {} : { [dialect]: carried });
  return atTier({ ...usage, ...audioIn(promptOthers['audio_tokens'], completionOthers['audio_tokens'], usage) }, served);
}

export function encodeUsage({ input, output, cached, cacheWrite, cacheWrite1h, thought, audioInput, audioOutput, extra }: Usage): JsonObject {
  const { prompt_tokens_details: prompt, completion_tokens_details: completion, ...others } = own(extra, dialect);
  const usage: Record<string, Json> = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  const written = writtenIn(cacheWrite, cacheWrite1h);
  if ([prompt, cached, written, audioInput].some((one) => one !== undefined))
    usage['prompt_tokens_details'] = {
      ...(cached === undefined ? {} : { cached_tokens: cached }),
      ...(written === undefined ? {} : { cache_write_tokens: written }),
      ...(prompt as JsonObject | undefined),
      ...(audioInput === undefined ? {} : { audio_tokens: audioInput }), // of all rounds of an answer, of which the last has the others
    };
  if ([completion, thought, audioOutput].some((one) => one !== undefined))
    usage['completion_tokens_details'] = {
      ...(thought === undefined ? {} : { reasoning_tokens: thought }),
      ...(completion as JsonObject | undefined),
      ...(audioOutput === undefined ? {} : { audio_tokens: audioOutput }),
    };
  return { ...usage, ...others };
}

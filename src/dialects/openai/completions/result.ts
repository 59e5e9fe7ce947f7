import { shownIn } from '#core/shown-media';
import type { GenerateResult } from '#core/fold';
import type { JsonObject } from '#core/json';
import { finishReasonOf, type Identity } from '../chat/encode-answer.ts';
import { encodeUsage } from '../chat/usage.ts';

/** A whole answer → a completion. This API has text only: everything else is dropped. */
export function encodeResult({ started, candidates, usage }: GenerateResult, { id, created }: Identity): JsonObject {
  const choices = candidates.map(({ parts, reason, raw }, index) => ({
    index,
    text: shownIn(parts),
    logprobs: null,
    finish_reason: finishReasonOf(reason, raw),
  }));
  return { id, object: 'text_completion', created, model: started.model, choices, ...(usage ? { usage: encodeUsage(usage) } : {}) };
}

import type { GenerateResult } from '#core/fold';
import { own, textOf, type JsonObject } from '#core/json';
import { itemId, messageItem, outputText } from './encode-items.ts';
import type { ResponseBeingWritten } from './encoder.ts';
import { encodeUsage } from './usage.ts';
import { dialect } from './wire.ts';

/** An answer that is nothing but a text → the same response that the encoder makes of its events; undefined for any other. */
export function plainResponse({ started, candidates, usage }: GenerateResult, { response, now }: ResponseBeingWritten): JsonObject | undefined {
  const [only] = candidates;
  if (only?.reason !== 'stop' || only.logprobs || only.parts.length !== 1) return undefined;
  const [part] = only.parts;
  if (part!.type !== 'text' || part!.text === '' || part!.extra || part!.citations) return undefined;
  const item = messageItem(itemId(textOf(response['id']), 'message', 0), 'completed', [outputText(part!.text, [], [])]);
  return {
    ...response,
    model: started.model,
    status: 'completed',
    ...own(only.extra, dialect),
    completed_at: now(),
    output: [item],
    usage: usage ? encodeUsage(usage) : null,
    incomplete_details: null,
  };
}

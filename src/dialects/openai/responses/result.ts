import type { Part } from '#core/conversation';
import type { FinishReason, GenerateEvent } from '#core/event';
import type { GenerateResult } from '#core/fold';
import { isObject, textOf, type JsonObject } from '#core/json';
import { reader } from './decode-answer.ts';
import { Encoder, type ResponseBeingWritten } from './encoder.ts';
import { textAnswer } from './text-answer.ts';
import { noFrame } from './output-items.ts';
import { plainResponse } from './plain-response.ts';
import { usageOf } from './usage.ts';

/** A whole response ↔ events and results. */

export const decodeResult = (body: unknown, model: string, ignored: readonly string[] = []): readonly GenerateEvent[] =>
  textAnswer(body, model, ignored) ?? reader(model, ignored).whole(body);

/** A whole answer → the response object, encoded as a stream of one event per part. */
export function encodeResult(result: GenerateResult, response: ResponseBeingWritten): JsonObject {
  const plain = plainResponse(result, response);
  if (plain) return plain;
  const encoder = new Encoder({ ...response, frame: noFrame });
  for (const event of eventsOf(result)) encoder.encode(event);
  encoder.finish();
  return encoder.response;
}

/** A stored response that has ended → the events that it was encoded from, one per part. @param answer the parts of its answer */
export function eventsOfResponse(response: JsonObject, answer: readonly Part[]): Generator<GenerateEvent> {
  const { model, usage, incomplete_details: details } = response;
  const why = isObject(details) ? textOf(details['reason']) : '';
  const counted = usageOf(usage);
  return eventsOf({
    started: { type: 'started', model: textOf(model), ignored: [] },
    candidates: [{ parts: answer, reason: reasons[why] ?? 'stop', raw: '' }],
    ...(counted ? { usage: counted } : {}),
  });
}

const reasons: Readonly<Record<string, FinishReason>> = { max_output_tokens: 'length', content_filter: 'refused' };

/** The events of a whole answer, one per part. */
function* eventsOf({ started, candidates, usage }: GenerateResult): Generator<GenerateEvent> {
  yield started;
  const [first] = candidates;
  const { parts, reason, raw, logprobs, extra } = first ?? { parts: [], reason: 'stop', raw: '' };
  const words = parts.findIndex(({ type }) => type === 'text');
  let call = 0;
  for (const [at, part] of parts.entries()) {
    switch (part.type) {
      case 'text':
        yield { ...part, candidate: 0, ...(at === words && logprobs ? { logprobs } : {}) };
        break;
      case 'thought':
      case 'refusal':
        yield { ...part, candidate: 0 };
        break;
      case 'tool-call':
        yield { ...part, candidate: 0, call: call++ };
        break;
      case 'media':
      case 'search':
      case 'foreign':
        yield { type: 'part', candidate: 0, part };
        break;
      case 'tool-result':
        break; // no answer has one
      default:
        part satisfies never;
    }
  }
  yield { type: 'finished', candidate: 0, reason, raw, ...(extra ? { extra } : {}) };
  if (usage) yield { type: 'usage', usage };
}

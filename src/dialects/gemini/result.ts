import type { Part } from '#core/conversation';
import type { FinishReason, GenerateEvent } from '#core/event';
import type { GenerateResult } from '#core/fold';
import { own, type JsonObject } from '#core/json';
import { cutPartIn } from '../shared/arguments.ts';
import { reader } from './decode-answer.ts';
import { callPart, candidatesIn, endedCandidate, isHidden, mediaPart, tailOf, thoughtPart, usageOrNone } from './encode-answer.ts';
import type { ContentAnswer } from './encoder.ts';
import { malformed } from './faults.ts';
import { Grounding, searchOf } from './grounding.ts';
import { dialect } from './wire.ts';

/** A whole answer ↔ events and results. */

/** @param body parsed JSON: an answer, or the array of its chunks */
export function decodeResult(body: unknown, model: string, ignored: readonly string[] = []): readonly GenerateEvent[] {
  const answer = reader(model, ignored, { whole: !Array.isArray(body), quotable: Infinity });
  const events = (Array.isArray(body) ? (body as readonly unknown[]) : [body]).flatMap((chunk) => answer.take(chunk));
  if (!answer.isFinished()) throw malformed();
  return [...events, ...answer.close()];
}

/** @param answer its id is used unless its upstream spoke this wire and sent one itself */
export function encodeResult({ started, candidates, usage }: GenerateResult, { id, hidesThoughts }: Pick<ContentAnswer, 'id' | 'hidesThoughts'>): JsonObject {
  const shownIn = (parts: readonly Part[], reason: FinishReason) => {
    const cut = cutPartIn(parts, reason);
    return parts.filter((part) => part !== cut && !(hidesThoughts && part.type === 'thought' && isHidden(part)));
  };
  const said = candidates.length > 0 ? candidates : [{ parts: [], reason: 'stop' as const, raw: '' }];
  return {
    ...candidatesIn(
      said.map((one, candidate) => ({ ...one, candidate })),
      ({ parts, logprobs, ...ending }) => ({
        ...groundingOf(parts, own(ending.extra, dialect)),
        ...endedCandidate(ending, shownIn(parts, ending.reason).flatMap(partsOf), logprobs),
      }),
    ),
    usageMetadata: usageOrNone(usage),
    ...tailOf(started, id),
  };
}

function groundingOf(parts: readonly Part[], carried: JsonObject): { readonly groundingMetadata?: JsonObject } {
  if (!parts.some((part) => searchOf(part) || (part.type === 'text' && part.citations))) return {};
  const grounding = new Grounding({ left: Infinity });
  for (const part of parts) {
    const search = searchOf(part);
    if (search) grounding.search(search);
    else if (part.type === 'text') grounding.text(part.text, part.citations ?? []);
  }
  return grounding.metadata(carried);
}

function partsOf(part: Part): JsonObject | readonly JsonObject[] {
  switch (part.type) {
    case 'text': {
      const carried = own(part.extra, dialect);
      return part.text === '' && Object.keys(carried).length === 0 ? [] : [{ text: part.text, ...carried }];
    }
    case 'refusal':
      return [{ text: part.text }];
    case 'thought':
      return [thoughtPart(part)];
    case 'tool-call':
      return [callPart(part)];
    case 'media':
      return mediaPart(part) ?? [];
    case 'foreign':
      return part.dialect === dialect ? [part.value] : [];
    case 'search': // part of the candidate's grounding metadata
    case 'tool-result': // no answer has one
      return [];
    default:
      return part satisfies never;
  }
}

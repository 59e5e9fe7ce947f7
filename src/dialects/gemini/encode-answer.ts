import type { MediaPart } from '#core/conversation';
import type { FinishReason, Started, TokenLogprob, Usage } from '#core/event';
import { own, type Extra, type JsonObject } from '#core/json';
import { argsOf } from './encode-contents.ts';
import { encodeLogprobs } from './logprobs.ts';
import { encodeUsage } from './usage.ts';
import { dialect } from './wire.ts';

/** What streams and whole answers have in common. */

const finishWords: Readonly<Record<FinishReason, string>> = { stop: 'STOP', length: 'MAX_TOKENS', tool: 'STOP', refused: 'SAFETY' };

/** Words of this wire have capitals, other wires' have none. */
const isOwnWord = (raw: string) => /^[A-Z][A-Z_]{1,40}$/.test(raw);

/** What every chunk says of the answer as a whole. @param id unless its upstream spoke this wire and said so itself */
export function tailOf({ model, extra }: Started, id: string): JsonObject {
  const { responseId, ...others } = own(extra, dialect);
  return { modelVersion: model, responseId: responseId ?? id, ...others };
}

export interface Ending {
  readonly candidate: number;
  readonly reason: FinishReason;
  readonly raw: string;
  readonly extra?: Extra | undefined;
}

/** A candidate that has ended. */
export function endedCandidate({ candidate, reason, raw, extra }: Ending, parts: readonly JsonObject[], logprobs?: readonly TokenLogprob[]): JsonObject {
  return {
    content: { parts, role: 'model' },
    finishReason: isOwnWord(raw) ? raw : finishWords[reason],
    index: candidate,
    safetyRatings: [],
    ...(logprobs ? { logprobsResult: encodeLogprobs(logprobs) } : {}),
    ...own(extra, dialect),
  };
}

/** Always there, with every member that a client counts on. */
export const usageOrNone = (usage: Usage | undefined): JsonObject => encodeUsage(usage ?? { input: 0, output: 0, source: 'estimated' });

/** Arguments that are not a JSON object (truncated ones, for example) are wrapped in one as text. */
export function callPart({ id, name, json, extra }: { readonly id: string; readonly name: string; readonly json: string; readonly extra?: Extra }): JsonObject {
  const { '.unnamed': unnamed, ...carried } = own(extra, dialect);
  return { functionCall: { ...(unnamed ? {} : { id }), name, args: argsOf(json) ?? { arguments: json } }, ...carried };
}

/** @returns undefined for a piece of a sound that has no sound in it, but its transcript */
export function mediaPart({ mediaType = 'application/octet-stream', base64, url, extra }: MediaPart): JsonObject | undefined {
  if (base64 === '') return undefined;
  const carried = own(extra, dialect);
  return base64 === undefined
    ? { fileData: { mimeType: mediaType, fileUri: url ?? '' }, ...carried }
    : { inlineData: { mimeType: mediaType, data: base64 }, ...carried };
}

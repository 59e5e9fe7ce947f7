import type { MediaPart } from '#core/conversation';
import type { FinishReason, Started, TokenLogprob, Usage } from '#core/event';
import { own, type Extra, type JsonObject } from '#core/json';
import { tokenOf } from '#core/thoughts';
import { writtenArguments } from '../shared/arguments.ts';
import { encodeLogprobs } from './logprobs.ts';
import { encodeUsage } from './usage.ts';
import { blockedPrompt, dialect } from './wire.ts';

/** Helpers that streams and whole answers share. */

const finishReasons: Readonly<Record<FinishReason, string>> = { stop: 'STOP', length: 'MAX_TOKENS', tool: 'STOP', refused: 'SAFETY' };

/** Finish reasons of this wire are upper case, those of other wires are not. */
const isOwnReason = (raw: string) => /^[A-Z][A-Z_]{1,40}$/.test(raw);

/** The members of the whole answer that every chunk repeats. @param id used unless its upstream spoke this wire and sent one itself */
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

export function endedCandidate({ candidate, reason, raw, extra }: Ending, parts: readonly JsonObject[], logprobs?: readonly TokenLogprob[]): JsonObject {
  return {
    content: { parts, role: 'model' },
    finishReason: isOwnReason(raw) ? raw : finishReasons[reason],
    index: candidate,
    safetyRatings: [],
    ...(logprobs ? { logprobsResult: encodeLogprobs(logprobs) } : {}),
    ...own(extra, dialect),
  };
}

/** The answers of those that ended; a prompt that was blocked has none, but the reason. */
export function candidatesIn<Any extends Ending>(endings: readonly Any[], encoded: (ending: Any) => JsonObject): JsonObject {
  const feedback = endings.length === 1 ? own(endings[0]!.extra, dialect)[blockedPrompt] : undefined;
  return feedback === undefined ? { candidates: endings.map(encoded) } : { promptFeedback: feedback };
}

/** The usage, which is always present with every member that clients rely on. */
export const usageOrNone = (usage: Usage | undefined): JsonObject => encodeUsage(usage ?? { input: 0, output: 0, source: 'estimated' });

/** Arguments that are not a JSON object are wrapped in one as text. */
export function callPart({ id, name, json, extra }: { readonly id: string; readonly name: string; readonly json: string; readonly extra?: Extra }): JsonObject {
  const { '.unnamed': unnamed, ...carried } = own(extra, dialect);
  return { functionCall: { ...(unnamed ? {} : { id }), name, args: writtenArguments(json) ?? { arguments: json } }, ...carried };
}

/** A thought. Where another wire's is shown, the gateway's own token is its signature. */
export function thoughtPart({ text, extra }: { readonly text: string; readonly extra?: Extra }): JsonObject {
  const carried = own(extra, dialect);
  const token = carried['thoughtSignature'] === undefined ? tokenOf(extra) : undefined;
  return { text, thought: true, ...carried, ...(token === undefined ? {} : { thoughtSignature: token }) };
}

/** Is it left out for a client that did not ask for thoughts? One that Gemini has signed is part of what the client must return. */
export const isHidden = ({ extra }: { readonly extra?: Extra }): boolean => own(extra, dialect)['thoughtSignature'] === undefined;

/** @returns undefined for a fragment of audio that has only a transcript */
export function mediaPart({ mediaType = 'application/octet-stream', base64, url, extra }: MediaPart): JsonObject | undefined {
  if (base64 === '') return undefined;
  const carried = own(extra, dialect);
  return base64 === undefined
    ? { fileData: { mimeType: mediaType, fileUri: url ?? '' }, ...carried }
    : { inlineData: { mimeType: mediaType, data: base64 }, ...carried };
}

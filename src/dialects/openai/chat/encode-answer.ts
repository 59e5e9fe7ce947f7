import type { Citation, MediaPart, ToolCallPart } from '#core/conversation';
import type { FinishReason, Started, ToolCallPiece } from '#core/event';
import { own, type Extra, type Json, type JsonObject } from '#core/json';
import { encodeMedia } from './media.ts';
import { dialect } from './wire.ts';

/** Helpers that chunks and whole answers share. */

/** The identity of an answer, unless its upstream spoke this wire and sent one itself. */
export interface Identity {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
}

/** The members before `choices`. `others` are only in the first chunk, or in the whole answer. */
export function headOf(started: Started, { id, created }: Identity, object: string): { readonly head: JsonObject; readonly others: JsonObject } {
  const { id: itsId, created: its, service_tier: tier, system_fingerprint: fingerprint, ...others } = own(started.extra, dialect);
  const head = {
    id: itsId ?? id,
    object,
    created: its ?? created,
    model: started.model,
    ...(tier === undefined ? {} : { service_tier: tier }),
    ...(fingerprint === undefined ? {} : { system_fingerprint: fingerprint }),
  };
  return { head, others };
}

const finishReasons: Readonly<Record<FinishReason, string>> = { stop: 'stop', length: 'length', tool: 'tool_calls', refused: 'content_filter' };
const ownReasons: ReadonlySet<string> = new Set([...Object.values(finishReasons), 'function_call']);

/** The upstream's own finish reason where it is one of this wire: a forced tool call ends with `stop` there. */
export const finishReasonOf = (reason: FinishReason, raw: string, isOlder = false): string => {
  const word = ownReasons.has(raw) ? raw : finishReasons[reason];
  return isOlder && word === 'tool_calls' ? 'function_call' : word;
};

export function encodeToolCall({ id, name, json, custom, extra }: Omit<ToolCallPart, 'type'>): JsonObject {
  const shared = own(extra, dialect);
  return custom ? { ...shared, id, type: 'custom', custom: { name, input: json } } : { ...shared, id, type: 'function', function: { name, arguments: json } };
}

export function encodeCallPiece(piece: ToolCallPiece): JsonObject {
  const { call: index, name, json, custom } = piece;
  if (name !== undefined) return { index, ...encodeToolCall({ ...piece, name }) };
  return custom ? { index, custom: { input: json } } : { index, function: { arguments: json } };
}

export const isOlderCall = ({ extra }: { readonly extra?: Extra }): boolean => own(extra, dialect)['.function_call'] === true;

/** Carried fields of the message and of the choice, which are sent at the end. */
export function finalMembers(extra: Extra | undefined): { readonly message: JsonObject; readonly refusalLogprobs: Json | undefined } {
  const { '.refusal_logprobs': refusalLogprobs, ...message } = own(extra, dialect);
  return { message, refusalLogprobs };
}

/** Audio is a message's `audio`, an image one of its `images` (OpenRouter's field, which OpenAI does not have). Other media are not supported. */
export function encodePart(part: MediaPart): { readonly audio: JsonObject } | { readonly images: readonly JsonObject[] } | undefined {
  if (part.kind === 'audio') {
    const said = part.transcript === undefined ? {} : { transcript: part.transcript };
    return { audio: { ...own(part.extra, dialect), data: part.base64 ?? '', ...said } };
  }
  const image = part.kind === 'image' ? encodeMedia(part) : undefined;
  return image && { images: [image] };
}

/** @param before code points of text before the part that has the citations */
export const urlCitations = (citations: readonly Citation[], before: number): readonly JsonObject[] =>
  citations.map(({ start, end, url, title }) => ({
    type: 'url_citation',
    url_citation: { start_index: before + start, end_index: before + end, url, title },
  }));

/** Was the part decoded from this wire? */
export const isOwn = (extra: Extra | undefined): boolean => extra?.[dialect] !== undefined;

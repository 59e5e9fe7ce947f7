import type { ForeignPart, MediaPart } from '#core/conversation';
import { own, type Json, type JsonObject } from '#core/json';
import { audioFormat, audioType, contentAt, dataOf } from '../../shared/read-fields.ts';
import { fileNameFor, typed } from '../file-name.ts';
import { isOrHasAddress } from '../foreign-address.ts';
import { dialect } from './wire.ts';

/** Images, audio and files of the chat completion wire ↔ media parts. Base64 text is extracted from data URLs and put back, never decoded. */

/** @returns undefined for a URL that is neither http(s) nor a data URL */
export function mediaOfImage(url: string): MediaPart | undefined {
  const inline = dataOf(url);
  if (inline) return { type: 'media', kind: 'image', ...inline };
  return /^(https?|data):/i.test(url) ? { type: 'media', kind: 'image', url } : undefined;
}

/** @throws Fault `invalid` for a URL that is neither http(s) nor a data URL */
export function mediaOfAudio(data: string, format: string, field: string): MediaPart {
  return { type: 'media', kind: 'audio', mediaType: audioType(format), ...(data.startsWith('data:') ? { base64: data } : contentAt(data, field)) };
}

/** The first characters of sounds in base64 that say their type. */
const soundMarks: readonly (readonly [RegExp, string])[] = [
  [/^UklGR/, 'audio/wav'],
  [/^(?:SUQz|\/\/[I-Po-v])/, 'audio/mpeg'],
  [/^\/\/[E-Hk-n]/, 'audio/aac'],
  [/^ZkxhQ/, 'audio/flac'],
  [/^T2dn/, 'audio/ogg'],
];

/** The media type of a sound in an answer, which does not say it. `pcm16`, in which OpenAI streams, has no mark. https://developers.openai.com/api/docs/guides/audio */
export const soundType = (base64: string): string => soundMarks.find(([mark]) => mark.test(base64))?.[1] ?? 'audio/L16;codec=pcm;rate=24000';

/** @throws as `mediaOfAudio` does */
export function mediaOfFile(source: { readonly data: string } | { readonly id: string }, name: string | undefined, field: string): MediaPart {
  const file = { type: 'media', kind: 'file', ...(name === undefined ? {} : { name }) } as const;
  if ('id' in source) return { ...file, fileId: source.id };
  return { ...file, ...typed(contentAt(source.data, field), name) };
}

/** Has a part that only this wire knows, such as `video_url`, an address that its provider may open? Data URLs have none. */
export const hasAddress = ({ dialect: of, value }: ForeignPart): boolean => of === dialect && isOrHasAddress(value);

/** A content part, or undefined where this wire does not support it. */
export function encodeMedia(part: MediaPart): JsonObject | undefined {
  const { kind, base64, mediaType, url, fileId, name, detail } = part;
  const inline = base64 === undefined ? undefined : mediaType === undefined ? base64 : `data:${mediaType};base64,${base64}`;
  const carried = own(part.extra, dialect);
  const whole = (type: string, inner: Record<string, Json>) => ({ ...carried, type, [type]: { ...(carried[type] as JsonObject | undefined), ...inner } });
  switch (kind) {
    case 'image': {
      const address = url ?? (mediaType === undefined && base64 !== undefined ? `data:image/png;base64,${base64}` : inline);
      return address === undefined ? undefined : whole('image_url', { url: address, ...(detail === undefined ? {} : { detail }) });
    }
    case 'audio':
      return base64 === undefined ? undefined : whole('input_audio', { data: base64, format: audioFormat(mediaType) });
    case 'file': {
      const data = inline ?? (url?.startsWith('data:') ? url : undefined);
      if (data === undefined && fileId === undefined) return undefined;
      const filename = name ?? (data === undefined ? undefined : fileNameFor(mediaType));
      return whole('file', { ...(data === undefined ? { file_id: fileId! } : { file_data: data }), ...(filename === undefined ? {} : { filename }) });
    }
    case 'video':
      return undefined;
    default:
      return kind satisfies never;
  }
}

import type { ForeignPart, MediaPart } from '#core/conversation';
import { own, rest, type Json, type JsonObject } from '#core/json';
import { missing } from '#core/fault';
import { audioFormat, audioType, contentAt, isGiven, mediaAt } from '../../shared/read-fields.ts';
import { fileNameFor, typed } from '../file-name.ts';
import { isOrHasAddress } from '../foreign-address.ts';
import { carriedAs, dialect, type WireContentPart } from './wire.ts';

/** Images, files and audio of the responses wire ↔ media parts. Base64 text is extracted from data URLs and put back, never decoded. */

type MediaContentPart = Extract<WireContentPart, { type: 'input_image' | 'input_file' | 'input_audio' }>;

/** @throws Fault `invalid` for a URL that is neither http(s) nor a data URL */
export function mediaOf(part: MediaContentPart, place: string): MediaPart {
  switch (part.type) {
    case 'input_image': {
      const { image_url: url, file_id: fileId, detail } = part as typeof part & { readonly detail?: unknown };
      const carried = { ...(typeof detail === 'string' ? { detail } : {}), ...carriedAs(rest(part, imageMembers)) };
      if (isGiven(url)) return { type: 'media', kind: 'image', ...mediaAt(url, `${place}.image_url`), ...carried };
      if (isGiven(fileId)) return { type: 'media', kind: 'image', fileId, ...carried };
      throw missing(`${place}.image_url`);
    }
    case 'input_file': {
      const { file_data: data, file_url: url, file_id: fileId, filename } = part;
      const file = { type: 'media', kind: 'file', ...(isGiven(filename) ? { name: filename } : {}), ...carriedAs(rest(part, fileMembers)) } as const;
      if (isGiven(data)) return { ...file, ...typed(contentAt(data, `${place}.file_data`), file.name) };
      if (isGiven(url)) return { ...file, ...mediaAt(url, `${place}.file_url`) };
      if (isGiven(fileId)) return { ...file, fileId };
      throw missing(`${place}.file_data`);
    }
    case 'input_audio': {
      const { data, format } = part.input_audio;
      const source = data.startsWith('data:') ? { base64: data } : contentAt(data, `${place}.input_audio.data`);
      return { type: 'media', kind: 'audio', mediaType: audioType(format), ...source };
    }
    default:
      return part satisfies never;
  }
}

/** Has an item that only this wire knows, such as `computer_call_output`, an address that its provider may open? */
export const hasAddress = ({ dialect: of, value }: ForeignPart): boolean => of === dialect && isOrHasAddress(value);

const imageMembers = new Set(['type', 'image_url', 'file_id', 'detail']);
const fileMembers = new Set(['type', 'file_data', 'file_url', 'file_id', 'filename']);

/** A content part, or undefined where this wire does not support it. */
export function encodeMedia({ kind, base64, mediaType, url, fileId, name, detail = 'auto', extra }: MediaPart): JsonObject | undefined {
  const carried = own(extra, dialect);
  const inline = base64 === undefined ? undefined : `data:${mediaType ?? (kind === 'image' ? 'image/png' : 'application/octet-stream')};base64,${base64}`;
  switch (kind) {
    case 'image': {
      const source: JsonObject | undefined =
        fileId !== undefined ? { file_id: fileId } : (url ?? inline) === undefined ? undefined : { image_url: url ?? inline! };
      return source && { ...carried, type: 'input_image', detail, ...source };
    }
    case 'file': {
      const source: Record<string, Json> = {};
      if (fileId !== undefined) source['file_id'] = fileId;
      else if (url !== undefined && !url.startsWith('data:')) source['file_url'] = url;
      else if (url !== undefined || inline !== undefined) source['file_data'] = url ?? inline!;
      else return undefined;
      const filename = name ?? (source['file_data'] === undefined ? undefined : fileNameFor(mediaType));
      return { ...carried, type: 'input_file', ...(filename === undefined ? {} : { filename }), ...source };
    }
    case 'audio':
      return base64 === undefined ? undefined : { type: 'input_audio', input_audio: { data: base64, format: audioFormat(mediaType) } };
    case 'video':
      return undefined;
    default:
      return kind satisfies never;
  }
}

import type { MediaPart } from '#core/conversation';
import { imageTypeOf } from '#kit/documents/image-type';

/** Describes an image, a sound or a file without interpreting its content: `a PNG image of 640 × 480 pixels, 12.3 KB`. A URL is mentioned, never fetched. */
export function describeMedia(part: MediaPart): string {
  const name = part.name ? ` “${part.name.slice(0, 100).toWellFormed()}”` : '';
  if (part.base64 === undefined)
    return `${article(wordsFor(part.mediaType, part.kind))}${name} ${part.url === undefined ? 'among the stored files' : from(part.url)}`;
  const bytes = bytesOf(part.base64);
  const picture = part.kind === 'image' ? pictureIn(part.base64) : undefined;
  const size = picture ? ` of ${picture.width} × ${picture.height} pixels` : '';
  return `${article(wordsFor(picture?.mediaType ?? part.mediaType, part.kind))}${name}${size}, ${readable(bytes)}`;
}

function wordsFor(mediaType: string | undefined, kind: MediaPart['kind']): string {
  const type = mediaType?.split('/')[1]?.split(';')[0]?.slice(0, 60).toUpperCase();
  const noun = { image: 'image', audio: 'sound', video: 'video', file: 'file' }[kind];
  return type ? `${type} ${noun}` : noun;
}

const article = (words: string) => (/^[aeio]|^(?:[AEFHILMNORSX](?![a-z]))/.test(words) ? `an ${words}` : `a ${words}`);

function from(url: string): string {
  const host = URL.canParse(url) ? new URL(url).hostname : '';
  return host ? `at ${host.slice(0, 100)}, which I do not fetch` : 'at an address that I do not fetch';
}

function bytesOf(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.max(0, Math.floor((base64.length * 3) / 4) - padding);
}

function readable(bytes: number): string {
  if (bytes < 1000) return bytes === 1 ? '1 byte' : `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

export interface Picture {
  readonly mediaType: string;
  readonly width: number;
  readonly height: number;
}

/** Reads type and size from the header of a PNG, JPEG, GIF or WebP: only a few bytes are decoded, at any offset. */
export function pictureIn(base64: string): Picture | undefined {
  const head = bytesAt(base64, 0, 32);
  const mediaType = imageTypeOf(head);
  if (mediaType === 'image/png' && head.length >= 24) return { mediaType, width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
  if (mediaType === 'image/gif' && head.length >= 10) return { mediaType, width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
  if (mediaType === 'image/webp' && head.length >= 30) return webp(head, head.toString('latin1', 12, 16));
  return mediaType === 'image/jpeg' ? jpeg(base64) : undefined;
}

/** https://developers.google.com/speed/webp/docs/riff_container */
function webp(head: Buffer, chunk: string): Picture | undefined {
  const mediaType = 'image/webp';
  if (chunk === 'VP8X') return { mediaType, width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 };
  if (chunk === 'VP8 ') return { mediaType, width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff };
  if (chunk !== 'VP8L') return undefined;
  const bits = head.readUInt32LE(21);
  return { mediaType, width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}

/** Walks the segments, at most 200, to the one that starts the frame. */
function jpeg(base64: string): Picture | undefined {
  for (let at = 2, segments = 0; segments < 200; segments++) {
    const head = bytesAt(base64, at, 9);
    if (head.length < 9 || head[0] !== 0xff) return undefined;
    const marker = head[1]!;
    const startsFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (startsFrame) return { mediaType: 'image/jpeg', width: head.readUInt16BE(7), height: head.readUInt16BE(5) };
    at += marker === 0xff ? 1 : 2 + head.readUInt16BE(2);
  }
  return undefined;
}

function bytesAt(base64: string, at: number, length: number): Buffer {
  const skipped = at % 3;
  const start = ((at - skipped) / 3) * 4;
  return Buffer.from(base64.slice(start, start + Math.ceil((skipped + length) / 3) * 4), 'base64').subarray(skipped, skipped + length);
}

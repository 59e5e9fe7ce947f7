import type { MediaPart } from '#core/conversation';
import { imageTypeOf } from '#kit/documents/image-type';

/** Characters of base64 that hold the bytes by which a type is known. */
const readCharacters = 16;

/**
 * The MIME type in lower case. Of an image it is that of its bytes: OpenAI's models look at nothing else, but Claude refuses an image that is called by another type
 * (vybestack/llxprt-code#2130), and Gemini `image/jpg` (ogkalu2/comic-translate#399). So it is of files of an unknown type.
 */
export function typeIn({ kind, mediaType, base64 = '' }: Pick<MediaPart, 'kind' | 'mediaType' | 'base64'>): string | undefined {
  const [given = ''] = mediaType?.split(';', 1) ?? [];
  const type = given.trim().toLowerCase();
  const found = kind === 'image' || type === '' || type === 'application/octet-stream' ? typeOfBytes(base64) : undefined;
  if (found !== undefined) return found;
  if (type === 'image/jpg') return 'image/jpeg';
  return type === '' ? undefined : type;
}

function typeOfBytes(base64: string): string | undefined {
  const bytes = Buffer.from(base64.slice(0, readCharacters), 'base64');
  return bytes.toString('latin1', 0, 4) === '%PDF' ? 'application/pdf' : imageTypeOf(bytes);
}

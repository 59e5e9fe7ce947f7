import type { MediaPart } from '#core/conversation';

/** The first bytes of files. */
const beginnings: readonly (readonly [type: string, begins: RegExp])[] = [
  ['image/png', /^\x89PNG/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
  ['application/pdf', /^%PDF/],
];

/** Characters of base64 that hold enough of them. */
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
  const bytes = Buffer.from(base64.slice(0, readCharacters), 'base64').toString('latin1');
  return beginnings.find(([, begins]) => begins.test(bytes))?.[0];
}

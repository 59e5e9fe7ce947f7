/** The media type of a PNG, JPEG, GIF or WebP, the images that models take, by its first 12 bytes. */
export function imageTypeOf(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.subarray(0, 12)).toString('latin1');
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png';
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (/^GIF8[79]a/.test(head)) return 'image/gif';
  return /^RIFF[^]{4}WEBP/.test(head) ? 'image/webp' : undefined;
}

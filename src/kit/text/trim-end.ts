/**
 * A text without the signs it ends with, however many: `withoutEnd('/v1//', '/')` is `/v1`. A regular expression (`/\/+$/`) tries again at every sign of a long
 * row that does not end the text, which takes the square of its length.
 */
export function trimEnd(text: string, signs: string): string {
  let end = text.length;
  while (end > 0 && signs.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}

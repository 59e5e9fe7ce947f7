/**
 * Removes all trailing occurrences of a character: `trimEnd('/v1//', '/')` is `/v1`. A regular expression (`/\/+$/`) starts again at every character of a
 * long run that is not at the end of the text, which takes quadratic time.
 */
export function trimEnd(text: string, signs: string): string {
  let end = text.length;
  while (end > 0 && signs.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}

import { isLowSurrogate } from '#kit/text/surrogates';

/** Characters of a piece, where its tokens allow. */
const window = 2000;
/** A piece is cut at the end of a sentence or a word in its last part, otherwise anywhere. */
const lastPart = 0.5;

/** Where to cut a text that is too long for one chunk: at the end of a sentence, of a word, or between two characters. @param room the most tokens */
export function endOfPiece(text: string, start: number, end: number, room: number, count: (text: string) => number): { end: number; tokens: number } {
  for (let length = Math.min(window, end - start); ; length = Math.floor(length / 2)) {
    const to = start + length >= end ? end : cutIn(text, start, start + length);
    const tokens = count(text.slice(start, to));
    if (tokens <= room || length <= 2) return { end: to, tokens };
  }
}

/** The best place for a cut at or before `to`. */
function cutIn(text: string, start: number, to: number): number {
  const least = start + Math.ceil((to - start) * lastPart);
  let word = 0;
  for (let at = to; at > least; at--) {
    const before = text.charCodeAt(at - 1);
    if (isSentenceEnd(before) && (before > 0x3000 || isSpace(text.charCodeAt(at)))) return at;
    if (before === 10) return at;
    if (word === 0 && isSpace(before)) word = at;
  }
  if (word > 0) return word;
  return isLowSurrogate(text.charCodeAt(to)) ? to - 1 : to;
}

/** Where the white space from here on ends. */
export function startOfWords(text: string, from: number, to: number): number {
  let at = from;
  while (at < to && isSpace(text.charCodeAt(at))) at++;
  return at;
}

export const isSpace = (code: number) =>
  code === 32 || (code >= 9 && code <= 13) || code === 0xa0 || code === 0x3000 || code === 0x2028 || code === 0x2029 || code === 0xfeff;
// . ! ? and their wide forms
const isSentenceEnd = (code: number) => code === 46 || code === 33 || code === 63 || code === 0x3002 || code === 0xff01 || code === 0xff1f;

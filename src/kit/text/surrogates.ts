/** A text is a sequence of UTF-16 code units: a character beyond U+FFFF is a pair of them, which a cut may divide. */
export const isHighSurrogate = (unit: number): boolean => (unit & 0xfc00) === 0xd800;
export const isLowSurrogate = (unit: number): boolean => (unit & 0xfc00) === 0xdc00;

/** The text without the half of a pair that a cut left at its end. */
export const withoutHalf = (text: string): string => (isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.slice(0, -1) : text);

/** A pattern finds a surrogate sooner than a loop does. */
const half = /[\ud800-\udfff]/;

export function codePoints(text: string): number {
  let count = text.length;
  if (!half.test(text)) return count;
  for (let at = 1; at < text.length; at++) if (isLowSurrogate(text.charCodeAt(at)) && isHighSurrogate(text.charCodeAt(at - 1))) count--;
  return count;
}

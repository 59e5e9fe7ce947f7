/**
 * The boundaries at which o200k splits a text before it merges bytes: the pattern of tiktoken's `o200k_base`, matched by hand.
 *
 * ```
 * [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+('s|'d|'m|'t|'ll|'ve|'re)?
 * [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*('s|'d|'m|'t|'ll|'ve|'re)?
 * \p{N}{1,3}     ?[^\s\p{L}\p{N}]+[\r\n/]*    \s*[\r\n]+    \s+(?!\S)    \s+
 * ```
 *
 * A regular expression keeps a backtracking position for every character and fails on a few megabytes of one kind; this matcher keeps none, reads each
 * character at most three times, and creates no strings.
 */
export function pieceEnd(text: string, at: number): number {
  const first = text.codePointAt(at)!;
  const kind = kindOf(first);
  if ((kind & letter) !== 0) return wordEnd(text, at);
  if ((kind & digit) !== 0) return digitsEnd(text, at);
  const next = at + widthOf(first);
  if (first !== 0x0d && first !== 0x0a) {
    const end = wordEnd(text, next, at, (kind & mark) !== 0);
    if (end > 0) return end;
  }
  if ((kind & space) === 0) return otherEnd(text, at);
  if (first === 0x20 && next < text.length && (kindOf(text.codePointAt(next)!) & (space | letter | digit)) === 0) return otherEnd(text, next);
  return spaceEnd(text, at);
}

export const letter = 1;
export const digit = 2;
export const space = 4;
/** Combining marks belong to both halves of a word and are not letters. */
const mark = 8;
/** Allowed in the first half of a word: upper-case letters, and letters without case. */
const upper = 16;
/** Allowed in the second half: lower-case letters, and letters without case. */
const lower = 32;
const seen = 64;

/** One byte per code point, computed on first use: untouched pages cost nothing. */
const kinds = new Uint8Array(0x110000);

export const kindOf = (point: number): number => kinds[point] || classify(point);

function classify(point: number): number {
  const text = String.fromCodePoint(point);
  let kind = seen;
  if (/\p{L}/u.test(text)) kind |= letter;
  else if (/\p{N}/u.test(text)) kind |= digit;
  else if (/\s/u.test(text)) kind |= space;
  if (/[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]/u.test(text)) kind |= upper;
  if (/[\p{Ll}\p{Lm}\p{Lo}\p{M}]/u.test(text)) kind |= lower;
  if (/\p{M}/u.test(text)) kind |= mark;
  kinds[point] = kind;
  return kind;
}

export const widthOf = (point: number) => (point > 0xffff ? 2 : 1);

/** The end of a word. With a prefix (one character before it that is not a letter), 0 if no word follows. */
function wordEnd(text: string, start: number, prefix = start, prefixIsMark = false): number {
  const bare = prefix === start;
  const end =
    smallWord(text, start) ||
    (!bare && prefixIsMark ? smallWord(text, prefix) : 0) ||
    capitals(text, start) ||
    (!bare && prefixIsMark ? capitals(text, prefix) : 0);
  return end && contractionEnd(text, end);
}

/** The end of `upper* lower+`, or 0. If no lower-case letter follows the upper-case ones, the last letter without case among them is the `lower` one. */
function smallWord(text: string, start: number): number {
  let at = start;
  let caseless = 0;
  while (at < text.length) {
    const point = text.codePointAt(at)!;
    const kind = kindOf(point);
    if ((kind & upper) === 0) break;
    at += widthOf(point);
    if ((kind & lower) !== 0) caseless = at;
  }
  const end = run(text, at, lower);
  return end > at ? end : caseless;
}

/** The end of `upper+ lower*`, or 0. Called only where `upper* lower+` does not match, so no lower-case letter can follow. */
function capitals(text: string, start: number): number {
  const end = run(text, start, upper);
  return end > start ? end : 0;
}

export function run(text: string, start: number, wanted: number): number {
  let at = start;
  while (at < text.length) {
    const point = text.codePointAt(at)!;
    if ((kindOf(point) & wanted) === 0) break;
    at += widthOf(point);
  }
  return at;
}

/** The end of what is no white space, letter or digit. */
export function runOfOthers(text: string, start: number): number {
  let at = start;
  while (at < text.length) {
    const point = text.codePointAt(at)!;
    if ((kindOf(point) & (space | letter | digit)) !== 0) break;
    at += widthOf(point);
  }
  return at;
}

export function contractionEnd(text: string, at: number): number {
  if (text.charCodeAt(at) !== 0x27) return at;
  const one = text.charCodeAt(at + 1) | 0x20;
  if (at + 1 >= text.length || text.charCodeAt(at + 1) > 0x7f) return at;
  if (one === 0x73 || one === 0x64 || one === 0x6d || one === 0x74) return at + 2;
  if (at + 2 >= text.length || text.charCodeAt(at + 2) > 0x7f) return at;
  const two = text.charCodeAt(at + 2) | 0x20;
  const found = (one === 0x6c && two === 0x6c) || (one === 0x76 && two === 0x65) || (one === 0x72 && two === 0x65);
  return found ? at + 3 : at;
}

export function digitsEnd(text: string, start: number): number {
  let at = start;
  for (let count = 0; count < 3 && at < text.length; count++) {
    const point = text.codePointAt(at)!;
    if ((kindOf(point) & digit) === 0) break;
    at += widthOf(point);
  }
  return at;
}

function otherEnd(text: string, start: number): number {
  let at = runOfOthers(text, start);
  while (at < text.length && isOneOf(text.charCodeAt(at))) at++;
  return at;
}

const isOneOf = (unit: number) => unit === 0x0d || unit === 0x0a || unit === 0x2f;

export function spaceEnd(text: string, start: number): number {
  let at = start;
  let line = 0;
  while (at < text.length) {
    const unit = text.charCodeAt(at);
    if ((kindOf(unit) & space) === 0) break;
    at++;
    if (unit === 0x0d || unit === 0x0a) line = at;
  }
  if (line > 0) return line;
  return at < text.length && at - start > 1 ? at - 1 : at;
}

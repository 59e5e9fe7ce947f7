import { contractionEnd, digit, digitsEnd, kindOf, letter, run, runOfOthers, space, spaceEnd, widthOf } from './pieces.ts';

/**
 * The boundaries at which cl100k splits a text before it merges bytes: the pattern of tiktoken's `cl100k_base`, matched by hand as that of o200k is.
 *
 * ```
 * (?i:'s|'t|'re|'ve|'m|'ll|'d)     [^\r\n\p{L}\p{N}]?\p{L}+     \p{N}{1,3}
 *  ?[^\s\p{L}\p{N}]+[\r\n]*    \s*[\r\n]+    \s+(?!\S)    \s+
 * ```
 */
export function pieceEndOfCl100k(text: string, at: number): number {
  const contraction = contractionEnd(text, at);
  if (contraction > at) return contraction;
  const first = text.codePointAt(at)!;
  const kind = kindOf(first);
  if ((kind & letter) !== 0) return run(text, at, letter);
  if ((kind & digit) !== 0) return digitsEnd(text, at);
  const next = at + widthOf(first);
  if (first !== 0x0d && first !== 0x0a && next < text.length && (kindOf(text.codePointAt(next)!) & letter) !== 0) return run(text, next, letter);
  if ((kind & space) === 0) return otherEnd(text, at);
  if (first === 0x20 && next < text.length && (kindOf(text.codePointAt(next)!) & (space | letter | digit)) === 0) return otherEnd(text, next);
  return spaceEnd(text, at);
}

function otherEnd(text: string, start: number): number {
  let at = runOfOthers(text, start);
  while (at < text.length && isLineBreak(text.charCodeAt(at))) at++;
  return at;
}

const isLineBreak = (unit: number) => unit === 0x0d || unit === 0x0a;

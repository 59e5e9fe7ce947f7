import type { Ranks } from './ranks.ts';

/** The text of tokens of a vocabulary; bytes that are not UTF-8 become U+FFFD. @throws RangeError for a token that the vocabulary does not have */
export function textOf({ bytes, starts }: Ranks, tokens: readonly number[]): string {
  let length = 0;
  for (const token of tokens) {
    if (!(token >= 0 && token < starts.length - 1)) throw new RangeError(`The vocabulary has no token ${token}.`);
    length += starts[token + 1]! - starts[token]!;
  }
  const text = Buffer.allocUnsafe(length);
  let at = 0;
  for (const token of tokens) {
    const piece = bytes.subarray(starts[token], starts[token + 1]);
    text.set(piece, at);
    at += piece.length;
  }
  return text.toString('utf8');
}

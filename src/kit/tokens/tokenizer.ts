import { Merger } from './merge.ts';
import { pieceEnd } from './pieces.ts';
import type { Ranks } from './ranks.ts';

/** Longer pieces (without any boundary) are merged in slices of this many bytes: memory and time stay bounded, but the count may be a few tokens off there. */
const slice = 1 << 16;

/** Where the piece that begins at a place of a text ends: pieces are merged apart. */
export type PieceEnd = (text: string, at: number) => number;

/** Counts and splits text by a vocabulary, that of o200k unless its pieces are those of another. Cheap to create; it owns buffers, so each thread has its own. */
export class Tokenizer {
  readonly #merger: Merger;
  readonly #pieceEnd: PieceEnd;
  #bytes = new Uint8Array(1024);
  /** Bytes of the last slice. */
  #length = 0;

  constructor(ranks: Ranks, ends: PieceEnd = pieceEnd) {
    this.#merger = new Merger(ranks);
    this.#pieceEnd = ends;
  }

  count(text: string): number {
    return this.countFrom(text, 0, text.length).count;
  }

  /**
   * Counts from `from`, at least up to `until`, in whole pieces or slices of one. `end` is the position reached, `pieceEnd` the end of the piece that contains
   * it: pass both to continue from there.
   */
  countFrom(text: string, from: number, until: number, within = 0): { count: number; end: number; pieceEnd: number } {
    let count = 0;
    let at = from;
    let end = within;
    while (at < until) {
      if (end <= at) end = this.#pieceEnd(text, at);
      at = this.#fill(text, at, end);
      count += this.#merger.merge(this.#bytes, this.#length);
    }
    return { count, end: at, pieceEnd: end };
  }

  /** The texts of the tokens. A character that spans several tokens is in the last of them, the others are empty. */
  split(text: string): string[] {
    const tokens: string[] = [];
    const ends: number[] = [];
    let end = 0;
    for (let at = 0; at < text.length;) {
      if (end <= at) end = this.#pieceEnd(text, at);
      const to = this.#fill(text, at, end);
      ends.length = 0;
      if (this.#merger.merge(this.#bytes, this.#length, ends) === 1) tokens.push(text.slice(at, to).toWellFormed());
      else this.#texts(ends, tokens);
      at = to;
    }
    return tokens;
  }

  #texts(ends: readonly number[], tokens: string[]): void {
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    let start = 0;
    for (const end of ends) {
      tokens.push(decoder.decode(this.#bytes.subarray(start, end), { stream: true }));
      start = end;
    }
  }

  /** Encodes `text[from..to)` as UTF-8 into the buffer, at most one slice; a lone surrogate becomes U+FFFD. @returns where it stopped */
  #fill(text: string, from: number, to: number): number {
    if (this.#bytes.length < Math.min((to - from) * 3, slice + 4)) this.#bytes = new Uint8Array(Math.min(2 * (to - from) * 3, slice + 4));
    const bytes = this.#bytes;
    let length = 0;
    let at = from;
    while (at < to && length < slice) {
      const unit = text.charCodeAt(at);
      if (unit < 0x80) {
        bytes[length++] = unit;
        at++;
      } else if (unit < 0x800) {
        bytes[length++] = 0xc0 | (unit >> 6);
        bytes[length++] = 0x80 | (unit & 0x3f);
        at++;
      } else {
        const point = text.codePointAt(at)!;
        if (point > 0xffff) {
          bytes[length++] = 0xf0 | (point >> 18);
          bytes[length++] = 0x80 | ((point >> 12) & 0x3f);
          bytes[length++] = 0x80 | ((point >> 6) & 0x3f);
          bytes[length++] = 0x80 | (point & 0x3f);
          at += 2;
        } else {
          const whole = point >= 0xd800 && point <= 0xdfff ? 0xfffd : point;
          bytes[length++] = 0xe0 | (whole >> 12);
          bytes[length++] = 0x80 | ((whole >> 6) & 0x3f);
          bytes[length++] = 0x80 | (whole & 0x3f);
          at++;
        }
      }
    }
    this.#length = length;
    return at;
  }
}

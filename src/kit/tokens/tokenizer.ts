import { Merger } from './merge.ts';
import { pieceEnd } from './pieces.ts';
import type { Ranks } from './ranks.ts';

/** Longer pieces (a run without any break) are merged in slices of so many bytes: memory stays bounded, the count may be a few tokens off there. */
const slice = 1 << 18;

/** Counts and cuts text by o200k. Cheap to make; keeps buffers, so one for each thread. */
export class Tokenizer {
  readonly #merger: Merger;
  #bytes = new Uint8Array(1024);

  constructor(ranks: Ranks) {
    this.#merger = new Merger(ranks);
  }

  count(text: string): number {
    return this.countFrom(text, 0, text.length).count;
  }

  /** Counts the pieces that start in `[from, until)`; `end` is where the last of them ends. */
  countFrom(text: string, from: number, until: number): { count: number; end: number } {
    let count = 0;
    let at = from;
    while (at < until) {
      const end = pieceEnd(text, at);
      count += this.#pieceCount(text, at, end);
      at = end;
    }
    return { count, end: at };
  }

  /** The tokens' texts. A character spread over several tokens is whole in the last of them, the others are empty. */
  split(text: string): string[] {
    const tokens: string[] = [];
    const ends: number[] = [];
    for (let at = 0; at < text.length;) {
      const end = pieceEnd(text, at);
      this.#slices(text, at, end, (length, from, to) => {
        ends.length = 0;
        if (this.#merger.merge(this.#bytes, length, ends) === 1) tokens.push(text.slice(from, to).toWellFormed());
        else this.#texts(ends, tokens);
      });
      at = end;
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

  #pieceCount(text: string, from: number, to: number): number {
    let count = 0;
    this.#slices(text, from, to, (length) => (count += this.#merger.merge(this.#bytes, length)));
    return count;
  }

  /** Puts `text[from..to)` as UTF-8 into the buffer, at most a slice at a time; a lone surrogate is U+FFFD. */
  #slices(text: string, from: number, to: number, take: (length: number, from: number, to: number) => void): void {
    if (this.#bytes.length < Math.min((to - from) * 3, slice + 4)) this.#bytes = new Uint8Array(Math.min(2 * (to - from) * 3, slice + 4));
    const bytes = this.#bytes;
    let length = 0;
    let start = from;
    for (let at = from; at < to;) {
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
      if (length >= slice || at === to) {
        take(length, start, at);
        length = 0;
        start = at;
      }
    }
  }
}

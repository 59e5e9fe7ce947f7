import { readFileSync } from 'node:fs';

/**
 * The o200k vocabulary as plain memory that threads share: 4.3 MB, while a map of strings takes some 40. Tokens are looked up by a polynomial hash of their
 * bytes, so that the hash of any substring of a piece takes two subtractions.
 */
export interface Ranks {
  readonly bytes: Uint8Array;
  /** The start of each rank's token in `bytes`, and one more entry for the end. */
  readonly starts: Int32Array;
  /** Open addressing: rank + 1, or 0 for an empty slot. */
  readonly slots: Int32Array;
  readonly longest: number;
}

export const none = 0x7fffffff;

/** The base of the hash: odd, so that its powers use all bits. */
const base = 0x01000193;

/** `powers[n]` = baseⁿ modulo 2³². */
export const powers = new Int32Array(1025);
powers[0] = 1;
for (let n = 1; n < powers.length; n++) powers[n] = Math.imul(powers[n - 1]!, base);

/** Extends a hash by one byte. A zero byte changes it too. */
export const grown = (hash: number, byte: number): number => (Math.imul(hash, base) + byte + 1) | 0;

/** The rank of `piece[from..to)`, given its hash, or `none`. */
export function rankOf(ranks: Ranks, piece: Uint8Array, from: number, to: number, hash: number): number {
  const { bytes, starts, slots } = ranks;
  const length = to - from;
  if (length > ranks.longest) return none;
  const mask = slots.length - 1;
  for (let slot = slotOf(hash, length) & mask; ; slot = (slot + 1) & mask) {
    const rank = slots[slot]! - 1;
    if (rank < 0) return none;
    const start = starts[rank]!;
    if (starts[rank + 1]! - start !== length) continue;
    let at = 0;
    while (at < length && bytes[start + at] === piece[from + at]) at++;
    if (at === length) return rank;
  }
}

function slotOf(hash: number, length: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15) ^ (length << 24), 0x2c1b3c6d);
  return mixed ^ (mixed >>> 13);
}

/**
 * Reads a `.tiktoken` file: lines of `base64 rank`, with ascending ranks and no gaps. The o200k file is part of gpt-tokenizer (MIT), which has it from
 * OpenAI's tiktoken (MIT).
 */
export function readRanks(path: string | URL): Ranks {
  const file = readFileSync(path);
  let count = 0;
  for (const byte of file) if (byte === 0x0a) count++;
  const bytes = new Uint8Array(file.length);
  const starts = new Int32Array(new SharedArrayBuffer((count + 1) * 4));
  const slots = new Int32Array(new SharedArrayBuffer(2 ** Math.ceil(Math.log2(count * 2)) * 4));
  const mask = slots.length - 1;
  let end = 0;
  let longest = 0;
  for (let at = 0, rank = 0; rank < count; rank++) {
    const start = end;
    let hash = 0;
    let bits = 0;
    let held = 0;
    for (; file[at] !== 0x20; at++) {
      const value = sextets[file[at]!]!;
      if (value < 0) continue;
      held = (held << 6) | value;
      bits += 6;
      if (bits < 8) continue;
      bits -= 8;
      const byte = (held >>> bits) & 0xff;
      bytes[end++] = byte;
      hash = grown(hash, byte);
    }
    at = file.indexOf(0x0a, at) + 1;
    starts[rank + 1] = end;
    longest = Math.max(longest, end - start);
    let slot = slotOf(hash, end - start) & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = rank + 1;
  }
  const shared = new Uint8Array(new SharedArrayBuffer(end));
  shared.set(bytes.subarray(0, end));
  return { bytes: shared, starts, slots, longest };
}

const sextets = new Int8Array(256).fill(-1);
for (const [value, letter] of Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/').entries()) sextets[letter.charCodeAt(0)] = value;

import { grown, none, powers, rankOf, type Ranks } from './ranks.ts';

/**
 * Byte-pair merging of one piece: the adjacent pair with the lowest rank is merged until no pair is a token; of equal ranks the leftmost first. Small pieces
 * scan all pairs in each round; larger ones keep the pairs in a heap, so that a piece of n bytes takes n log n time, whatever it contains. Implemented here
 * since all public implementations are quadratic: 100 KB of one letter block them for 7 to 20 s.
 */
export class Merger {
  readonly #ranks: Ranks;
  /** Hash of the piece's first n bytes. */
  #hashes = new Int32Array(256);
  /** By the byte at which a part starts: the start of the next part, the start of the previous one, and the rank of the part merged with the next. */
  #next = new Int32Array(256);
  #before = new Int32Array(256);
  #pair = new Int32Array(256);
  #heap = new Heap();

  constructor(ranks: Ranks) {
    this.#ranks = ranks;
  }

  /** @returns the number of tokens of `piece[0..length)`; their ends are written to `ends` if it is given */
  merge(piece: Uint8Array, length: number, ends?: number[]): number {
    const hashes = this.#fit(length);
    for (let at = 0; at < length; at++) hashes[at + 1] = grown(hashes[at]!, piece[at]!);
    if (rankOf(this.#ranks, piece, 0, length, hashes[length]!) !== none) {
      ends?.push(length);
      return 1;
    }
    const count = length <= 48 ? this.#scan(piece, length) : this.#sort(piece, length);
    if (ends) for (let at = 0; at < length; at = this.#next[at]!) ends.push(this.#next[at]!);
    return count;
  }

  #scan(piece: Uint8Array, length: number): number {
    const next = this.#next;
    const pair = this.#pair;
    for (let at = 0; at < length; at++) next[at] = at + 1;
    for (let at = 0; at < length; at++) pair[at] = this.#rank(piece, at, at + 2, length);
    for (let count = length; ; count--) {
      let lowest = none;
      let left = -1;
      let before = -1;
      for (let at = 0, last = -1; at < length; last = at, at = next[at]!) {
        if (pair[at]! >= lowest) continue;
        lowest = pair[at]!;
        left = at;
        before = last;
      }
      if (left < 0) return count;
      next[left] = next[next[left]!]!;
      pair[left] = this.#pairAt(piece, left, length);
      if (before >= 0) pair[before] = this.#pairAt(piece, before, length);
    }
  }

  #sort(piece: Uint8Array, length: number): number {
    const next = this.#next;
    const before = this.#before;
    const pair = this.#pair;
    const heap = this.#heap;
    for (let at = 0; at < length; at++) {
      next[at] = at + 1;
      before[at] = at - 1;
      pair[at] = this.#rank(piece, at, at + 2, length);
      if (pair[at] !== none) heap.push(pair[at]!, at);
    }
    let count = length;
    while (heap.pop()) {
      const left = heap.place;
      if (pair[left] !== heap.rank) continue;
      const right = next[left]!;
      const after = next[right]!;
      next[left] = after;
      pair[right] = none;
      if (after < length) before[after] = left;
      count--;
      this.#renew(piece, left, length);
      if (before[left]! >= 0) this.#renew(piece, before[left]!, length);
    }
    return count;
  }

  #renew(piece: Uint8Array, at: number, length: number): void {
    const rank = this.#pairAt(piece, at, length);
    if (rank === this.#pair[at]) return;
    this.#pair[at] = rank;
    if (rank !== none) this.#heap.push(rank, at);
  }

  #pairAt(piece: Uint8Array, at: number, length: number): number {
    const right = this.#next[at]!;
    return right < length ? this.#rank(piece, at, this.#next[right]!, length) : none;
  }

  #rank(piece: Uint8Array, from: number, to: number, length: number): number {
    if (to > length || to - from > this.#ranks.longest) return none;
    const hash = (this.#hashes[to]! - Math.imul(this.#hashes[from]!, powers[to - from]!)) | 0;
    return rankOf(this.#ranks, piece, from, to, hash);
  }

  #fit(length: number): Int32Array {
    if (this.#hashes.length <= length) {
      const size = 2 ** Math.ceil(Math.log2(length + 1));
      this.#hashes = new Int32Array(size);
      this.#next = new Int32Array(size);
      this.#before = new Int32Array(size);
      this.#pair = new Int32Array(size);
    }
    return this.#hashes;
  }
}

/** A binary heap of pairs, lowest rank first, then leftmost. A pair that has changed since remains in the heap and is skipped when it comes up. */
class Heap {
  rank = 0;
  place = 0;
  /** rank × 2³² + place: both fit a double's 53 bits. */
  #keys = new Float64Array(1024);
  #size = 0;

  push(rank: number, place: number): void {
    if (this.#size === this.#keys.length) {
      const larger = new Float64Array(this.#size * 2);
      larger.set(this.#keys);
      this.#keys = larger;
    }
    const keys = this.#keys;
    const key = rank * 0x100000000 + place;
    let at = this.#size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (keys[parent]! <= key) break;
      keys[at] = keys[parent]!;
      at = parent;
    }
    keys[at] = key;
  }

  /** Removes the lowest pair, into `rank` and `place`. */
  pop(): boolean {
    if (this.#size === 0) return false;
    const keys = this.#keys;
    const lowest = keys[0]!;
    this.rank = Math.floor(lowest / 0x100000000);
    this.place = lowest - this.rank * 0x100000000;
    const key = keys[--this.#size]!;
    const size = this.#size;
    let at = 0;
    for (;;) {
      let child = at * 2 + 1;
      if (child >= size) break;
      if (child + 1 < size && keys[child + 1]! < keys[child]!) child++;
      if (keys[child]! >= key) break;
      keys[at] = keys[child]!;
      at = child;
    }
    keys[at] = key;
    return true;
  }
}

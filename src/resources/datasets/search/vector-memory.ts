import { block, openInnerProducts } from './inner-products.ts';
import type { Page } from './vector-messages.ts';

/** A page, whose vectors are at a place of the memory. */
export interface Slot extends Omit<Page, 'vectors'> {
  readonly at: number;
}

/** Numbers that a vector takes, with the zeros behind its own. */
export const paddedLength = (dimensions: number): number => Math.ceil((4 * dimensions) / block) * (block / 4);

/** pgvector has no longer ones. */
export const mostDimensions = 16_000;
/** Vectors of a page. */
const mostVectors = 2 ** 16;

const productsAt = 4 * paddedLength(mostDimensions);
const begin = productsAt + 4 * mostVectors;
/** A slot takes a multiple of it, which counts what is remembered of small ones. */
const step = 256;
const wasmPage = 2 ** 16;

/**
 * Pages of vectors in the memory of WebAssembly, which are compared where they are. In front are the question and the products; the rest is a ring, in which what comes
 * is put behind the newest and over the oldest. It grows as it is filled, and never shrinks.
 */
export class VectorMemory {
  readonly #products = openInnerProducts();
  /** Oldest first: the order of the ring from `#next` on. */
  readonly #slots = new Map<string, Slot>();
  /** Behind the newest. */
  #next = begin;

  get(key: string): Slot | undefined {
    return this.#slots.get(key);
  }

  /** @param page of at most `mostVectors`. @param mostBytes of all slots; a single one may take more */
  put(key: string, { vectors, ...page }: Page, mostBytes: number): Slot {
    const before = this.#slots.get(key);
    if (before) return before;
    const slot = { ...page, at: this.#room(Math.max(1, Math.ceil(vectors.byteLength / step)) * step, begin + mostBytes) };
    this.#floats(slot.at, vectors.length).set(vectors);
    this.#slots.set(key, slot);
    return slot;
  }

  /** @returns the products of the question with the vectors of a slot, in their order, until the next call */
  multiply(question: Float32Array, { at, ids }: Slot): Float32Array {
    const count = ids.length;
    const length = paddedLength(question.length);
    if (length > paddedLength(mostDimensions) || count > mostVectors) throw new RangeError(`${count} vectors of ${question.length} numbers are too many.`);
    const one = this.#floats(0, length);
    one.set(question);
    one.fill(0, question.length);
    if (count > 0) this.#products.multiply(0, at, count, 4 * length, productsAt);
    return this.#floats(productsAt, count);
  }

  /** @returns where this many bytes are free, once the oldest have gone */
  #room(bytes: number, end: number): number {
    if (this.#next + bytes > end) {
      this.#forget((at) => at >= this.#next);
      this.#next = begin;
    }
    const at = this.#next;
    this.#forget((other) => other >= at && other < at + bytes);
    this.#next = at + bytes;
    const { memory } = this.#products;
    const missing = this.#next - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / wasmPage));
    return at;
  }

  #forget(isInTheWay: (at: number) => boolean): void {
    for (const [key, { at }] of this.#slots) {
      if (!isInTheWay(at)) return;
      this.#slots.delete(key);
    }
  }

  #floats(at: number, length: number): Float32Array {
    return new Float32Array(this.#products.memory.buffer, at, length);
  }
}

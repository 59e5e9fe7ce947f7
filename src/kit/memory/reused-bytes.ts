/** Kept between two uses at most. */
const mostKept = 4_194_304;
const leastKept = 65_536;

/**
 * Memory for one thing at a time. A large piece of memory that lives for longer than a moment is freed only when V8 collects the whole heap, and that many of them
 * came and went makes V8 collect it.
 */
export class ReusedBytes {
  #bytes: Buffer | undefined;

  /** @returns so many bytes, with anything in them. They are good until the next call */
  take(length: number): Buffer {
    if (length > mostKept) return Buffer.allocUnsafeSlow(length);
    if (!this.#bytes || this.#bytes.length < length) this.#bytes = Buffer.allocUnsafeSlow(Math.max(leastKept, 2 ** Math.ceil(Math.log2(length))));
    return this.#bytes.subarray(0, length);
  }

  /** Somebody may still read what was taken last: the next call gets other memory. */
  leave(): void {
    this.#bytes = undefined;
  }
}

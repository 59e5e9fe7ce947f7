/** Bytes that are kept between two uses, at most. */
const mostKept = 4_194_304;
/** What is kept is a multiple of this. */
const stepBytes = 65_536;

/**
 * Memory for one thing at a time. A large piece of memory that lives for longer than a moment is freed only when V8 collects the whole heap, and many that come
 * and go make it do so more often.
 */
export class ReusedBytes {
  #bytes: Buffer | undefined;

  /** @returns `length` bytes with arbitrary content, valid until the next call */
  take(length: number): Buffer {
    if (length > mostKept) return Buffer.allocUnsafeSlow(length);
    if (!this.#bytes || this.#bytes.length < length) this.#bytes = Buffer.allocUnsafeSlow(Math.ceil(length / stepBytes) * stepBytes);
    return this.#bytes.subarray(0, length);
  }

  /** What was taken last may still be read: the next call gets other memory. */
  leave(): void {
    this.#bytes = undefined;
  }
}

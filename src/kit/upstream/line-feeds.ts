import { byteOrderMarkLength } from '../text/byte-order-mark.ts';

const LF = 0x0a;
const CR = 0x0d;

/** Writes the lines of an event stream anew, with LF for CRLF and CR and without a byte order mark. JSON has neither but as white space. */
export class LineFeeds {
  #isFirst = true;
  #isAfterCR = false;

  /** @param bytes the next of the stream; the first have all of a byte order mark */
  take(bytes: Uint8Array): Uint8Array {
    const out = new Uint8Array(bytes.length);
    let length = 0;
    for (let at = this.#isFirst ? byteOrderMarkLength(bytes) : 0; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (byte !== LF || !this.#isAfterCR) out[length++] = byte === CR ? LF : byte;
      this.#isAfterCR = byte === CR;
    }
    this.#isFirst = false;
    return out.subarray(0, length);
  }
}

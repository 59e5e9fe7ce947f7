/** Reads bytes in several pieces from front to back, without putting them together: of an answer of megabytes that would be a copy. */
export class PieceReader {
  readonly #pieces: readonly Buffer[];
  #piece = 0;
  #at = 0;

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = pieces.map((piece) => Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength));
  }

  /** The next bytes, `most` or as many as there are, as Latin-1. */
  ahead(most: number): string {
    let text = '';
    for (let piece = this.#piece, at = this.#at; piece < this.#pieces.length && text.length < most; piece++, at = 0)
      text += this.#pieces[piece]!.toString('latin1', at, at + most - text.length);
    return text;
  }

  /** Steps over bytes, all of which are there. */
  skip(bytes: number): void {
    this.#at += bytes;
    while (this.#piece < this.#pieces.length && this.#at >= this.#pieces[this.#piece]!.length) this.#at -= this.#pieces[this.#piece++]!.length;
  }

  /** Steps behind the next byte of this value. @returns what is before it; undefined where there is none */
  until(byte: number): readonly Buffer[] | undefined {
    const before: Buffer[] = [];
    for (; this.#piece < this.#pieces.length; this.#piece++, this.#at = 0) {
      const piece = this.#pieces[this.#piece]!;
      const end = piece.indexOf(byte, this.#at);
      before.push(piece.subarray(this.#at, end < 0 ? piece.length : end));
      if (end < 0) continue;
      this.#at = end;
      this.skip(1);
      return before;
    }
    return undefined;
  }

  /** What is left, if that is no more than `most` bytes. */
  rest(most: number): Buffer | undefined {
    const left = this.#pieces.slice(this.#piece).map((piece, index) => (index === 0 ? piece.subarray(this.#at) : piece));
    return left.reduce((sum, { length }) => sum + length, 0) > most ? undefined : Buffer.concat(left);
  }
}

/** A settled row as it was written, and the place behind it. */
export interface RecentRow {
  readonly kind: 'settled';
  /** UTF-8. */
  readonly json: Buffer;
  readonly to: number;
}

/** Bytes of rows that are kept: with a database that is away for longer, they are read from the files. */
const mostBytes = 8_388_608;
const bytesAtOnce = 1_048_576;
/** Some three hundred rows. */
const pieceBytes = 262_144;
const mostSpare = 8;

/** Rows one after the other. */
class Piece {
  readonly bytes: Buffer;
  /** Where each row ends in these bytes, and in the journal. */
  readonly ends: number[] = [];
  readonly places: number[] = [];
  taken = 0;

  constructor(bytes: number) {
    this.bytes = Buffer.allocUnsafeSlow(bytes);
  }

  get used(): number {
    return this.ends.at(-1) ?? 0;
  }

  get isOver(): boolean {
    return this.taken === this.ends.length;
  }

  clear(): void {
    this.ends.length = this.places.length = this.taken = 0;
  }

  /** The next row. */
  take(): RecentRow {
    const from = this.taken === 0 ? 0 : this.ends[this.taken - 1]!;
    const json = this.bytes.subarray(from, this.ends[this.taken]);
    return { kind: 'settled', json, to: this.places[this.taken++]! };
  }
}

/**
 * The rows that a process has written and not yet shipped, kept in memory so that its own files need not be read. The files are the truth: where rows were
 * written out of their order or are too many, they are lost here, and whoever ships reads the files. They are kept as bytes: texts would be copied from
 * generation to generation by the garbage collector.
 */
export class RecentRows {
  /** The last one is being filled. */
  #pieces: Piece[] = [];
  /** Pieces whose last row has been taken; the next `take` reuses them. */
  #over: Piece[] = [];
  readonly #spare: Piece[] = [];
  /** Rows that are not taken: all, and those that are written. */
  #added = 0;
  #count = 0;
  #bytes = 0;
  /** Some rows are only in the files. At first nobody wants any: a worker's are read from its files. */
  isLost = true;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** A row that will be written next, in this order. @param to the place behind it */
  add(json: Buffer, to: number): void {
    if (this.isLost) return;
    let piece = this.#pieces.at(-1);
    if (!piece || piece.used + json.length > piece.bytes.length) this.#pieces.push((piece = this.#pieceFor(json.length)));
    piece.bytes.set(json, piece.used);
    piece.ends.push(piece.used + json.length);
    piece.places.push(to);
    this.#added++;
    this.#bytes += json.length;
    if (this.#bytes > mostBytes) this.lose();
  }

  written(): void {
    this.#count = this.#added;
  }

  lose(): void {
    this.isLost = true;
    this.#clear();
  }

  /** Keeps rows again from now on: of those before, whoever ships reads the files. */
  begin(): void {
    this.isLost = false;
    this.#clear();
  }

  /** The next rows that are written, in their order: about a megabyte at most. Their bytes are good until more are taken. */
  take(): readonly RecentRow[] {
    const rows: RecentRow[] = [];
    let bytes = 0;
    for (const piece of this.#over.splice(0)) {
      piece.clear();
      if (piece.bytes.length === pieceBytes && this.#spare.length < mostSpare) this.#spare.push(piece);
    }
    while (rows.length < this.#count && bytes < bytesAtOnce) {
      if (this.#pieces[0]!.isOver) this.#over.push(this.#pieces.shift()!);
      const row = this.#pieces[0]!.take();
      bytes += row.json.length;
      rows.push(row);
    }
    this.#added -= rows.length;
    this.#count -= rows.length;
    this.#bytes -= bytes;
    return rows;
  }

  #pieceFor(bytes: number): Piece {
    return (bytes <= pieceBytes && this.#spare.pop()) || new Piece(Math.max(pieceBytes, bytes));
  }

  #clear(): void {
    this.#pieces = [];
    this.#over = [];
    this.#added = 0;
    this.#count = 0;
    this.#bytes = 0;
  }
}

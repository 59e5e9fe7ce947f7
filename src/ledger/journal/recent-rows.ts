/** A settled row as it was written, and the place behind it. */
export interface RecentRow {
  readonly kind: 'settled';
  readonly json: string;
  readonly to: number;
}

/** Bytes of rows that are kept, roughly: with a database that is away for longer, they are read from the files. */
const mostBytes = 8_388_608;
const bytesAtOnce = 1_048_576;

/**
 * The rows that a process has written and not yet shipped, kept in memory so that its own files need not be read. The files are the truth: where rows were
 * written out of their order or are too many, they are lost here, and whoever ships reads the files.
 */
export class RecentRows {
  #rows: RecentRow[] = [];
  /** Rows up to here are written. */
  #count = 0;
  #bytes = 0;
  /** Some rows are only in the files. At first nobody wants any: a worker's are read from its files. */
  isLost = true;

  /** A row that will be written next, in this order. */
  add(json: string, to: number): void {
    if (this.isLost) return;
    this.#rows.push({ kind: 'settled', json, to });
    this.#bytes += json.length;
    if (this.#bytes > mostBytes) this.lose();
  }

  written(): void {
    this.#count = this.#rows.length;
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

  /** The next rows that are written, in their order: about a megabyte at most. */
  take(): readonly RecentRow[] {
    let [rows, bytes] = [0, 0];
    while (rows < this.#count && bytes < bytesAtOnce) bytes += this.#rows[rows++]!.json.length;
    this.#count -= rows;
    this.#bytes -= bytes;
    return this.#rows.splice(0, rows);
  }

  #clear(): void {
    this.#rows = [];
    this.#count = 0;
    this.#bytes = 0;
  }
}

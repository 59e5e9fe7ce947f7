/* What the server and the thread that compares vectors tell each other. */

/** A passage, and the cosine of the angle between its vector and the question's. */
export interface Near {
  readonly id: number;
  readonly cosine: number;
}

/** Vectors of a generation, in the order of their passages, behind one of them: 0 at its beginning. */
export interface Cursor {
  readonly edition: number;
  readonly after: number;
}

/** The ids and, one after the other, the vectors that are at a place, up to `next`, behind which others come; null at the end of the generation. */
export interface Page extends Cursor {
  readonly ids: Float64Array;
  /** Of `paddedLength` each. */
  readonly vectors: Float32Array;
  readonly next: number | null;
}

export interface RankJob {
  readonly type: 'rank';
  readonly id: number;
  readonly table: number;
  readonly vector: Float32Array;
  readonly limit: number;
  /** In ascending order. */
  readonly editions: Float64Array;
  /** How many passages each has. */
  readonly sizes: Uint32Array;
  readonly cacheBytes: number;
}

/** Places of which the thread has not got the vectors, in ascending order; only the first may be within a generation. */
export interface Load {
  readonly type: 'load';
  readonly id: number;
  readonly places: readonly Cursor[];
}

/** Bytes of vectors that one statement reads, and one message has. */
export const loadBytes = 4 * 2 ** 20;

export type WorkerAnswer = Load | { readonly type: 'found'; readonly id: number; readonly found: readonly Near[] };
export type WorkerMessage =
  | RankJob
  | { readonly type: 'loaded'; readonly id: number; readonly pages: readonly Page[] }
  | { readonly type: 'dropped'; readonly id: number };

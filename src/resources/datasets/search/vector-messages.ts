/* What the server and the thread that compares vectors tell each other. */

/** A passage, and the cosine of the angle between its vector and the question's. */
export interface Near {
  readonly id: number;
  readonly cosine: number;
}

/** The vectors of generations, of each the ids and the vectors one after the other. */
export interface Page {
  readonly edition: number;
  readonly ids: Float64Array;
  readonly vectors: Float32Array;
}

/** A question for the thread. */
export interface RankJob {
  readonly type: 'rank';
  readonly id: number;
  readonly table: number;
  readonly dimensions: number;
  readonly vector: Float32Array;
  readonly limit: number;
  readonly editions: Float64Array;
  /** How many passages each has. */
  readonly sizes: Uint32Array;
  readonly cacheBytes: number;
}

/** Generations that the thread has not got. */
export interface Load {
  readonly type: 'load';
  readonly id: number;
  readonly editions: readonly number[];
}

export type WorkerAnswer = Load | { readonly type: 'found'; readonly id: number; readonly found: readonly Near[] };
export type WorkerMessage =
  | RankJob
  | { readonly type: 'loaded'; readonly id: number; readonly pages: readonly Page[] }
  | { readonly type: 'dropped'; readonly id: number };

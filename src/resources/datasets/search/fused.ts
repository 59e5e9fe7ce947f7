/** Where a channel found a passage, from 1; each may be absent. */
export interface Candidate {
  readonly id: number;
  readonly lexical: number | null;
  readonly vector: number | null;
  /** The sum of weight / (60 + rank) over the channels. */
  readonly score: number;
}

/** The usual constant of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009). */
const k = 60;

/** What the index of a model found. */
export interface Nearest {
  readonly ids: readonly number[];
  /** What its ranks count beside those by words, which count 1. */
  readonly weight: number;
}

/** Fuses ranks, best first. Scores of different channels cannot be compared, their ranks can. */
export function fused(lexical: readonly number[], vectors: readonly Nearest[]): readonly Candidate[] {
  const found = new Map<number, { lexical: number | null; vector: number | null; score: number }>();
  const add = (ids: readonly number[], channel: 'lexical' | 'vector', weight = 1) => {
    for (const [at, id] of ids.entries()) {
      const one = found.get(id) ?? { lexical: null, vector: null, score: 0 };
      one[channel] = at + 1;
      one.score += weight / (k + at + 1);
      found.set(id, one);
    }
  };
  add(lexical, 'lexical');
  for (const { ids, weight } of vectors) add(ids, 'vector', weight);
  return Array.from(found, ([id, one]) => ({ id, ...one })).toSorted((one, other) => other.score - one.score || one.id - other.id);
}

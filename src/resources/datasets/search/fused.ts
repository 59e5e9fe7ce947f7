/** Where a channel found a passage, from 1; each may be absent. */
export interface Candidate {
  readonly id: number;
  readonly lexical: number | null;
  readonly vector: number | null;
  /** The sum of 1 / (60 + rank) over the channels. */
  readonly score: number;
}

/** The usual constant of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009). */
const k = 60;

/**
 * Fuses ranks, best first. Scores of different channels cannot be compared, their ranks can.
 *
 * @param vectors the ids that each model's index found
 */
export function fused(lexical: readonly number[], vectors: readonly (readonly number[])[]): readonly Candidate[] {
  const found = new Map<number, { lexical: number | null; vector: number | null; score: number }>();
  const add = (ids: readonly number[], channel: 'lexical' | 'vector') => {
    for (const [at, id] of ids.entries()) {
      const one = found.get(id) ?? { lexical: null, vector: null, score: 0 };
      one[channel] = at + 1;
      one.score += 1 / (k + at + 1);
      found.set(id, one);
    }
  };
  add(lexical, 'lexical');
  for (const ids of vectors) add(ids, 'vector');
  return Array.from(found, ([id, one]) => ({ id, ...one })).toSorted((one, other) => other.score - one.score || one.id - other.id);
}

import { inOrder, keyOf, type Place, type Scored } from './postings.ts';

/** A passage, and where a channel found it, from 1; each may be absent. */
export interface Candidate extends Scored {
  readonly lexical: number | null;
  readonly vector: number | null;
  /** The sum of weight / (60 + rank) over the channels. */
  readonly score: number;
}

/** The usual constant of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009). */
const k = 60;

/** What the index of a model found. */
export interface Nearest {
  readonly places: readonly Place[];
  /** What its ranks count beside those by words, which count 1. */
  readonly weight: number;
}

/** Fuses ranks, best first. Scores of different channels cannot be compared, their ranks can. */
export function fused(lexical: readonly Place[], vectors: readonly Nearest[]): readonly Candidate[] {
  const found = new Map<string, Candidate>();
  const add = (places: readonly Place[], channel: 'lexical' | 'vector', weight = 1) => {
    for (const [at, { edition, ordinal }] of places.entries()) {
      const key = keyOf({ edition, ordinal });
      const one = found.get(key) ?? { edition, ordinal, lexical: null, vector: null, score: 0 };
      found.set(key, { ...one, [channel]: at + 1, score: one.score + weight / (k + at + 1) });
    }
  };
  add(lexical, 'lexical');
  for (const { places, weight } of vectors) add(places, 'vector', weight);
  return [...found.values()].toSorted(inOrder);
}

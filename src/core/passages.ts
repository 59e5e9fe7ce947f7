import type { Context, Origin } from './context.ts';

/** A part of a file in a dataset, as it was found for a question. */
export interface Passage {
  /** Opens it under `/server/mine/passages/{id}`. */
  readonly id: number;
  /** The full name of the dataset. */
  readonly dataset: string;
  readonly filename: string;
  /** From 1; null where there are none. */
  readonly page: number | null;
  /** Where it stands in the text of the file: from, to before; in code points. */
  readonly range: readonly [number, number];
  /** The characters of the file's text at `range`. */
  readonly quote: string;
  /** What a model is given: the quote, with title and headings before it. */
  readonly text: string;
  readonly score: number;
  readonly ranks: Ranks;
  /** Why it was left out, where it was. */
  readonly cut?: 'limit' | 'context' | 'merged' | 'rerank';
}

/** Places from 1; null where that channel did not find it or did not run. */
export interface Ranks {
  readonly lexical: number | null;
  readonly vector: number | null;
  readonly fused: number | null;
  readonly rerank: number | null;
}

/** The part of a context that calls to models made within a request, or within a step of a run, are booked under. Without permits the request has no other calls. */
export interface StepContext extends Pick<Context, 'caller' | 'requestId' | 'signal'>, Partial<Pick<Context, 'step' | 'progress' | 'permits'>>, Origin {}

export interface PassageSearch extends StepContext {
  /** Full names; `all`: each dataset that the caller may read. */
  readonly datasets: 'all' | readonly string[];
  readonly question: string;
  /** Most passages; 0: nothing is looked up, and the datasets must be there all the same. */
  readonly limit: number;
  /** With those that were left out. */
  readonly explain?: boolean;
}

export interface FoundPassages {
  readonly passages: readonly Passage[];
  /** A model of vectors is gone or does not answer: its datasets were searched by words alone. */
  readonly vectorsDown: boolean;
  readonly warnings: readonly string[];
}

/** Searches datasets by words and meaning. @throws Fault `not-found` for a dataset that the caller may not read */
export type SearchPassages = (search: PassageSearch) => Promise<FoundPassages>;

/** Where a passage stands, for readers: the file, and the page if there are pages. */
export const placeOf = ({ filename, page }: Pick<Passage, 'filename' | 'page'>): string => (page === null ? filename : `${filename}, page ${page}`);

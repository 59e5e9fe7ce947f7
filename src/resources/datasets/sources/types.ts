import type { Clock } from '#kit/async/clock';
import type { GuardedStreams } from '#kit/net/guarded-stream';

/** What a dataset follows. Of a bucket without its keys. */
export type SourceLocation =
  | { readonly type: 'page' | 'sitemap' | 'site'; readonly url: string }
  | { readonly type: 'bucket'; readonly bucket: BucketPlace }
  | { readonly type: 'folder'; readonly folder: string };

export interface BucketPlace {
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  /** Only keys that begin with it are followed; empty: all. */
  readonly prefix: string;
}

/** As they were given: may hold `{{secret.NAME}}`. */
export interface BucketKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Something that was not taken into the dataset, or could not be looked at. */
export interface Failure {
  readonly what: string;
  readonly reason: string;
}

/** Something that is in a source: a page, an object, a file. */
export interface Entry {
  /** The address of a page, the key of an object, the path below the folder. */
  readonly address: string;
  /** What the listing says of it, by which it is known to be unchanged; absent: the listing does not say. */
  readonly stamp?: string;
  /** Its bytes; absent: the listing does not say. */
  readonly size?: number;
  /** Its name in the dataset, where its type does not matter for it. */
  readonly filename?: string;
  /** @param known what is in the dataset of it */
  read(known: Known | undefined): Promise<Reading>;
}

/** What is in the dataset of an entry. */
export interface Known {
  readonly address: string;
  readonly filename: string;
  readonly stamp: string;
  readonly hash: string;
  readonly links: readonly string[] | null;
  /** Its content was read within the last days. */
  readonly isFresh: boolean;
  /** This synchronisation has seen it already. */
  readonly isSeen: boolean;
  /** Its file is in the dataset, and still the source's. */
  readonly isThere: boolean;
}

/** What an entry is now. */
export type Reading =
  | { readonly type: 'unchanged' }
  /** It is there no more: what was made of it goes. */
  | { readonly type: 'gone' }
  /** It is nothing for a dataset: a page that only leads elsewhere, an image. */
  | { readonly type: 'passed-over' }
  /** `isAway`: the server could not answer; many of these in a row end the synchronisation. */
  | { readonly type: 'failed'; readonly reason: string; readonly isAway?: true }
  | {
      readonly type: 'content';
      readonly content: AsyncIterable<Uint8Array>;
      readonly filename: string;
      readonly stamp: string;
      readonly links?: readonly string[];
    };

/** Entries of a source, some at a time. */
export type Listing = AsyncIterable<readonly Entry[]>;

export interface ListingDeps {
  readonly streams: GuardedStreams;
  readonly clock: Clock;
  readonly owner: string;
  readonly signal: AbortSignal;
  /** Of a page, or an object. */
  readonly maxBytes: number;
  readonly tally: Tally;
}

/** What a listing tells beside its entries. */
export interface Tally {
  failed(what: string, reason: string): void;
  /** Something of the source was not looked at: what is missing from the listing may be there all the same. */
  incomplete(): void;
}

/** The source cannot be listed: nothing is changed and nothing is deleted. */
export class SourceAway extends Error {
  constructor(reason: string, cause?: unknown) {
    super(reason, { cause });
    this.name = 'SourceAway';
  }
}

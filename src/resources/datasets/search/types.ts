import type { StepContext } from '#core/passages';
import type { Access } from '#store/open';

/** A part of a file's text, before it is in the index. */
export interface Chunk {
  /** Its place in the file, from 0. */
  readonly ordinal: number;
  /** Where it stands in the text of the file: from, to before; in code points. The next chunk begins where it ends, except for white space between them. */
  readonly start: number;
  readonly end: number;
  /** The page or slide on which it begins, from 1; null where there are none. */
  readonly page: number | null;
  /** Title of the document, path of headings, and the header of a table that began in an earlier chunk; may be empty. */
  readonly context: string;
  /** The characters of the text from `start` to `end`. */
  readonly quote: string;
  /** What is embedded, searched and shown to models: the context, and the quote without the white space around it. */
  readonly text: string;
  /** Of `text`, by o200k. */
  readonly tokens: number;
}

export interface Chunked {
  readonly chunks: readonly Chunk[];
  /** Of the text, as ISO 639-1: `en`; `und` where it is not known. */
  readonly language: string;
}

/** The vectors of one model: each has this many dimensions. */
export interface VectorModel {
  readonly model: string;
  readonly dimensions: number;
}

/** Some chunks of one file in one generation. */
export interface NewPassages {
  readonly datasetId: number;
  readonly fileId: number;
  /** From 1, larger than those before it. Its passages are found once `flip` has made it the file's. */
  readonly generation: number;
  /** As `chunked` found it: the same for all chunks of a generation. */
  readonly language: string;
  readonly chunks: readonly Chunk[];
  /** One for each chunk; absent where the file has none, as where the model does not read its language. */
  readonly vectors?: VectorModel & { readonly of: readonly (readonly number[] | Float32Array)[] };
}

export interface GenerationCounts {
  readonly passages: number;
  readonly tokens: number;
}

/** The passages of files, with their words and vectors. */
export interface PassageIndex {
  /** Makes the table for the vectors of a model, where there is none yet. To be called before `add`, outside of its transaction. */
  prepare(vectors: VectorModel): Promise<void>;
  /** Adds chunks, to be called in pieces of at most 256, each in a transaction. What is there already stays as it is, so a piece may be repeated. */
  add(inside: Access, passages: NewPassages): Promise<void>;
  /** Adds vectors of another model to passages that have vectors: one for each ordinal. */
  addVectors(inside: Access, file: FileGeneration & VectorModel & { readonly of: ReadonlyMap<number, readonly number[] | Float32Array> }): Promise<void>;
  /** The texts of a generation, in order, for another model: at most `limit` from this ordinal on. */
  texts(file: FileGeneration, from: number, limit: number): Promise<readonly { readonly ordinal: number; readonly text: string }[]>;
  /** Makes a generation the file's, in the transaction that it is given: from its commit on the next search finds these passages and none of an earlier generation. */
  flip(inside: Access, file: FileGeneration): Promise<GenerationCounts>;
  /** How many passages and tokens a generation has. */
  counts(inside: Access, file: FileGeneration): Promise<GenerationCounts>;
  /**
   * Copies the passages of the generation that counts into a file of another dataset, as its given generation, without parsing or embedding anything again; `flip`
   * then makes it that file's. In pieces, each a transaction of its own; may be repeated.
   */
  copy(from: { readonly fileId: number }, to: FileGeneration & { readonly datasetId: number }): Promise<GenerationCounts>;
  /** Removes the passages of a file, or those of all generations but one, in pieces. */
  remove(file: { readonly fileId: number; readonly exceptGeneration?: number }): Promise<void>;
  /** Removes a dataset's vectors of a model, in pieces, as long as that is neither its own nor one whose vectors are being made for it. */
  removeVectors(datasetId: number, vectors: VectorModel): Promise<void>;
  /** Removes what belongs to no file any more. @returns how many generations there were */
  reconcile(): Promise<number>;
}

export interface FileGeneration {
  readonly fileId: number;
  readonly generation: number;
}

/** Whom the vectors are made for, and of what. */
export interface EmbedTexts extends StepContext {
  readonly model: string;
  /** Absent: as many as the model has. */
  readonly dimensions?: number;
  readonly texts: readonly string[];
  /** A question goes before documents. */
  readonly purpose: 'question' | 'document';
}

/** Makes vectors through the gateway, booked. @returns one for each text, in order. @throws Fault, `not-found` for a model that is gone */
export type EmbedText = (asked: EmbedTexts) => Promise<readonly Float32Array[]>;

/** Checks that training could be paid for now, before anything is kept. @throws Fault `quota-spent` and others as `EmbedText`, before any model is asked */
export type AffordTraining = (asked: Pick<EmbedTexts, 'model' | 'caller'>) => Promise<void>;

/** Vectors that were made before, by model, dimensions and the hash of the text. */
export interface EmbeddingCache {
  /** @returns one for each text; undefined where it is not known */
  find(vectors: VectorModel, texts: readonly string[]): Promise<readonly (Float32Array | undefined)[]>;
  keep(vectors: VectorModel, texts: readonly string[], made: readonly (readonly number[] | Float32Array)[]): Promise<void>;
  /** Forgets what has not been asked for in this many days, in pieces. */
  sweep(days: number): Promise<void>;
}

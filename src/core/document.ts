export interface DocumentText {
  /** The media type, read from the bytes. */
  readonly type: string;
  /** Markdown. */
  readonly text: string;
  /** Where its parts stand in the document, in order and without overlap; what lies between them belongs to no place. */
  readonly places: readonly DocumentPlace[];
  readonly title?: string;
}

/** A part of a document's text. */
export interface DocumentPlace {
  /** From here to before `end`, in UTF-16 units. */
  readonly start: number;
  readonly end: number;
  /** The page or slide, from 1. */
  readonly page?: number;
  readonly sheet?: string;
  /** The row of a sheet or table, from 1. */
  readonly row?: number;
}

/** Which pages are read by OCR: none, all, or those with hardly any text. */
export type OcrStrategy = 'fast' | 'hi_res' | 'auto';

export interface ConvertOptions {
  readonly filename: string;
  /** `auto` by default. */
  readonly strategy?: OcrStrategy;
  /** Rows of CSV as records, `column: value`, instead of a table. */
  readonly records?: boolean;
  /** Whose document it is, as text: users take turns. */
  readonly owner?: string;
  readonly signal?: AbortSignal;
}

/**
 * Makes text of a document, in a process of its own.
 *
 * @throws Fault `unsupported-type` for an unknown type, `unprocessable` saying whether it is encrypted, corrupt or empty, `too-large`, `overloaded` while too many wait
 */
export type ConvertDocument = (content: Blob, options: ConvertOptions) => Promise<DocumentText>;

import type { Place } from './markdown.ts';

/** What a reader makes of a document. */
export interface Converted {
  /** Markdown. */
  readonly text: string;
  readonly places: readonly Place[];
  readonly title?: string;
  /** Of a mail: the names of its attachments, in order. */
  readonly attachments?: readonly string[];
}

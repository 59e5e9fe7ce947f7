import { parentPort } from 'node:worker_threads';
import { masked, type Sought } from './find.ts';

/** A search request; the thread answers with `Looked`. Before the first request it reports that it has started. */
export interface Job {
  readonly sought: Sought;
  readonly texts: readonly string[];
  /** Only the existence of a match matters: the resulting text is '' then. */
  readonly yesOrNo: boolean;
}

/** For each text, the text with its matches masked; undefined without a match. */
export type PatternMatches = readonly (string | undefined)[];

const port = parentPort!;

port.on('message', ({ sought, texts, yesOrNo }: Job) => {
  port.postMessage(
    texts.map((text) => {
      const left = masked(text, sought);
      return left !== undefined && yesOrNo ? '' : left;
    }) satisfies PatternMatches,
  );
});

port.postMessage('ready');

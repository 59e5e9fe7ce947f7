import { parentPort } from 'node:worker_threads';
import { masked, type Sought } from './find.ts';

/** Texts in which something is looked for; answered by `Looked`. Before the first one the thread says that it has begun. */
export interface Job {
  readonly sought: Sought;
  readonly texts: readonly string[];
  /** Only whether something is there is of interest: what was found is '' then. */
  readonly yesOrNo: boolean;
}

/** For each text how it reads without what was found; nothing where nothing was. */
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

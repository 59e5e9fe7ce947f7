import { parentPort } from 'node:worker_threads';
import type { JsonObject } from '#core/json';
import { verdictOn } from './verdict.ts';

/** A text that is held against a schema; answered by `{ verdict }`. Before the first one the thread says that it has begun. */
export interface Question {
  readonly text: string;
  readonly schema: JsonObject;
  readonly steps: number;
}

/** Nothing where it took too long. */
export type Verdict = boolean | undefined;

const port = parentPort!;

port.on('message', ({ text, schema, steps }: Question) => port.postMessage({ verdict: verdictOn(text, schema, steps) satisfies Verdict }));
port.postMessage('ready');

import { parentPort } from 'node:worker_threads';
import type { JsonObject } from '#core/json';
import { verdictOn } from './verdict.ts';

/** A text to validate against a schema; answered by `{ verdict }`. Before the first one the thread reports that it has started. */
export interface Question {
  readonly text: string;
  readonly schema: JsonObject;
  readonly steps: number;
}

/** Undefined if it took too long. */
export type Verdict = boolean | undefined;

const port = parentPort!;

port.on('message', ({ text, schema, steps }: Question) => port.postMessage({ verdict: verdictOn(text, schema, steps) satisfies Verdict }));
port.postMessage('ready');

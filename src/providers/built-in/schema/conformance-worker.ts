import { parentPort } from 'node:worker_threads';
import type { JsonObject } from '#core/json';
import { verdictOn } from './verdict.ts';

/** A text to validate against a schema; answered by `Judged`. */
export interface Question {
  readonly text: string;
  readonly schema: JsonObject;
  readonly steps: number;
}

export interface Judged {
  /** Undefined if it took too long. */
  readonly verdict: boolean | undefined;
}

const port = parentPort!;

port.on('message', ({ text, schema, steps }: Question) => port.postMessage({ verdict: verdictOn(text, schema, steps) } satisfies Judged));
port.postMessage('ready');

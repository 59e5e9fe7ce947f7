import { extname } from 'node:path';
import type { Clock } from '#kit/async/clock';
import { openFairSemaphore, QueueFull } from '#kit/async/fair-semaphore';
import { JobThread, JobTooLong } from '#kit/async/job-thread';
import { Fault, queueFull } from '#core/fault';
import type { JsonObject } from '#core/json';
import type { Judged, Question } from './conformance-worker.ts';
import { readPattern } from './pattern.ts';
import { verdictOn } from './verdict.ts';

/**
 * Validates the text of an answer against a JSON Schema. Texts come from models and schemas from clients, so a validation that takes more than a few
 * milliseconds moves to a worker thread, and the thread is terminated if the job takes too long. One thread serves short jobs and one the rest; each runs one
 * job of an owner at a time, so that no user's schema delays those of others.
 */
export interface Conformance {
  /**
   * @returns a function that validates a text; false if that takes too long. It throws the signal's reason, or Fault `rate-limited` or `overloaded` if too
   * many jobs wait
   * @throws Fault `invalid` for a schema that is too large
   */
  against(schema: JsonObject, asking: { readonly owner: string; readonly signal: AbortSignal }): (text: string) => boolean | Promise<boolean>;
  /** Whether a regular expression of a schema is one that texts are checked against: nothing keeps to any other. */
  isPattern(source: string): boolean;
  close(): Promise<void>;
}

/** Longest text (UTF-16 units) that is validated on the server's own thread, and the most steps there, which take up to 5 ms. */
const short = 32_768;
const fewSteps = 5000;
/** Most values and names in a schema: copying this number to a thread takes some 10 ms. */
const mostValues = 20_000;

/** The step limit of a job on each thread in turn, and the milliseconds after which the thread is terminated. */
const rounds = [
  { steps: 50_000, milliseconds: 1000 },
  { steps: 500_000, milliseconds: 3000 },
];

/** A thread runs one job at a time; sizes are characters of waiting texts. */
const bounds = { each: 1, all: 1, unfinished: { each: { jobs: 32, size: 2 ** 25 }, all: { jobs: 1000, size: 2 ** 28 } } };

function notJudged(error: unknown): undefined {
  if (error instanceof JobTooLong) return undefined;
  throw error instanceof QueueFull ? queueFull(error) : error;
}

export function openConformance(clock: Pick<Clock, 'after'>): Conformance {
  const program = new URL(`./conformance-worker${extname(import.meta.filename)}`, import.meta.url);
  const threads = rounds.map((round) => ({ ...round, thread: new JobThread<Question, Judged>(program, clock), owners: openFairSemaphore(bounds) }));
  const conformsApart = async (text: string, schema: JsonObject, { owner, signal }: { readonly owner: string; readonly signal: AbortSignal }) => {
    for (const { steps, milliseconds, thread, owners } of threads) {
      const judged = await owners.run({ owner, size: text.length, signal }, () => thread.run({ text, schema, steps }, { milliseconds })).catch(notJudged);
      if (judged?.verdict !== undefined) return judged.verdict;
    }
    return false;
  };
  return {
    against(schema, asking) {
      if (isTooLarge(schema)) throw new Fault('invalid', `output.schema must have at most ${mostValues} values and names in it.`, { field: 'output.schema' });
      return (text) => (text.length <= short ? verdictOn(text, schema, fewSteps) : undefined) ?? conformsApart(text, schema, asking);
    },
    isPattern: (source) => readPattern(source) !== undefined,
    async close() {
      const reason = new Error('The server is shutting down.');
      for (const { owners } of threads) owners.close(reason);
      await Promise.all(threads.map(({ thread }) => thread.close(reason)));
    },
  };
}

/** Stops counting at the limit. */
function isTooLarge(schema: JsonObject): boolean {
  let left = mostValues;
  const open: unknown[] = [schema];
  while (open.length > 0) {
    const value = open.pop();
    if (value === null || typeof value !== 'object') continue;
    const isList = Array.isArray(value);
    const inner: readonly unknown[] = isList ? value : Object.values(value);
    left -= inner.length * (isList ? 1 : 2);
    if (left < 0) return true;
    for (const one of inner) open.push(one);
  }
  return false;
}

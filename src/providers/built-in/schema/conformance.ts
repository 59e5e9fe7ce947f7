import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '#kit/async/clock';
import { openFairSemaphore, QueueFull } from '#kit/async/fair-semaphore';
import { Fault, queueFull } from '#core/fault';
import type { JsonObject } from '#core/json';
import type { Question, Verdict } from './conformance-worker.ts';
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

const refused = (error: unknown): never => {
  throw error instanceof QueueFull ? queueFull(error) : error;
};

export function openConformance(clock: Pick<Clock, 'after'>): Conformance {
  const threads = rounds.map((round) => ({ ...round, thread: new Thread(clock), owners: openFairSemaphore(bounds) }));
  const conformsApart = async (text: string, schema: JsonObject, { owner, signal }: { readonly owner: string; readonly signal: AbortSignal }) => {
    for (const { steps, milliseconds, thread, owners } of threads) {
      const verdict = await owners
        .run({ owner, size: text.length, signal }, () => thread.take({ question: { text, schema, steps }, milliseconds, signal }))
        .catch(refused);
      if (verdict !== undefined) return verdict;
    }
    return false;
  };
  return {
    against(schema, asking) {
      if (isTooLarge(schema)) throw new Fault('invalid', `output.schema must have at most ${mostValues} values and names in it.`, { field: 'output.schema' });
      return (text) => (text.length <= short ? verdictOn(text, schema, fewSteps) : undefined) ?? conformsApart(text, schema, asking);
    },
    async close() {
      await Promise.all(threads.map(({ thread }) => thread.close()));
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

interface Job {
  readonly question: Question;
  readonly milliseconds: number;
  readonly signal: AbortSignal;
}

interface Waiting extends Job {
  readonly resolve: (verdict: Verdict) => void;
  readonly reject: (error: unknown) => void;
}

const closing = () => new Error('The server is shutting down.');

/** Runs one job after the other. A thread whose job took too long is replaced. */
class Thread {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #line: Waiting[] = [];
  #current: Waiting | undefined;
  #worker: Worker | undefined;
  #isReady = false;
  #isClosed = false;
  #cancelTimer = () => {};

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock;
  }

  /** @returns undefined if it took too long */
  take(job: Job): Promise<Verdict> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(closing());
      this.#line.push({ ...job, resolve, reject });
      this.#next();
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer();
    const worker = this.#worker;
    this.#worker = undefined;
    for (const { reject } of [...(this.#current ? [this.#current] : []), ...this.#line.splice(0)]) reject(closing());
    this.#current = undefined;
    await worker?.terminate();
  }

  #next(): void {
    while (!this.#current && this.#line.length > 0) {
      const waiting = this.#line.shift()!;
      if (waiting.signal.aborted) waiting.reject(waiting.signal.reason);
      else {
        this.#current = waiting;
        this.#worker ??= this.#begun();
        this.#worker.ref();
        this.#worker.postMessage(waiting.question);
        if (this.#isReady) this.#limit(waiting);
      }
    }
  }

  /** Handles a pending verdict first, in case this thread was too busy to receive it. */
  #limit(waiting: Waiting): void {
    this.#cancelTimer = this.#clock.after(waiting.milliseconds, () => setImmediate(() => this.#current === waiting && this.#ended()));
  }

  /** The first message reports that the thread has started: time limits count from then on. */
  #begun(): Worker {
    const worker = new Worker(new URL(`./conformance-worker${extname(import.meta.filename)}`, import.meta.url));
    this.#isReady = false;
    worker.once('message', () => {
      worker.on('message', ({ verdict }: { readonly verdict: Verdict }) => {
        if (this.#worker === worker) this.#done(({ resolve }) => resolve(verdict));
      });
      if (this.#worker !== worker) return;
      this.#isReady = true;
      if (this.#current) this.#limit(this.#current);
    });
    worker.once('error', (error: Error) => this.#worker === worker && this.#ended(error));
    worker.once('exit', () => this.#worker === worker && this.#ended(new Error('A thread that validates values against schemas has ended.')));
    return worker;
  }

  #ended(error?: Error): void {
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
    this.#done(({ resolve, reject }) => (error ? reject(error) : resolve(undefined)));
  }

  #done(answer: (waiting: Waiting) => void): void {
    this.#cancelTimer();
    const waiting = this.#current;
    this.#current = undefined;
    this.#worker?.unref();
    if (waiting) answer(waiting);
    this.#next();
  }
}

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from './clock.ts';
import type { Job, Looked } from './finding/worker.ts';
import { openTurnstile } from './turnstile.ts';

export type { Sought } from './finding/find.ts';

/**
 * Looks for patterns in texts of strangers. JavaScript's regular expressions can take years for a short text, and nothing on their own thread can stop them: they
 * run on threads of their own, and a job that takes too long ends with its thread. There is one thread for short texts and one for long ones, so that nobody's long
 * text holds up a sentence; each begins with its first job. Of one owner each has one job at a time: nobody's many texts hold up those of others.
 */
export interface Finding {
  /** @returns for each text how it reads without what was found; nothing where nothing was. @throws FindingTooSlow */
  look(job: Job, asking: { readonly owner: string; readonly signal: AbortSignal }): Promise<Looked>;
  close(): Promise<void>;
}

/** The time for a job was over: its pattern does not get on with its text. */
export class FindingTooSlow extends Error {
  constructor() {
    super('Looking for a pattern took too long.');
    this.name = 'FindingTooSlow';
  }
}

/** Characters (UTF-16 units) up to which a job is a short one. */
const short = 65_536;

/** Milliseconds that a job may take, and besides for each character. */
const patience = { job: 1000, character: 0.003 };

export function openFinding(clock: Pick<Clock, 'after'>): Finding {
  const [quick, slow] = [new Thread(clock), new Thread(clock)];
  return {
    look(job, { owner, signal }) {
      const length = job.texts.reduce((sum, text) => sum + text.length, 0);
      const milliseconds = patience.job + patience.character * length;
      const thread = length > short ? slow : quick;
      return thread.owners.through(owner, signal, () => new Promise((resolve, reject) => thread.take({ job, milliseconds, signal, resolve, reject })));
    },
    async close() {
      await Promise.all([quick.close(), slow.close()]);
    },
  };
}

const closing = () => new Error('The server is shutting down.');

interface Waiting {
  readonly job: Job;
  readonly milliseconds: number;
  readonly signal: AbortSignal;
  readonly resolve: (looked: Looked) => void;
  readonly reject: (error: unknown) => void;
}

/** Does one job after the other. It begins anew after one that took too long. */
class Thread {
  readonly owners = openTurnstile({ each: 1, all: Infinity, waiting: Infinity });
  readonly #clock: Pick<Clock, 'after'>;
  readonly #line: Waiting[] = [];
  #current: Waiting | undefined;
  #worker: Worker | undefined;
  /** Has it told that it has begun? Until then no time counts. */
  #isReady = false;
  #cancelTimer = () => {};
  #isClosed = false;

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock;
  }

  take(waiting: Waiting): void {
    if (this.#isClosed) return waiting.reject(closing());
    this.#line.push(waiting);
    this.#next();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const worker = this.#worker;
    this.#worker = undefined;
    this.#cancelTimer();
    const all = [...(this.#current ? [this.#current] : []), ...this.#line.splice(0)];
    this.#current = undefined;
    for (const { reject } of all) reject(closing());
    await worker?.terminate();
  }

  #next(): void {
    while (!this.#current && this.#line.length > 0) {
      const waiting = this.#line.shift()!;
      if (waiting.signal.aborted) waiting.reject(waiting.signal.reason);
      else this.#begin(waiting);
    }
  }

  #begin(waiting: Waiting): void {
    this.#current = waiting;
    this.#worker ??= this.#begun();
    this.#worker.ref();
    this.#worker.postMessage(waiting.job);
    if (this.#isReady) this.#limit(waiting);
  }

  #limit(waiting: Waiting): void {
    // An answer that waits to be heard, because this thread was busy, is heard first.
    const over = () => setImmediate(() => this.#current === waiting && this.#ended(new FindingTooSlow()));
    this.#cancelTimer = this.#clock.after(waiting.milliseconds, over);
  }

  #begun(): Worker {
    const worker = new Worker(new URL(`./finding/worker${extname(import.meta.filename)}`, import.meta.url));
    this.#isReady = false;
    worker.once('message', () => {
      worker.on('message', (looked: Looked) => {
        if (this.#worker === worker) this.#done(({ resolve }) => resolve(looked));
      });
      if (this.#worker !== worker) return;
      this.#isReady = true;
      if (this.#current) this.#limit(this.#current);
    });
    worker.once('error', (error) => this.#worker === worker && this.#ended(error));
    worker.once('exit', () => this.#worker === worker && this.#ended(new Error('A thread that looks for patterns has ended.')));
    return worker;
  }

  /** The thread is gone, or must go. */
  #ended(error: unknown): void {
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
    this.#done(({ reject }) => reject(error));
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

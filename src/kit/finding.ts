import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from './clock.ts';
import type { Job, Looked } from './finding/worker.ts';

export type { Sought } from './finding/find.ts';

/**
 * Looks for patterns in texts of strangers. JavaScript's regular expressions can take years for a short text, and nothing on their own thread can stop them: they
 * run on threads of their own, and a job that takes too long ends with its thread. There is one thread for short texts and one for long ones, so that nobody's long
 * text holds up a sentence; each begins with its first job.
 */
export interface Finding {
  /**
   * @param owner who asks: where several do, they are answered in turn
   * @returns for each text how it reads without what was found; nothing where nothing was
   * @throws FindingTooSlow
   */
  look(job: Job, signal: AbortSignal, owner?: string): Promise<Looked>;
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
    look(job, signal, owner = '') {
      const length = job.texts.reduce((sum, text) => sum + text.length, 0);
      const milliseconds = patience.job + patience.character * length;
      return new Promise((resolve, reject) => (length > short ? slow : quick).take(owner, { job, milliseconds, signal, resolve, reject }));
    },
    async close() {
      await Promise.all([quick.close(), slow.close()]);
    },
  };
}

interface Waiting {
  readonly job: Job;
  readonly milliseconds: number;
  readonly signal: AbortSignal;
  readonly resolve: (looked: Looked) => void;
  readonly reject: (error: unknown) => void;
}

/** Does one job after the other. It begins anew after one that took too long. */
class Thread {
  readonly #clock: Pick<Clock, 'after'>;
  /** What waits, by owner, in the order of their turns: whoever has much to ask waits for himself alone. */
  readonly #lines = new Map<string, Waiting[]>();
  #current: Waiting | undefined;
  #worker: Worker | undefined;
  /** Has it told that it has begun? Until then no time counts. */
  #isReady = false;
  #cancelTimer = () => {};

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock;
  }

  take(owner: string, waiting: Waiting): void {
    const line = this.#lines.get(owner);
    if (line) line.push(waiting);
    else this.#lines.set(owner, [waiting]);
    this.#next();
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#cancelTimer();
    const all = [...(this.#current ? [this.#current] : []), ...[...this.#lines.values()].flat()];
    this.#current = undefined;
    this.#lines.clear();
    for (const { reject } of all) reject(new Error('The server is shutting down.'));
    await worker?.terminate();
  }

  #next(): void {
    while (!this.#current) {
      const [turn] = this.#lines;
      if (!turn) return;
      const [owner, line] = turn;
      const waiting = line.shift()!;
      this.#lines.delete(owner);
      if (line.length > 0) this.#lines.set(owner, line);
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

import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../async/clock.ts';
import { openFairSemaphore, type FairSemaphore } from '../async/fair-semaphore.ts';
import type { Job, PatternMatches } from './worker.ts';

export type { Sought } from './find.ts';

/**
 * Searches untrusted texts for patterns. A JavaScript regular expression can take years on a short text and cannot be interrupted on its own thread, so searches
 * run on worker threads, and a job over its time limit is ended by terminating its thread. One thread serves short jobs and one serves long ones, so that a long
 * text never delays a sentence; each starts with its first job. Both serve users in turn; the texts of a long job are searched piece by piece.
 */
export interface Patterns {
  /**
   * @returns for each text, the text with its matches masked; undefined without a match
   * @throws FindingTooSlow; QueueFull; the signal's reason, also for a job that has begun
   */
  look(job: Job, asking: { readonly owner: string; readonly signal: AbortSignal }): Promise<PatternMatches>;
  close(): Promise<void>;
}

/** A job exceeded its time limit: the pattern is too slow on this text. */
export class PatternTooSlow extends Error {
  constructor() {
    super('Looking for a pattern took too long.');
    this.name = 'FindingTooSlow';
  }
}

/** Characters (UTF-16 units): largest short job, and largest piece of a long job. */
const short = 65_536;

/** Time limit of a job in milliseconds: a base, an amount per character, and a maximum. */
const patience = { job: 1000, character: 0.003, most: 5000 };
/** Milliseconds that a turn continues after its client has disconnected: most turns end sooner than a new thread starts. */
const afterLeaving = 100;

/** Sizes are characters: an owner's are four requests of the largest size. */
const bounds = { each: 1, all: 1, unfinished: { each: { jobs: 1000, size: 1 << 27 }, all: { jobs: 8000, size: 1 << 29 } } };

export function openPatterns(clock: Pick<Clock, 'after' | 'monotonic'>): Patterns {
  const [quick, slow] = [new Thread(clock), new Thread(clock)];
  return {
    look({ texts, ...wanted }, { owner, signal }) {
      const size = sizeOf(texts);
      const thread = size > short ? slow : quick;
      let milliseconds = Math.min(patience.job + patience.character * size, patience.most);
      return thread.users.runInPieces({ owner, size, signal }, async (turn) => {
        const looked: (string | undefined)[] = [];
        for (const piece of piecesOf(texts)) {
          const found = await turn(sizeOf(piece), async () => {
            const beganAt = clock.monotonic();
            const result = await thread.take({ ...wanted, texts: piece }, Math.max(0, milliseconds), signal);
            milliseconds -= clock.monotonic() - beganAt;
            return result;
          });
          looked.push(...found);
        }
        return looked;
      });
    },
    async close() {
      await Promise.all([quick.close(), slow.close()]);
    },
  };
}

/** A text without a character takes time too. */
const sizeOf = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.length + 1, 0);

/** A batch of short texts, or one long text. */
function* piecesOf(texts: readonly string[]): Iterable<readonly string[]> {
  let piece: string[] = [];
  let size = 0;
  for (const text of texts) {
    if (piece.length > 0 && size + text.length >= short) {
      yield piece;
      piece = [];
      size = 0;
    }
    piece.push(text);
    size += text.length + 1;
  }
  yield piece;
}

const closing = () => new Error('The server is shutting down.');

interface PatternJob {
  readonly job: Job;
  readonly milliseconds: number;
  readonly resolve: (looked: PatternMatches) => void;
  readonly reject: (error: unknown) => void;
}

/** A worker thread that runs one turn at a time. It is replaced after a turn that took too long. */
class Thread {
  readonly users: FairSemaphore;
  readonly #clock: Pick<Clock, 'after'>;
  #current: PatternJob | undefined;
  #worker: Worker | undefined;
  /** Whether it has reported its start. Time limits count from then on. */
  #isReady = false;
  #cancelTimer = () => {};

  constructor(clock: Pick<Clock, 'after' | 'monotonic'>) {
    this.#clock = clock;
    this.users = openFairSemaphore(bounds, clock);
  }

  /** Must not be called concurrently. */
  async take(job: Job, milliseconds: number, signal: AbortSignal): Promise<PatternMatches> {
    let cancel = () => {};
    const left = () => {
      const turn = this.#current;
      cancel = this.#clock.after(afterLeaving, () => this.#current === turn && this.#ended(signal.reason));
    };
    signal.addEventListener('abort', left);
    try {
      return await new Promise<PatternMatches>((resolve, reject) => this.#begin({ job, milliseconds, resolve, reject }));
    } finally {
      cancel();
      signal.removeEventListener('abort', left);
    }
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.users.close(closing());
    this.#done(({ reject }) => reject(closing()));
    await worker?.terminate();
  }

  #begin(turn: PatternJob): void {
    this.#current = turn;
    this.#worker ??= this.#begun();
    this.#worker.ref();
    this.#worker.postMessage(turn.job);
    if (this.#isReady) this.#limit(turn);
  }

  #limit(turn: PatternJob): void {
    // Handles a pending answer first, in case this thread was too busy to receive it.
    const over = () => setImmediate(() => this.#current === turn && this.#ended(new PatternTooSlow()));
    this.#cancelTimer = this.#clock.after(turn.milliseconds, over);
  }

  #begun(): Worker {
    const worker = new Worker(new URL(`./worker${extname(import.meta.filename)}`, import.meta.url));
    this.#isReady = false;
    worker.once('message', () => {
      worker.on('message', (looked: PatternMatches) => {
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

  /** The thread has ended or must be terminated. */
  #ended(error: unknown): void {
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
    this.#done(({ reject }) => reject(error));
  }

  #done(answer: (turn: PatternJob) => void): void {
    this.#cancelTimer();
    const turn = this.#current;
    this.#current = undefined;
    this.#worker?.unref();
    if (turn) answer(turn);
  }
}

import { basename } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from './clock.ts';

/** A job took longer than it may, and its thread was terminated. */
export class JobTooLong extends Error {
  constructor() {
    super('A job on a worker thread took too long.');
    this.name = 'JobTooLong';
  }
}

interface JobLimits {
  /** Absent: it may take as long as it takes. */
  readonly milliseconds?: number;
  /** Ends the job when its client leaves; absent: it is done to its end. */
  readonly signal?: AbortSignal;
}

interface Current<Result> extends JobLimits {
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Milliseconds that a job goes on after its client has left: most end sooner than a new thread starts. */
const afterLeaving = 100;

/**
 * A worker thread that does one job at a time. It starts with the first job, keeps the process alive only during jobs, and is replaced when it has died or a job took
 * too long. Its program sends one message when it has started, from which on time limits count, and then one for each job.
 */
export class JobThread<Job, Result> {
  readonly #program: URL;
  readonly #clock: Pick<Clock, 'after'>;
  #current: Current<Result> | undefined;
  #worker: Worker | undefined;
  #isReady = false;
  #cancelTimer = () => {};

  constructor(program: URL, clock: Pick<Clock, 'after'>) {
    this.#program = program;
    this.#clock = clock;
  }

  /** Must not be called concurrently. @throws JobTooLong; the signal's reason; what the thread died of */
  async run(job: Job, limits: JobLimits = {}): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const current: Current<Result> = { ...limits, resolve, reject };
    const { signal } = limits;
    let cancel = () => {};
    const left = () => {
      cancel = this.#clock.after(afterLeaving, () => this.#current === current && this.#ended(signal?.reason));
    };
    signal?.addEventListener('abort', left);
    try {
      this.#worker ??= this.#begun();
      this.#worker.postMessage(job);
      this.#worker.ref();
      this.#current = current; // only now: where the system gives no thread, nobody would handle its end
      if (this.#isReady) this.#limit(current);
      return await promise;
    } finally {
      cancel();
      signal?.removeEventListener('abort', left);
    }
  }

  /** Ends the thread, and rejects the job that it does. */
  async close(reason: Error): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#done(({ reject }) => reject(reason));
    await worker?.terminate();
  }

  #limit(current: Current<Result>): void {
    const { milliseconds = Infinity } = current;
    // handles a pending answer first, in case this thread was too busy to receive it
    const over = () => setImmediate(() => this.#current === current && this.#ended(new JobTooLong()));
    if (milliseconds !== Infinity) this.#cancelTimer = this.#clock.after(milliseconds, over);
  }

  #begun(): Worker {
    const worker = new Worker(this.#program);
    this.#isReady = false;
    worker.once('message', () => {
      worker.on('message', (result: Result) => {
        if (this.#worker === worker) this.#done(({ resolve }) => resolve(result));
      });
      if (this.#worker !== worker) return;
      this.#isReady = true;
      if (this.#current) this.#limit(this.#current);
    });
    worker.once('error', (error) => this.#worker === worker && this.#ended(error));
    worker.once('exit', () => this.#worker === worker && this.#ended(new Error(`The thread ${basename(this.#program.pathname)} has ended.`)));
    return worker;
  }

  /** The thread has died or must be terminated. */
  #ended(error: unknown): void {
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
    this.#done(({ reject }) => reject(error));
  }

  #done(answer: (current: Current<Result>) => void): void {
    this.#cancelTimer();
    const current = this.#current;
    this.#current = undefined;
    this.#worker?.unref();
    if (current) answer(current);
  }
}

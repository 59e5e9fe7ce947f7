import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { openFairSemaphore, type Job } from '#kit/async/fair-semaphore';
import type { TextJob, TextRead } from './sentence-worker.ts';

/**
 * The packaged sentence model (Universal Sentence Encoder lite, English), on worker threads: the first starts with the first text and the others with texts that come
 * meanwhile, each in 0.2 s and with some 250 MB. A text of 100 characters takes 8 ms, one of 1,000 about 60 ms; the time grows faster than the length. Users are served
 * in turn, questions before documents.
 */
export interface Sentences {
  /** How many texts are read at the same time. */
  readonly threads: number;
  /**
   * Runs a job that embeds texts, at most `threads` of them at once. `job.size` is their length in characters.
   *
   * @throws QueueFull; the signal's reason
   */
  reading<Result>(job: Job, work: (read: Read) => Promise<Result>): Promise<Result>;
}

/** @returns 512 numbers, of length 1 */
export type Read = (text: string) => Promise<Float32Array>;

export const sentenceDimensions = 512;

/** Sizes are characters: 2,048 inputs, each of the maximum length that is read. */
const unfinished = { each: { jobs: 1000, size: 1 << 26 }, all: { jobs: 8000, size: 1 << 29 } };
/** Milliseconds without a text after which a thread is ended, unless it is the last one. */
const idleMilliseconds = 60_000;

export function openSentences(threads = 1): Sentences {
  const users = openFairSemaphore({ each: threads, all: threads, unfinished });
  /** The one that was used last is first. */
  const free: SentenceThread[] = [];
  let begun = 0;
  const begin = () => {
    begun++;
    return new SentenceThread();
  };
  const endIdle = (thread: SentenceThread) => {
    if (begun === 1) return;
    begun--;
    free.splice(free.indexOf(thread), 1);
    thread.end();
  };

  const read: Read = async (text) => {
    const thread = free.shift() ?? begin();
    clearTimeout(thread.idle);
    try {
      return await thread.read(text);
    } finally {
      free.unshift(thread); // the same ones go on, so that the others may end
      thread.idle = setTimeout(endIdle, idleMilliseconds, thread).unref();
    }
  };

  return { threads, reading: (job, work) => users.runInPieces(job, (turn) => work((text) => turn(text.length, () => read(text)))) };
}

/** A thread that has the model, and reads a text at a time. One that died is started again by the next text. */
class SentenceThread {
  /** Ends it. */
  idle: NodeJS.Timeout | undefined;
  #worker: Worker | undefined;
  #waiting: PromiseWithResolvers<Float32Array> | undefined;

  read(text: string): Promise<Float32Array> {
    const worker = (this.#worker ??= this.#begin());
    worker.ref();
    this.#waiting = Promise.withResolvers();
    worker.postMessage({ text } satisfies TextJob);
    return this.#waiting.promise;
  }

  end(): void {
    void this.#worker?.terminate();
    this.#worker = undefined;
  }

  #begin(): Worker {
    const begun = new Worker(new URL(`./sentence-worker${extname(import.meta.filename)}`, import.meta.url));
    const died = (error: unknown) => {
      if (this.#worker !== begun) return;
      this.#worker = undefined;
      this.#waiting?.reject(error);
    };
    begun.on('message', ({ vector }: TextRead) => {
      if (this.#worker !== begun) return;
      this.#waiting?.resolve(vector);
      begun.unref();
    });
    begun.once('error', died);
    begun.once('exit', (code) => died(new Error(`The sentence model ended with ${code}.`)));
    return begun;
  }
}

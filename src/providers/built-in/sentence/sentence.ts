import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { openFairSemaphore, type Job } from '#kit/async/fair-semaphore';
import type { TextJob, TextRead } from './sentence-worker.ts';

/**
 * The packaged sentence model (Universal Sentence Encoder lite, English), on a worker thread that starts with the first text: 0.2 s and some 250 MB. A text of
 * 100 characters takes 8 ms, one of 1,000 about 60 ms; the time grows faster than the length. Users are served in turn, one text at a time, questions before documents.
 */
export interface Sentences {
  /**
   * Runs a job that embeds texts one after the other. `job.size` is their length in characters.
   *
   * @throws QueueFull; the signal's reason
   */
  reading<Result>(job: Job, work: (read: Read) => Promise<Result>): Promise<Result>;
}

/** @returns 512 numbers, of length 1 */
export type Read = (text: string) => Promise<Float32Array>;

export const sentenceDimensions = 512;

/** Sizes are characters: 2,048 inputs, each of the maximum length that is read. */
const bounds = { each: 1, all: 1, unfinished: { each: { jobs: 1000, size: 1 << 26 }, all: { jobs: 8000, size: 1 << 29 } } };

interface Waiting {
  readonly resolve: (vector: Float32Array) => void;
  readonly reject: (error: unknown) => void;
}

export function openSentences(): Sentences {
  let worker: Worker | undefined;
  const waiting = new Map<number, Waiting>();
  let jobs = 0;
  const users = openFairSemaphore(bounds);

  const begin = (): Worker => {
    const begun = new Worker(new URL(`./sentence-worker${extname(import.meta.filename)}`, import.meta.url));
    const died = (error: unknown) => {
      if (worker !== begun) return;
      worker = undefined; // the next text starts another
      for (const { reject } of waiting.values()) reject(error);
      waiting.clear();
    };
    begun.on('message', ({ id, vector }: TextRead) => {
      waiting.get(id)?.resolve(vector);
      waiting.delete(id);
      if (waiting.size === 0) begun.unref();
    });
    begun.once('error', died);
    begun.once('exit', (code) => died(new Error(`The sentence model ended with ${code}.`)));
    return begun;
  };

  const read: Read = (text) =>
    new Promise((resolve, reject) => {
      worker ??= begin();
      worker.ref();
      const id = jobs++;
      waiting.set(id, { resolve, reject });
      worker.postMessage({ id, text } satisfies TextJob);
    });

  return { reading: (job, work) => users.runInPieces(job, (turn) => work((text) => turn(text.length, () => read(text)))) };
}

import { extname } from 'node:path';
import { systemClock } from '#kit/async/clock';
import { openFairSemaphore, type Job } from '#kit/async/fair-semaphore';
import { JobThread } from '#kit/async/job-thread';
import type { TextJob, TextRead } from './sentence-worker.ts';

/**
 * The packaged sentence model (Universal Sentence Encoder lite, English), on worker threads: the first starts with the first text and the others with texts that come
 * meanwhile, each in 0.2 s and with some 250 MB. A text of 100 characters takes 8 ms, one of 1,000 about 60 ms; the time grows faster than the length. Users are served
 * in turn, questions before documents.
 */
export interface Sentences {
  /** How many texts are read at the same time. */
  readonly threads: number;
  /** Runs a job that embeds texts, at most `threads` of them at once. `job.size` is their length in characters. @throws QueueFull; the signal's reason */
  reading<Result>(job: Job, work: (read: Read) => Promise<Result>): Promise<Result>;
}

/** @returns 512 numbers, of length 1 */
export type Read = (text: string) => Promise<Float32Array>;

export const sentenceDimensions = 512;

/** Sizes are characters: 2,048 inputs, each of the maximum length that is read. */
const unfinished = { each: { jobs: 1000, size: 1 << 26 }, all: { jobs: 8000, size: 1 << 29 } };
/** Milliseconds without a text after which a thread is ended, unless it is the last one. */
const idleMilliseconds = 60_000;

const program = new URL(`./sentence-worker${extname(import.meta.filename)}`, import.meta.url);

/** A thread that has the model. */
interface Reader {
  readonly thread: JobThread<TextJob, TextRead>;
  /** Ends it. */
  idle: NodeJS.Timeout | undefined;
}

export function openSentences(threads = 1): Sentences {
  const users = openFairSemaphore({ each: threads, all: threads, unfinished });
  /** The one that was used last is first. */
  const free: Reader[] = [];
  let begun = 0;
  const begin = (): Reader => {
    begun++;
    return { thread: new JobThread(program, systemClock), idle: undefined };
  };
  const endIdle = (reader: Reader) => {
    if (begun === 1) return;
    begun--;
    free.splice(free.indexOf(reader), 1);
    void reader.thread.close(new Error('It was idle.'));
  };

  const read: Read = async (text) => {
    const reader = free.shift() ?? begin();
    clearTimeout(reader.idle);
    try {
      return (await reader.thread.run({ text })).vector;
    } finally {
      free.unshift(reader); // the same ones go on, so that the others may end
      reader.idle = setTimeout(endIdle, idleMilliseconds, reader).unref();
    }
  };

  return { threads, reading: (job, work) => users.runInPieces(job, (turn) => work((text) => turn(text.length, () => read(text)))) };
}

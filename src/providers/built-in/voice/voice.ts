import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '#kit/async/clock';
import { openFairSemaphore, type Job } from '#kit/async/fair-semaphore';
import type { PieceSpoken, SpokenPiece } from './voice-worker.ts';

/**
 * The packaged voices (Flite, English), on a worker thread that starts with the first text: 0.1 s and some 100 MB. A sentence of 100 characters, 6 s of sound, takes
 * about 0.2 s. Users are served in turn, one piece of a text at a time. A piece that takes too long ends with its thread.
 */
export interface Voice {
  /**
   * Runs a job that speaks pieces one after the other. `job.size` is their length in characters.
   *
   * @throws QueueFull; the signal's reason
   */
  speaking<Result>(job: Job, work: (speak: SpeakPiece) => Promise<Result>): Promise<Result>;
}

/** @returns undefined where the piece cannot be spoken */
export type SpeakPiece = (piece: Omit<SpokenPiece, 'id'>) => Promise<Required<Omit<PieceSpoken, 'id'>> | undefined>;

/** Sizes are characters. */
const bounds = { each: 1, all: 1, unfinished: { each: { jobs: 100, size: 1 << 24 }, all: { jobs: 4000, size: 1 << 27 } } };

const mostMilliseconds = 20_000;

export function openVoice(clock: Pick<Clock, 'after'>): Voice {
  let worker: Worker | undefined;
  const waiting = new Map<number, (spoken: PieceSpoken | undefined) => void>();
  let pieces = 0;
  const users = openFairSemaphore(bounds);

  const ended = (which: Worker): void => {
    if (worker !== which) return;
    worker = undefined; // the next piece starts another
    void which.terminate();
    for (const resolve of waiting.values()) resolve(undefined);
    waiting.clear();
  };

  const begin = (): Worker => {
    const begun = new Worker(new URL(`./voice-worker${extname(import.meta.filename)}`, import.meta.url));
    begun.on('message', (spoken: PieceSpoken) => {
      waiting.get(spoken.id)?.(spoken);
      waiting.delete(spoken.id);
      if (waiting.size === 0) begun.unref();
    });
    begun.once('error', () => ended(begun));
    begun.once('exit', () => ended(begun));
    return begun;
  };

  const speak: SpeakPiece = async (piece) => {
    const id = pieces++;
    const busy = (worker ??= begin());
    busy.ref();
    const cancel = clock.after(mostMilliseconds, () => ended(busy));
    const spoken = await new Promise<PieceSpoken | undefined>((resolve) => {
      waiting.set(id, resolve);
      busy.postMessage({ ...piece, id } satisfies SpokenPiece);
    });
    cancel();
    return spoken?.samples && { rate: spoken.rate, samples: spoken.samples };
  };

  return { speaking: (job, work) => users.runInPieces(job, (turn) => work((piece) => turn(piece.text.length, () => speak(piece)))) };
}

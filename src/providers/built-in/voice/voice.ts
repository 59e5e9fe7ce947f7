import { extname } from 'node:path';
import type { Clock } from '#kit/async/clock';
import { openFairSemaphore, type Job } from '#kit/async/fair-semaphore';
import { JobThread } from '#kit/async/job-thread';
import type { PieceSpoken, SpokenPiece } from './voice-worker.ts';

/**
 * The packaged voices (Flite, English), on a worker thread that starts with the first text: 0.1 s and some 100 MB. A sentence of 100 characters, 6 s of sound, takes
 * about 0.2 s. Users are served in turn, one piece of a text at a time. A piece that takes too long ends with its thread.
 */
export interface Voice {
  /** Runs a job that speaks pieces one after the other. `job.size` is their length in characters. @throws QueueFull; the signal's reason */
  speaking<Result>(job: Job, work: (speak: SpeakPiece) => Promise<Result>): Promise<Result>;
}

/** @returns undefined where the piece cannot be spoken */
export type SpeakPiece = (piece: SpokenPiece) => Promise<Required<PieceSpoken> | undefined>;

/** Sizes are characters. */
const bounds = { each: 1, all: 1, unfinished: { each: { jobs: 100, size: 1 << 24 }, all: { jobs: 4000, size: 1 << 27 } } };

const mostMilliseconds = 20_000;

export function openVoice(clock: Pick<Clock, 'after'>): Voice {
  const users = openFairSemaphore(bounds);
  const thread = new JobThread<SpokenPiece, PieceSpoken>(new URL(`./voice-worker${extname(import.meta.filename)}`, import.meta.url), clock);
  const speak: SpeakPiece = async (piece) => {
    const spoken = await thread.run(piece, { milliseconds: mostMilliseconds }).catch(() => undefined); // the next piece starts another thread
    return spoken?.samples && { rate: spoken.rate, samples: spoken.samples };
  };
  return { speaking: (job, work) => users.runInPieces(job, (turn) => work((piece) => turn(piece.text.length, () => speak(piece)))) };
}

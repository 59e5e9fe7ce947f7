import { extname } from 'node:path';
import type { Clock } from '../async/clock.ts';
import { openFairSemaphore } from '../async/fair-semaphore.ts';
import { JobThread, JobTooLong } from '../async/job-thread.ts';
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
   * @throws PatternTooSlow; QueueFull; the signal's reason, also for a job that has begun
   */
  look(job: Job, asking: { readonly owner: string; readonly signal: AbortSignal }): Promise<PatternMatches>;
  close(): Promise<void>;
}

/** A job exceeded its time limit: the pattern is too slow on this text. */
export class PatternTooSlow extends Error {
  constructor() {
    super('Looking for a pattern took too long.');
    this.name = 'PatternTooSlow';
  }
}

/** Characters (UTF-16 units): largest short job, and largest piece of a long job. */
const short = 65_536;

/** Time limit of a job in milliseconds: a base, an amount per character, and a maximum. */
const patience = { job: 1000, character: 0.003, most: 5000 };

/** Sizes are characters: an owner's are four requests of the largest size. */
const bounds = { each: 1, all: 1, unfinished: { each: { jobs: 1000, size: 1 << 27 }, all: { jobs: 8000, size: 1 << 29 } } };

export function openPatterns(clock: Pick<Clock, 'after' | 'monotonic'>): Patterns {
  const program = new URL(`./worker${extname(import.meta.filename)}`, import.meta.url);
  const begin = () => ({ thread: new JobThread<Job, PatternMatches>(program, clock), users: openFairSemaphore(bounds, clock) });
  const [quick, slow] = [begin(), begin()];
  return {
    look({ texts, ...wanted }, { owner, signal }) {
      const size = sizeOf(texts);
      const { thread, users } = size > short ? slow : quick;
      let milliseconds = Math.min(patience.job + patience.character * size, patience.most);
      return users.runInPieces({ owner, size, signal }, async (turn) => {
        const looked: (string | undefined)[] = [];
        for (const piece of piecesOf(texts)) {
          const found = await turn(sizeOf(piece), async () => {
            const beganAt = clock.monotonic();
            const result = await thread.run({ ...wanted, texts: piece }, { milliseconds: Math.max(0, milliseconds), signal }).catch(tooSlow);
            milliseconds -= clock.monotonic() - beganAt;
            return result;
          });
          looked.push(...found);
        }
        return looked;
      });
    },
    async close() {
      const reason = new Error('The server is shutting down.');
      for (const { users } of [quick, slow]) users.close(reason);
      await Promise.all([quick, slow].map(({ thread }) => thread.close(reason)));
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

function tooSlow(error: unknown): never {
  throw error instanceof JobTooLong ? new PatternTooSlow() : error;
}

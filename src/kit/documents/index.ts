import { systemClock, type Clock } from '../async/clock.ts';
import { openFairSemaphore, QueueFull } from '../async/fair-semaphore.ts';
import { ConversionChild, type ChildLimits } from './child.ts';
import type { ConversionAsked, TypedDocument } from './convert.ts';
import { joinedAttachments } from './attachments.ts';
import { ConversionRefused, tooMuch } from './refusal.ts';
import { timed } from '../async/timed.ts';

export { ConversionRefused, type RefusalReason } from './refusal.ts';
export type { TypedDocument } from './convert.ts';

export interface ConversionRequest {
  readonly filename: string;
  /** Which pages are read by OCR: none, all, or those with hardly any text (`auto`). */
  readonly strategy?: ConversionAsked['strategy'];
  /** Rows of CSV as records, `column: value`. */
  readonly records?: boolean;
  /** Whose document it is: users take turns. */
  readonly owner?: string;
  readonly signal?: AbortSignal;
}

/**
 * Makes Markdown of documents, each in a process of its own out of a few that wait for work; the first one is started by the first document, and those that wait
 * are ended after a minute without one. A process that crashes, hangs or grows costs its own document only.
 */
export interface Documents {
  /** @throws ConversionRefused; the signal's reason */
  convert(content: Blob, request: ConversionRequest): Promise<TypedDocument>;
  close(): void;
}

export interface DocumentsOptions {
  readonly clock?: Clock;
  /** How many are converted at once. */
  readonly size: number;
  readonly limits?: ChildLimits;
  /** How many wait. */
  readonly most?: number;
}

const usual: ChildLimits = { bytes: 512 * 2 ** 20, seconds: 60, ocrSeconds: 10 };
const mostWaiting = 64;
/** Of a document with all that is attached to it and all pages that are read by OCR. */
const wholeMilliseconds = 600_000;
/** Milliseconds without a document after which the processes that wait are ended. */
const idleMilliseconds = 60_000;

const never = new AbortController().signal;

export function openDocuments({ clock = systemClock, size, limits = usual, most = mostWaiting }: DocumentsOptions): Documents {
  const unfinished = { jobs: size + most, size: Infinity };
  const users = openFairSemaphore({ each: size, all: size, unfinished: { each: unfinished, all: unfinished } }, clock);
  const waiting: ConversionChild[] = [];
  let isClosed = false;
  let stopIdle = () => {};
  let running = 0;

  const endWaiting = () => {
    for (const child of waiting.splice(0)) child.kill();
  };

  /** The next document finds a process that has started. */
  const warm = () => {
    stopIdle();
    if (isClosed) return;
    while (waiting.length < Math.min(size, running + 1)) waiting.push(new ConversionChild(clock));
    stopIdle = clock.after(idleMilliseconds, endWaiting);
  };

  const one = async (content: Blob, asked: ConversionAsked, signal: AbortSignal): Promise<TypedDocument> => {
    let child = waiting.shift();
    if (!child?.isAlive) child = new ConversionChild(clock);
    return child.convert(content, asked, { limits, signal });
  };

  return {
    async convert(content, { filename, strategy = 'auto', records = false, owner = '', signal = never }) {
      const asked = { filename: filename.slice(0, 5000), strategy, records, inside: [] };
      try {
        return await users.run({ owner, size: 1, signal }, async () => {
          running++;
          try {
            return await timed({ clock, milliseconds: wholeMilliseconds, late: tooMuch('it takes too long'), signal }, (within) =>
              joinedAttachments(asked, (wanted) => one(content, wanted, within), within),
            );
          } finally {
            running--;
            warm();
          }
        });
      } catch (error) {
        if (error instanceof QueueFull) throw new ConversionRefused('busy', 'Too many files wait to be read: send it again in a moment.', error);
        throw error;
      }
    },
    close() {
      isClosed = true;
      stopIdle();
      users.close(new ConversionRefused('busy', 'The server is shutting down.'));
      endWaiting();
    },
  };
}

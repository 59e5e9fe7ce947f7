import { inUnits } from '#kit/text/in-units';
import type { ToldRequest } from '#core/prompt-log';
import type { Clock } from '#kit/async/clock';
import { isAway } from '#store/patience';
import { Lot, type Batch } from './lot.ts';

export interface QueueDeps {
  readonly write: (some: readonly Batch[]) => Promise<void>;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
}

export interface Queue {
  /** Nothing waits for it. What is too much is dropped. */
  add(told: ToldRequest): void;
  /** Writes at once, and returns when everything that was added before is written or given up, or the database is away. */
  written(): Promise<void>;
  /** Writes what waits, and gives up what cannot be written now. */
  close(): Promise<void>;
}

/** Lots of a megabyte. */
const mostWaiting = 16;
/** Empty lots that are kept for reuse: about as many as fill up under load while one is being written. */
const mostSpare = 4;
/** So long a request waits for others; a full lot does not. */
const waitMilliseconds = 250;
/** Pause between two tries while the database is away. */
const againMilliseconds = 1000;

/** Writes what is told many at once, one statement after the other: however many come, their number and the lines of the log about those that are lost stay small. */
export function openQueue({ write, clock, log }: QueueDeps): Queue {
  /** The last one is being filled. */
  const waiting: Lot[] = [];
  const spare: Lot[] = [];
  let lost = 0;
  let isDatabaseAway = false;
  let cancel: (() => void) | undefined;
  let writing: Promise<void> | undefined;
  /** The lot that is being written. */
  let current: Lot | undefined;

  const writeLot = async (lot: Lot) => {
    try {
      await write(lot.batches());
      isDatabaseAway = false;
    } catch (error) {
      isDatabaseAway = isAway(error);
      if (isDatabaseAway) {
        waiting.unshift(lot);
        return;
      }
      log(`${inUnits(lot.requests, 'prompts')} could not be logged.`, error);
    }
    if (lost > 0) log(`${inUnits(lost, 'prompts')} came faster than they could be logged, and are not in the log.`, undefined);
    lost = 0;
    lot.clear();
    if (spare.length < mostSpare) spare.push(lot);
  };
  const begin = () => {
    cancel?.();
    cancel = undefined;
    writing ??= writeLot((current = waiting.shift()!)).finally(() => {
      writing = current = undefined;
      next();
    });
    return writing;
  };
  const next = () => {
    if (writing) return;
    if (waiting.length > 1 && !isDatabaseAway) void begin();
    else if (waiting.length > 0) cancel ??= clock.after(isDatabaseAway ? againMilliseconds : waitMilliseconds, () => void begin());
  };
  const written = async () => {
    const last = waiting.at(-1) ?? current;
    await writing;
    while (last && (last === current || waiting.includes(last))) {
      await begin();
      if (isDatabaseAway) return;
    }
  };
  const empty = (): Lot => spare.pop() ?? new Lot();

  return {
    add(told) {
      if (!waiting.at(-1)?.add(told)) {
        if (waiting.length >= mostWaiting) lost++;
        else {
          const lot = empty();
          lot.add(told);
          waiting.push(lot);
        }
      }
      next();
    },
    written,
    async close() {
      await written();
      cancel?.();
      const left = waiting.splice(0).reduce((sum, { requests }) => sum + requests, 0);
      if (left > 0) log(`${inUnits(left, 'prompts')} could not be logged: the database is away.`, undefined);
    },
  };
}

import { inUnits } from '#kit/text/in-units';
import type { ToldRequest } from '#core/prompt-log';
import type { Clock } from '#kit/async/clock';

export interface QueueDeps {
  readonly write: (some: readonly ToldRequest[]) => Promise<void>;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
}

export interface Queue {
  /** Nothing waits for it. What is too much is dropped. */
  add(told: ToldRequest): void;
  /** Writes at once, and returns when everything that was added before is written or given up. */
  written(): Promise<void>;
}

/** Rows of one statement. */
const mostAtOnce = 1000;
/** Each holds at most some 20 KB. */
const mostWaiting = 4000;
/** So long a row waits for others; a full statement does not. */
const waitMilliseconds = 250;

/** Writes what is told many at once, one statement after the other: however many come, their number and the lines of the log about those that are lost stay small. */
export function openQueue({ write, clock, log }: QueueDeps): Queue {
  let waiting: ToldRequest[] = [];
  let lost = 0;
  let cancel: (() => void) | undefined;
  let writing: Promise<void> | undefined;

  const writeSome = async () => {
    const some = waiting.slice(0, mostAtOnce);
    waiting = waiting.slice(mostAtOnce);
    try {
      await write(some);
    } catch (error) {
      log(`${inUnits(some.length, 'prompts')} could not be logged.`, error);
    }
    if (lost > 0) log(`${inUnits(lost, 'prompts')} came faster than they could be logged, and are not in the log.`, undefined);
    lost = 0;
  };
  const begin = () => {
    cancel?.();
    cancel = undefined;
    writing ??= writeSome().finally(() => {
      writing = undefined;
      next();
    });
    return writing;
  };
  const next = () => {
    if (writing) return;
    if (waiting.length >= mostAtOnce) void begin();
    else if (waiting.length > 0) cancel ??= clock.after(waitMilliseconds, () => void begin());
  };

  return {
    add(told) {
      if (waiting.length >= mostWaiting) lost++;
      else waiting.push(told);
      next();
    },
    async written() {
      const before = waiting.length;
      await writing;
      for (let written = 0; written < before && waiting.length > 0; written += mostAtOnce) await begin();
    },
  };
}

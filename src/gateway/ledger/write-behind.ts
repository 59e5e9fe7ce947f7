import type { Clock } from '#kit/clock';

/** Items that are written in batches, in order, until the writing succeeds. */
export interface WriteBehind<Item> {
  add(item: Item): void;
  readonly pending: number;
  /** Writes what is left; gives up after some tries. */
  close(): Promise<void>;
}

const batchSize = 500;
const pauseMilliseconds = 200;
const longestPause = 10_000;
const closingTries = 5;

export function writeBehind<Item>(
  write: (batch: readonly Item[]) => Promise<void>,
  clock: Clock,
  log: (problem: string, cause: unknown) => void,
): WriteBehind<Item> {
  let items: Item[] = [];
  let writing: Promise<boolean> | undefined;
  let failures = 0;
  let armed = false;
  let closed = false;

  const flush = async (): Promise<boolean> => {
    const batch = items.slice(0, batchSize);
    if (batch.length === 0) return true;
    try {
      await write(batch);
      items = items.slice(batch.length);
      failures = 0;
      return true;
    } catch (error) {
      failures++;
      log(`Usage could not be written; ${items.length} rows wait.`, error);
      return false;
    }
  };
  const flushOnce = () => (writing ??= flush().finally(() => (writing = undefined)));
  const arm = () => {
    if (armed || closed) return;
    armed = true;
    clock.after(failures === 0 && items.length >= batchSize ? 0 : Math.min(pauseMilliseconds * 2 ** failures, longestPause), () => {
      armed = false;
      void flushOnce().then(() => items.length > 0 && arm());
    });
  };

  return {
    add(item) {
      items.push(item);
      arm();
    },
    get pending() {
      return items.length;
    },
    async close() {
      closed = true;
      for (let tries = 0; items.length > 0 && tries < closingTries;) if (!(await flushOnce())) tries++;
    },
  };
}

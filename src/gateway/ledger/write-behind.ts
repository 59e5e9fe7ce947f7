import type { Clock } from '#kit/clock';
import { Fault } from '#model/fault';

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
      if (error instanceof Fault && error.code === 'invalid') return refused(batch, error);
      failures++;
      log(`Usage could not be written; ${items.length} rows wait.`, error);
      return false;
    }
  };
  /** One item that can never be written holds up no other: halves are tried until it stands alone, and it is let go. */
  const refused = async (batch: readonly Item[], why: Fault): Promise<boolean> => {
    if (batch.length === 1) log('A usage row cannot be written and is left out.', why);
    for (const half of batch.length === 1 ? [] : [batch.slice(0, batch.length / 2), batch.slice(batch.length / 2)]) {
      try {
        await write(half);
      } catch (error) {
        if (!(error instanceof Fault && error.code === 'invalid')) return false;
        await refused(half, error);
      }
    }
    items = items.filter((item) => !batch.includes(item));
    return true;
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
      for (let tries = 0; items.length > 0 && tries < closingTries;) {
        if (await flushOnce()) continue;
        tries++;
        await clock.sleep(pauseMilliseconds * 2 ** tries);
      }
      if (items.length > 0) log(`${items.length} usage rows are lost.`, undefined);
    },
  };
}

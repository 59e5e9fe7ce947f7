import type { Clock } from '#kit/async/clock';
import type { Store } from './open.ts';

/** Something small of the database that is wanted without waiting: it stands in memory, and the change feed keeps it true. */
export interface LiveValue<Value> {
  readonly value: Value;
  /** Resolves when what was published before the call is in `value`, or could not be read: it is tried again by itself then. */
  upToDate(): Promise<void>;
  /** Reads it now, once for all who ask at the same time: for who knows of something that the feed has not told yet. @returns false when it could not be read */
  again(): Promise<boolean>;
  close(): void;
}

interface LiveValueDeps<Value> {
  readonly store: Pick<Store, 'subscribe'>;
  /** Of the change feed. */
  readonly topic: string;
  readonly clock: Clock;
  readonly read: (before: Value | undefined) => Promise<Value>;
  /** Told when `value` is another one. */
  readonly changed?: () => void;
}

const againMilliseconds = 500;

/** Reads it once, and anew after each change of the topic. @throws what `read` throws the first time */
export async function openLiveValue<Value>({ store, topic, clock, read, changed }: LiveValueDeps<Value>): Promise<LiveValue<Value>> {
  let reading: Promise<boolean> | undefined;
  let next: Promise<boolean> | undefined;
  let isClosed = false;

  // what comes while it is being read may have been missed by that: all who come then share one more reading
  const refresh = (): Promise<boolean> => {
    if (!reading) return (reading = once().finally(() => (reading = undefined)));
    next ??= reading.then(() => {
      next = undefined;
      return refresh();
    });
    return next;
  };
  const once = async (): Promise<boolean> => {
    try {
      value = await read(value);
      changed?.();
      return true;
    } catch {
      clock.after(againMilliseconds, () => isClosed || void refresh()); // the database is away
      return false;
    }
  };
  const early: { heard: boolean } = { heard: false };
  let ready = false;
  const forget = store.subscribe(topic, () => (ready ? void refresh() : (early.heard = true)));
  let value = await read(undefined);
  ready = true;
  if (early.heard) await refresh();

  return {
    get value() {
      return value;
    },
    upToDate: async () => void (await (next ?? reading)),
    again: refresh,
    close() {
      isClosed = true;
      forget();
    },
  };
}

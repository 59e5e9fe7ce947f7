import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import { isCollision, SqlError } from '#store/sql-error';

interface WritingDeps<Row> {
  readonly clock: Clock;
  readonly write: (some: readonly Row[]) => Promise<void>;
  /** Called once for a row that the database refuses. */
  readonly refused: (row: Row, cause: unknown) => void;
}

/** Rows that are written in the background. */
interface Writing<Row> {
  /** A row in place of the one of this key that still waits. */
  add(key: string, row: Row): void;
  waiting(): Iterable<Row>;
  clear(): void;
  close(): void;
}

/** Rows that may wait, and those that are written together. */
const mostWaiting = 2000;
const mostAtOnce = 100;
/** Milliseconds for which rows are collected before they are written, and until a write that failed is tried again. */
const soonMilliseconds = 100;
const laterMilliseconds = 5000;

/** While the database is away, rows wait; a row that it refuses is dropped, and costs no others. */
export function openWriting<Row>({ clock, write, refused }: WritingDeps<Row>): Writing<Row> {
  const waiting = new Map<string, Row>();
  const dropped = new Set<string>();
  let atOnce = mostAtOnce;
  let cancel: (() => void) | undefined;

  const writeIn = (milliseconds: number) => void (cancel ??= clock.after(milliseconds, () => void next()));
  const done = (some: readonly (readonly [string, Row])[]) => {
    for (const [key, row] of some) if (waiting.get(key) === row) waiting.delete(key);
    if (waiting.size > 0) writeIn(soonMilliseconds);
    else atOnce = mostAtOnce;
  };
  const next = async () => {
    cancel = undefined;
    const some = Array.from(waiting).slice(0, atOnce);
    try {
      await write(some.map(([, row]) => row));
      done(some);
    } catch (error) {
      if (!isRefused(error)) writeIn(laterMilliseconds);
      else if (some.length > 1) {
        atOnce = 1; // one by one, to find the one that is refused
        writeIn(soonMilliseconds);
      } else {
        for (const [key, row] of some) {
          if (dropped.size < mostWaiting) dropped.add(key);
          refused(row, error);
        }
        atOnce = mostAtOnce;
        done(some);
      }
    }
  };

  return {
    add(key, row) {
      if (waiting.size >= mostWaiting || dropped.has(key)) return;
      waiting.set(key, row);
      writeIn(soonMilliseconds);
    },
    waiting: () => waiting.values(),
    clear: () => waiting.clear(),
    close: () => cancel?.(),
  };
}

/** Does the database refuse what is written, however often it is tried? */
const isRefused = (error: unknown): boolean => (error instanceof SqlError && !isCollision(error)) || (error instanceof Fault && error.code === 'invalid');

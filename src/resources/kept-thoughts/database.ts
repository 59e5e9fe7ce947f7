import type { Clock } from '#kit/async/clock';
import { batched } from '#store/batch';
import type { ThoughtRoom, ThoughtRow, ThoughtTable } from './table.ts';
import { repeated } from '#kit/async/repeated';

/** The table of thoughts, as calls may use it: one that is slow or away neither fails nor delays them. */
export interface ThoughtDatabase {
  /** @returns undefined, at once or in time, where the database is slow or away: nothing is known then */
  read(userId: number, names: readonly string[]): Promise<ReadonlyMap<string, string> | undefined> | undefined;
  /** Writes behind, as far as there is room. */
  write(row: ThoughtRow): void;
  /** Resolves when all of it is written, or after a moment; undefined: there is nothing to wait for. */
  written(): Promise<unknown> | undefined;
  close(): Promise<void>;
}

export interface ThoughtDatabaseDeps {
  readonly table: Pick<ThoughtTable, 'read' | 'write' | 'purge'>;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
  readonly room: ThoughtRoom;
}

const purgeMilliseconds = 600_000;
/** A database that does not answer within this time is not waited for, and not asked again for a while. */
const patienceMilliseconds = 1000;
const awayMilliseconds = 5000;

const writing = {
  most: 200,
  bytes: { most: 8 * 2 ** 20, of: ({ text }: ThoughtRow) => text.length },
  mostWaiting: 2000,
  crowded: 'Too many thoughts are being kept.',
};

export function openThoughtDatabase({ table, clock, log, room }: ThoughtDatabaseDeps): ThoughtDatabase {
  const write = batched({
    async ask(rows: readonly ThoughtRow[]) {
      await table.write(rows);
      return rows;
    },
    clock,
    ...writing,
  });
  let budget = newBudget(room);
  let awayUntil = -Infinity;
  let last: Promise<unknown> | undefined;
  let isClosed = false;

  const isAway = () => clock.monotonic() < awayUntil;
  const leave = () => void (awayUntil = clock.monotonic() + awayMilliseconds);
  const failed = (problem: string, cause: unknown) => {
    if (!isAway() && !isClosed) log(problem, cause);
    leave();
  };
  /** The result of the work, or undefined when it takes too long. */
  const inTime = <Result>(work: Promise<Result>): Promise<Result | undefined> =>
    new Promise((resolve, reject) => {
      const cancel = clock.after(patienceMilliseconds, () => {
        leave();
        resolve(undefined);
      });
      void work.then(resolve, reject).finally(cancel);
    });

  const stopPurging = repeated({
    clock,
    milliseconds: purgeMilliseconds,
    async work() {
      budget = newBudget(room);
      await table.purge(room);
    },
    failed: (cause) => failed('Old thoughts could not be deleted.', cause),
  });

  return {
    read(userId, names) {
      if (isAway()) return undefined;
      return inTime(table.read(userId, names)).catch((error: unknown) => {
        failed('Stored thoughts could not be read: models go on without them.', error);
        return undefined;
      });
    },
    write(row) {
      if (!budget.takes(row)) return;
      const written = write(row).catch((error: unknown) => failed('Thoughts could not be stored.', error));
      last = written;
      void written.then(() => {
        if (last === written) last = undefined;
      });
    },
    written: () => (last && !isAway() ? inTime(last) : undefined),
    async close() {
      isClosed = true;
      stopPurging();
      if (last) await inTime(last);
    },
  };
}

/** What this process may write until the next purge, which deletes what is beyond the room. */
function newBudget({ each, all }: ThoughtRoom) {
  const left = new Map<number, number>();
  let leftOfAll = all / 4;
  return {
    takes({ userId, text }: ThoughtRow): boolean {
      const own = (left.get(userId) ?? each / 2) - text.length;
      if (own < 0 || leftOfAll < text.length) return false;
      left.set(userId, own);
      leftOfAll -= text.length;
      return true;
    },
  };
}

import { sql } from 'kysely';
import { monthOf } from '#core/plan';
import { SqlError } from '#store/sql-error';
import type { Store } from '#store/open';
import { invalid } from '#core/fault';

/*
 * The usage tables have one partition per month. A partition is created separately and then attached, and it is dropped only if its lock is free at once:
 * neither blocks readers or writers.
 */
const tables = ['usage', 'usage_hour', 'usage_overall', 'spent'] as const;
const monthForm = /^\d{4}-(0[1-9]|1[0-2])$/;
const lockMilliseconds = 50;
const mostTries = 40;

/** Creations in progress, so that concurrent calls in a new month create a partition once. */
const making = new WeakMap<Store, Map<string, Promise<void>>>();

/** Creates missing partitions of these months (`2026-11`). @throws Fault `invalid` for a text that is not a month */
export async function makeMonths(store: Store, months: readonly string[]): Promise<void> {
  const underway = making.get(store) ?? new Map<string, Promise<void>>();
  making.set(store, underway);
  for (const month of new Set(months)) {
    if (!monthForm.test(month)) throw invalid('at', 'must be an instant of the years 1970 to 9999');
    const made = underway.get(month) ?? makeMonth(store, month).finally(() => underway.delete(month));
    underway.set(month, made);
    await made;
  }
}

/** Creates the partitions of the current month, by the database's clock, and of the next one. */
export function makeMonthsAhead(store: Store, milliseconds: number): Promise<void> {
  const date = new Date(milliseconds);
  return makeMonths(
    store,
    [0, 1].map((ahead) => monthOf(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + ahead))),
  );
}

/** Runs work that writes to partitions. If a partition is missing, creates it and runs the work again. */
export async function withMonths<Result>(store: Store, months: () => Promise<readonly string[]>, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!isMissing(error)) throw error;
    await makeMonths(store, await months());
    return work();
  }
}

/**
 * Drops the partitions before this month. A partition in use is left for the next run. One that was created in or after this month is kept as well: a machine
 * with a wrong clock has booked recent calls into it.
 * @returns the names of the dropped partitions
 */
export async function dropMonthsBefore(store: Store, month: string): Promise<string[]> {
  const dropped: string[] = [];
  for (const table of tables) {
    for (const { name, made } of await partitionsOf(store, table)) {
      const its = name.slice(table.length + 1).replace('_', '-');
      if (monthForm.test(its) && its < month && !(made !== null && made >= month) && (await isDropped(store, name))) dropped.push(name);
    }
  }
  await sql`
    delete from usage_fresh where month < ${month} and to_regclass('usage_hour_' || replace(month, '-', '_')) is null`.execute(store.db); // its partition is gone
  return dropped;
}

async function makeMonth(store: Store, month: string): Promise<void> {
  for (const table of tables) await makePartition(store, table, month);
}

async function makePartition(store: Store, table: string, month: string): Promise<void> {
  const name = `${table}_${month.replace('-', '_')}`;
  const { rows } = await sql<{ is: boolean }>`
    select exists (select from pg_inherits where inhrelid = to_regclass(${name}) and inhparent = ${table}::regclass) as is`.execute(store.db);
  if (rows[0]!.is) return;
  await store.transaction(async ({ db }) => {
    await sql`select pg_advisory_xact_lock(7239014554)`.execute(db);
    if ((await sql`select from pg_class where oid = to_regclass(${name})`.execute(db)).rows.length > 0) return; // another process has created it
    await sql.raw(`create table ${name} (like ${table} including defaults including constraints) with (${storage(table)})`).execute(db);
    await sql.raw(`alter table ${table} attach partition ${name} for values in ('${month}')`).execute(db);
    const made = await sql<{ month: string }>`select to_char(now() at time zone 'UTC', 'YYYY-MM') as month`.execute(db);
    await sql.raw(`comment on table ${name} is '${made.rows[0]!.month}'`).execute(db);
  });
}

/** Free space in a page lets an update avoid the indexes (HOT). Usage rows are never updated and need none. */
const storage = (table: string): string => (table === 'usage' ? 'fillfactor = 100' : 'fillfactor = 70');

interface Partition {
  readonly name: string;
  /** The month in which it was created, by the database's clock; null if not recorded. */
  readonly made: string | null;
}

async function partitionsOf(store: Store, table: string): Promise<readonly Partition[]> {
  const { rows } = await sql<Partition>`
    select relname as name, obj_description(oid, 'pg_class') as made
    from pg_inherits join pg_class on oid = inhrelid where inhparent = ${table}::regclass order by 1`.execute(store.db);
  return rows;
}

async function isDropped(store: Store, name: string): Promise<boolean> {
  for (let tries = 0; tries < mostTries; tries++) {
    try {
      await store.transaction(async ({ db }) => {
        await sql.raw(`set local lock_timeout = ${lockMilliseconds}`).execute(db);
        await sql.raw(`drop table ${name}`).execute(db);
      });
      return true;
    } catch (error) {
      if (!(error instanceof SqlError) || error.code !== '55P03') throw error;
    }
  }
  return false;
}

/** A row without a partition violates an unnamed constraint, and the error text depends on the server's language. */
function isMissing(error: unknown): boolean {
  return error instanceof SqlError && error.code === '23514' && !error.constraint && tables.some((table) => table === error.table);
}

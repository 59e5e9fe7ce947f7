import { sql } from 'kysely';
import { Fault } from '#core/fault';
import { monthOf } from '#core/plan';
import { SqlError } from '#store/sql-error';
import type { Store } from '#store/open';

/*
 * The tables of the books have a partition for each month. One is made beside its table and then attached, and one is dropped only if its lock is to be had
 * at once: neither makes anybody wait who reads or books.
 */
const tables = ['usage', 'usage_hour', 'spent'] as const;
const monthForm = /^\d{4}-(0[1-9]|1[0-2])$/;
const lockMilliseconds = 50;
const mostTries = 40;

/** What is being made now, so that a thousand calls in a new month make it once. */
const making = new WeakMap<Store, Map<string, Promise<void>>>();

/** Makes the partitions of these months (`2026-11`) where they are missing. @throws Fault `invalid` when one is no month */
export async function makeMonths(store: Store, months: readonly string[]): Promise<void> {
  const underway = making.get(store) ?? new Map<string, Promise<void>>();
  making.set(store, underway);
  for (const month of new Set(months)) {
    if (!monthForm.test(month)) throw new Fault('invalid', 'at must be an instant of the years 1970 to 9999.', { field: 'at' });
    const made = underway.get(month) ?? makeMonth(store, month).finally(() => underway.delete(month));
    underway.set(month, made);
    await made;
  }
}

/** Makes those of the month of this instant, by the database's clock, and of the next month. */
export function makeMonthsAhead(store: Store, milliseconds: number): Promise<void> {
  const date = new Date(milliseconds);
  return makeMonths(
    store,
    [0, 1].map((ahead) => monthOf(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + ahead))),
  );
}

/** Does what books into months, which are only asked for and made when one is missing: then it is done again. */
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
 * Drops the months before this one, whole. One that somebody is reading stays for the next time. One that was made later than that stays too: a machine whose
 * clock is wrong has booked calls into it that are no older than the partition.
 *
 * @returns the names of the partitions that went
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
    delete from usage_fresh where month < ${month} and to_regclass('usage_hour_' || replace(month, '-', '_')) is null`.execute(store.db); // no place any more
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
    if ((await sql`select from pg_class where oid = to_regclass(${name})`.execute(db)).rows.length > 0) return; // another one was quicker
    await sql.raw(`create table ${name} (like ${table} including defaults including constraints) with (${storage(table)})`).execute(db);
    await sql.raw(`alter table ${table} attach partition ${name} for values in ('${month}')`).execute(db);
    const made = await sql<{ month: string }>`select to_char(now() at time zone 'UTC', 'YYYY-MM') as month`.execute(db);
    await sql.raw(`comment on table ${name} is '${made.rows[0]!.month}'`).execute(db);
  });
}

/** Room in a page for a row's next version saves the indexes the work; rows of usage never change. */
function storage(table: string): string {
  return table === 'usage' ? 'fillfactor = 100' : 'fillfactor = 70';
}

interface Partition {
  readonly name: string;
  /** The month in which it was made, by the database's clock; null where that was not noted. */
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

/** A row with no partition breaks a rule that has no name; the words of the error are in the language of the server. */
function isMissing(error: unknown): boolean {
  return error instanceof SqlError && error.code === '23514' && !error.constraint && tables.some((table) => table === error.table);
}

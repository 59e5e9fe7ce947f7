import { sql, type RawBuilder } from 'kysely';
import type { Clock } from '#kit/async/clock';
import { isObject, textOf } from '#core/json';
import { monthOf } from '#core/plan';
import type { Jobs } from '#store/jobs';
import type { StoreLog } from '#store/log';
import { databaseNow } from '#store/database-clock';
import { openHolders } from './holders.ts';
import type { Database, Store } from '#store/open';
import { repeatUntilFewer } from '#store/pieces';
import { dropMonthsBefore, makeMonthsAhead, withMonths } from './months.ts';
import { reconcile } from './reconcile.ts';

export interface UpkeepDeps {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly log: StoreLog;
  /** Number of months to keep, including the current one (`retention.usageMonths`). */
  readonly months: () => number;
  /** Delay of the daily reconciliation after a start (seconds, default 600). */
  readonly reconcileSeconds?: number;
}

const foldMilliseconds = 30_000;
const roundMilliseconds = 3_600_000;
const foldSize = 20_000;
const pruneSize = 10_000;
const foldSeconds = 60;
const reconcileKind = 'usage-reconcile';
/** Largest accepted difference between the clocks of the machine and of the database. Beyond it one is wrong, possibly the one that retention uses. */
const mostApartMilliseconds = 86_400_000;

/**
 * Periodic upkeep of the usage tables: adds new rows to the hourly sums, ends the permits of holders that are gone, creates the partitions of the next month and
 * drops old ones. A daily job reconciles the sums of this month and the last with the rows. Any number of machines may run it; all times are of the database's clock.
 *
 * @returns a function that stops it
 */
export function keepBooks({ store, jobs, clock, log, months, reconcileSeconds = 600 }: UpkeepDeps): () => void {
  const holders = openHolders(store);
  let ended = false;
  let cancel = () => {};
  let rounded = -Infinity;
  let warned = -Infinity;
  let reconciled = '';

  async function look(): Promise<void> {
    await done('folding', () => fold(store));
    await done('ending what silent holders hold', async () => void (await holders.endSilent()));
    if (ended || clock.monotonic() - rounded < roundMilliseconds) return;
    let now = 0;
    const isTimeKnown = await done('asking the database for the time', async () => {
      now = await databaseNow(store.db);
    });
    if (ended || !isTimeKnown) return;
    const isSure = agrees(now);
    const all = [
      await done('making months', () => makeMonthsAhead(store, now)),
      !isSure || (await done('dropping months', () => drop(now))),
      !isSure || (await done('pruning', () => prune(store, months()))),
      await done('asking for the reconciliation', () => askForReconciliation(now)),
    ];
    if (all.every(Boolean)) rounded = clock.monotonic();
  }

  /** A failed step does not stop the others and is retried in the next round. */
  async function done(step: string, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      if (!ended) log.warn({ err: error, step }, 'a step of the usage upkeep failed');
      return false;
    }
  }

  /** Whether the clocks of machine and database agree. If not, nothing is removed, and one warning per round is logged. */
  function agrees(now: number): boolean {
    const apart = clock.now() - now;
    if (Math.abs(apart) < mostApartMilliseconds) return true;
    if (clock.monotonic() - warned >= roundMilliseconds) {
      log.warn({ aheadSeconds: Math.round(apart / 1000) }, "nothing of the books is removed: this machine's clock and the database's are a day or more apart");
      warned = clock.monotonic();
    }
    return false;
  }

  async function drop(now: number): Promise<void> {
    const dropped = await dropMonthsBefore(store, monthBefore(now, months() - 1));
    if (dropped.length > 0) log.info({ dropped }, 'old months of usage were dropped');
  }

  async function askForReconciliation(now: number): Promise<void> {
    const day = new Date(now).toISOString().slice(0, 10);
    if (day === reconciled) return;
    const runAt = new Date(now + reconcileSeconds * 1000);
    for (const month of [monthBefore(now, 1), monthOf(now)]) await jobs.add(reconcileKind, { month }, { unique: month, runAt, tries: 2 });
    reconciled = day;
  }

  jobs.work(reconcileKind, async ({ payload, signal }) => {
    const month = isObject(payload) ? textOf(payload['month']) : '';
    const drifts = await reconcile(store, month, signal);
    if (drifts.length > 0) log.error({ month, drifts: drifts.slice(0, 20), count: drifts.length }, 'usage sums differ from their rows');
    return { month, drifts: drifts.slice(0, 100).map(({ of, requests, planTokens, costUsd }) => ({ of, requests, planTokens, costUsd })) };
  });

  const again = () => {
    if (!ended) cancel = clock.after(foldMilliseconds, () => void look().then(again));
  };
  void look().then(again);
  return () => {
    ended = true;
    cancel();
  };
}

/** Adds new rows to the hourly sums, in batches. */
export async function fold(store: Store): Promise<void> {
  const { db } = store.long(foldSeconds);
  const fresh = async () => (await sql<{ month: string }>`select distinct month from usage_fresh`.execute(db)).rows.map(({ month }) => month);
  for (;;) {
    const { rows } = await withMonths(store, fresh, () => sql<{ moved: number }>`select usage_fold(${foldSize}) as moved`.execute(db));
    if (rows[0]!.moved < foldSize) return;
  }
}

/** Removes leases of past months, request counts of past minutes, and holders that were closed long ago, with their positions. */
async function prune({ db }: Store, months: number): Promise<void> {
  await pruned(db, 'request_second', sql`second < extract(epoch from now()) - 120`);
  await pruned(db, 'limit_alert', sql`at < now() - interval '3 months'`);
  await pruned(db, 'leases', sql`month <> '' and month < to_char(now() at time zone 'UTC' - interval '1 month', 'YYYY-MM')`);
  await sql`
    with gone as (
      delete from holders where closed_at < now() - make_interval(months => ${months}) and closed_how <> 'written-off' returning id
    )
    delete from journal_position where split_part(journal, '/', 1) in (select id from gone)`.execute(db);
}

function pruned(db: Database, name: string, isOld: RawBuilder<unknown>): Promise<void> {
  const table = sql.table(name);
  return repeatUntilFewer(sql`delete from ${table} where ctid = any(array(select ctid from ${table} where ${isOld} limit ${pruneSize}))`, db, pruneSize);
}

function monthBefore(milliseconds: number, months: number): string {
  const date = new Date(milliseconds);
  return monthOf(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - months));
}

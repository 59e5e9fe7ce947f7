import { sql, type RawBuilder } from 'kysely';
import type { Clock } from '#kit/async/clock';
import { isObject, textOf } from '#core/json';
import { monthOf } from '#core/plan';
import type { Jobs } from '#store/jobs';
import type { StoreLog } from '#store/log';
import { databaseNow } from '#store/database-clock';
import { openHolders } from './holders.ts';
import type { Database, Store } from '#store/open';
import { inPieces } from '#store/pieces';
import { dropMonthsBefore, makeMonthsAhead, withMonths } from './months.ts';
import { reconcile } from './reconcile.ts';

export interface UpkeepDeps {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly log: StoreLog;
  /** How many months are kept, this one counted (`retention.usageMonths`). */
  readonly months: () => number;
  /** How long the day's reconciliation waits (600): a start has better things to do. */
  readonly reconcileSeconds?: number;
}

const foldMilliseconds = 30_000;
const roundMilliseconds = 3_600_000;
const foldSize = 20_000;
const pruneSize = 10_000;
const foldSeconds = 60;
const reconcileKind = 'usage-reconcile';
/** Where the clocks of the machine and of the database are further apart, one of them is wrong, and it may be the one that retention goes by. */
const mostApartMilliseconds = 86_400_000;

/**
 * The round of the books: what was booked last goes to the sums of its hour, permits of holders that are gone end, the next month is made ahead, old months are dropped, and once a day a job
 * holds the sums of this and the last month against the rows. Any number of machines may do it, by the database's clock.
 *
 * @returns what ends it
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

  /** What fails holds up nothing else, and is tried again at the next look. */
  async function done(step: string, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      if (!ended) log.warn({ err: error, step }, 'a step of the usage upkeep failed');
      return false;
    }
  }

  /** Is it the same day here? Where it is not, what would be removed stays, which is said once a round. */
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

/** Moves what was booked last to the sums of its hours, in pieces. */
export async function fold(store: Store): Promise<void> {
  const { db } = store.long(foldSeconds);
  const fresh = async () => (await sql<{ month: string }>`select distinct month from usage_fresh`.execute(db)).rows.map(({ month }) => month);
  for (;;) {
    const { rows } = await withMonths(store, fresh, () => sql<{ moved: number }>`select usage_fold(${foldSize}) as moved`.execute(db));
    if (rows[0]!.moved < foldSize) return;
  }
}

/** Removes what is no longer needed: leases of past months, requests of past minutes, holders that were closed long ago with their positions. */
async function prune({ db }: Store, months: number): Promise<void> {
  await pruned(db, 'request_second', sql`second < extract(epoch from now()) - 120`);
  await pruned(db, 'leases', sql`month <> '' and month < to_char(now() at time zone 'UTC' - interval '1 month', 'YYYY-MM')`);
  await sql`
    with gone as (
      delete from holders where closed_at < now() - make_interval(months => ${months}) and closed_how <> 'written-off' returning id
    )
    delete from journal_position where split_part(journal, '/', 1) in (select id from gone)`.execute(db);
}

async function pruned(db: Database, table: string, isOld: RawBuilder<unknown>): Promise<void> {
  const piece = async () => {
    const gone = await sql`
      delete from ${sql.table(table)} where ctid = any(array(select ctid from ${sql.table(table)} where ${isOld} limit ${pruneSize}))`.execute(db);
    return Number(gone.numAffectedRows ?? 0n);
  };
  await inPieces(piece, { size: pruneSize, most: Infinity });
}

function monthBefore(milliseconds: number, months: number): string {
  const date = new Date(milliseconds);
  return monthOf(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - months));
}

import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { jobs } from '#store/jobs';
import type { Store } from '#store/open';
import { SqlError } from '#store/sql-error';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { usageRow } from '../../../test/support/usage-rows.ts';
import { openHolders } from './holders.ts';
import { openLeases } from './leases.ts';
import { dropMonthsBefore, makeMonths, makeMonthsAhead, withMonths } from './months.ts';
import { reconcile } from './reconcile.ts';
import { asOld, booksOf } from '../../../test/support/books-of.ts';
import { fold, keepBooks } from './upkeep.ts';

const migrations = [new URL('.', import.meta.url)];

async function partitions({ db }: Store): Promise<string[]> {
  const { rows } = await sql<{
    name: string;
  }>`select inhrelid::regclass::text as name from pg_inherits join pg_class on oid = inhrelid where relkind = 'r' order by 1`.execute(db);
  return rows.map(({ name }) => name);
}

onBothDatabases('months', ({ open }) => {
  test('are made ahead, also by several at once and in December, and dropped whole with all that is in them', async () => {
    const store = await open({ migrations });
    await Promise.all([makeMonthsAhead(store, Date.UTC(2025, 11, 31)), makeMonths(store, ['2025-12']), makeMonthsAhead(store, Date.UTC(2026, 0, 1))]);
    const usage = booksOf(store);
    await usage.record([usageRow({ at: Date.UTC(2025, 11, 30) }), usageRow({ at: Date.UTC(2026, 1, 1) })]);
    expect(await partitions(store)).toEqual(
      ['spent', 'usage', 'usage_hour', 'usage_overall'].flatMap((table) => [
        ...['2025_12', '2026_01', '2026_02'].map((month) => `${table}_${month}`),
        ...(table === 'spent' ? ['spent_always'] : []),
      ]),
    );
    await asOld(store);
    expect(await dropMonthsBefore(store, '2026-02')).toHaveLength(8);
    expect(await dropMonthsBefore(store, '2026-02')).toEqual([]);
    expect((await usage.logs({ limit: 10 })).items.map(({ at }) => at)).toEqual(['2026-02-01T00:00:00.000Z']);
    expect(await usage.spentOf('user:1', '2025-12')).toMatchObject({ requests: 0 });
    await expect(makeMonths(store, ["2026-13'"])).rejects.toMatchObject({ code: 'invalid' });
  });

  test('a month that somebody reads is not waited for: it is dropped the next time', async () => {
    const store = await open({ migrations });
    if (store.kind === 'embedded') return; // one connection: nobody else reads meanwhile
    await booksOf(store).record([usageRow({ at: Date.UTC(2025, 0, 1) })]);
    await asOld(store);
    let worst = 0;
    await store.transaction(async ({ db }) => {
      await sql`select count(*) from usage`.execute(db);
      const dropping = dropMonthsBefore(store, '2025-02');
      let isDone = false;
      void dropping.finally(() => (isDone = true));
      while (!isDone) {
        const since = performance.now();
        await booksOf(store).record([usageRow()]);
        worst = Math.max(worst, performance.now() - since);
      }
      expect(await dropping).toEqual(['usage_hour_2025_01', 'usage_overall_2025_01', 'spent_2025_01']);
    });
    expect(worst).toBeLessThan(10_000);
    expect(await dropMonthsBefore(store, '2025-02')).toEqual(['usage_2025_01']);
  });

  test('a missing one is known by its code, in whatever language the server speaks; a broken rule of a row is none', async () => {
    const store = await open({ migrations });
    const failing = (constraint?: string) => {
      let times = 0;
      const raw = { message: 'keine Partition von Relation »usage« für die Zeile gefunden', code: '23514', table: 'usage', constraint };
      return async () => {
        if (times++ === 0) throw new SqlError(raw);
        return 'done again';
      };
    };
    expect(await withMonths(store, async () => ['2031-01'], failing())).toBe('done again');
    expect(await partitions(store)).toContain('usage_2031_01');
    await expect(withMonths(store, async () => ['2031-02'], failing('usage_input_tokens_check'))).rejects.toThrow('keine Partition');
    const db = store.db;
    await expect(
      withMonths(
        store,
        async () => [],
        () => sql`insert into spent (owner, month) values ('user:1', '2031-03')`.execute(db),
      ),
    ).rejects.toMatchObject({
      table: 'spent',
      constraint: undefined,
    });
  });

  test('a sum of a month that is gone stops no round: it is folded into the month made again, and goes with it when it is dropped', async () => {
    const store = await open({ migrations });
    await makeMonthsAhead(store, systemClock.now());
    const usage = booksOf(store);
    await usage.record([usageRow({ at: Date.UTC(2020, 0) }), usageRow()]);
    await sql`drop table usage_hour_2020_01`.execute(store.db);
    await fold(store);
    expect((await sql`select from usage_fresh`.execute(store.db)).rows).toEqual([]);
    expect(await partitions(store)).toContain('usage_hour_2020_01');
    await usage.record([usageRow({ at: Date.UTC(2020, 0), requestId: 'late' })]);
    await asOld(store);
    await dropMonthsBefore(store, '2020-02');
    expect((await sql`select from usage_fresh`.execute(store.db)).rows).toEqual([]);
  });

  test('a step of the round that fails holds up no other', async () => {
    const store = await open({ migrations });
    const now = systemClock.now();
    await booksOf(store).record([usageRow({ at: now }), usageRow({ at: Date.UTC(2020, 0) })]);
    await sql`alter table usage_hour rename to usage_elsewhere`.execute(store.db); // so that folding fails
    const work = jobs({ store, clock: systemClock });
    const failed: unknown[] = [];
    const log = { info: () => {}, debug: () => {}, warn: (what: object) => failed.push('step' in what && what.step), error: () => {} };
    const end = keepBooks({ store, jobs: work, clock: systemClock, log, months: () => 13 });
    onTestFinished(async () => {
      end();
      await work.close();
    });
    await expect.poll(async () => (await sql`select from job`.execute(store.db)).rows.length, { timeout: 30_000 }).toBe(2);
    expect(failed[0]).toBe('folding');
  });

  test('the round of the books makes months, drops what is too old, folds, and a job finds no drift', async () => {
    const store = await open({ migrations });
    const now = systemClock.now();
    await booksOf(store).record([usageRow({ at: now }), usageRow({ at: Date.UTC(2020, 0) })]);
    await asOld(store);
    const work = jobs({ store, clock: systemClock });
    const said: unknown[] = [];
    const log = { info: () => {}, debug: () => {}, warn: (what: object) => said.push(what), error: (what: object) => said.push(what) };
    const end = keepBooks({ store, jobs: work, clock: systemClock, log, months: () => 13, reconcileSeconds: 0 });
    onTestFinished(async () => {
      end();
      await work.close();
    });
    await expect
      .poll(async () => (await sql<{ state: string; drifts: unknown[] }>`select state, result -> 'drifts' as drifts from job`.execute(store.db)).rows, {
        timeout: 30_000,
      })
      .toEqual([
        { state: 'done', drifts: [] },
        { state: 'done', drifts: [] },
      ]);
    const made = await partitions(store);
    expect(made).not.toContain('usage_2020_01');
    expect(made.filter((name) => name.startsWith('usage_2'))).toHaveLength(2);
    expect((await sql`select from usage_fresh`.execute(store.db)).rows).toEqual([]);
    expect(said).toEqual([]);
  });
});

onBothDatabases('a clock that is wrong', ({ open }) => {
  /** One round of the books of a machine whose clock is this many days ahead. @returns what it warned of */
  async function round(store: Store, daysAhead: number): Promise<readonly string[]> {
    const clock = { ...systemClock, now: () => systemClock.now() + daysAhead * 86_400_000 };
    const work = jobs({ store, clock });
    const said: string[] = [];
    const tell = (_: object, text: string) => void said.push(text);
    const end = keepBooks({ store, jobs: work, clock, log: { info: () => {}, warn: tell, error: tell }, months: () => 13 });
    await expect.poll(async () => (await sql`select from job where kind = 'usage-reconcile'`.execute(store.db)).rows.length, { timeout: 30_000 }).toBe(2);
    end();
    await work.close();
    return said;
  }
  const reconciliations = async (store: Store) =>
    (
      await sql<{ month: string; isSoon: boolean }>`
      select payload ->> 'month' as month, run_at between now() and now() + interval '11 minutes' as "isSoon" from job order by 1`.execute(store.db)
    ).rows;
  const monthsFrom = (ahead: number) =>
    [ahead, ahead + 1].map((one) => new Date(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + one)).toISOString().slice(0, 7));

  test.each([800, -800])('by %i days drops no month, makes none of its own, and says so once a round', async (days) => {
    const store = await open({ migrations });
    await booksOf(store).record([usageRow({ at: systemClock.now() }), usageRow({ at: Date.UTC(2020, 0) })]);
    await asOld(store);
    const before = await partitions(store);
    const warned = await round(store, days);
    expect(warned).toEqual([expect.stringContaining('a day or more apart')]);
    const after = await partitions(store);
    expect(after).toEqual(expect.arrayContaining(before));
    expect(after.filter((name) => name.startsWith('usage_2')).map((name) => name.slice(6).replace('_', '-'))).toEqual(['2020-01', ...monthsFrom(0)]);
    expect(await reconciliations(store)).toEqual(monthsFrom(-1).map((month) => ({ month, isSoon: true })));
  });

  test('by some hours still drops what is old by the clock of the database', async () => {
    const store = await open({ migrations });
    await booksOf(store).record([usageRow({ at: Date.UTC(2020, 0) })]);
    await asOld(store);
    expect(await round(store, 0.5)).toEqual([]);
    expect(await partitions(store)).not.toContain('usage_2020_01');
  });

  test('loses no row that was booked by it: what came to be in 1970 or 2038 stays for as long as what was booked on the same day', async () => {
    const store = await open({ migrations });
    const usage = booksOf(store);
    const ats = [0, Date.UTC(2038, 0, 19)];
    await usage.record([...ats.map((at) => usageRow({ at, userId: 7 })), usageRow({ at: systemClock.now(), userId: 7 })]);
    expect(await round(store, 0)).toEqual([]);
    expect((await usage.logs({ limit: 10, userId: 7 })).items).toHaveLength(3);
    for (const at of ats) {
      const month = new Date(at).toISOString().slice(0, 7);
      expect(await usage.spentOf('user:7', month)).toMatchObject({ requests: 1 });
      expect(await reconcile(store, month)).toEqual([]);
    }
    await dropMonthsBefore(store, monthsFrom(1)[0]!);
    expect((await usage.logs({ limit: 10, userId: 7 })).items.map(({ at }) => at.slice(0, 4))).toEqual(['2038']);
    expect((await sql`select from usage_fresh where month < '2038'`.execute(store.db)).rows).toEqual([]);
  });
});

onBothDatabases('reconciling', ({ open }) => {
  test('finds nothing in sound books, and each sum that somebody has changed', async () => {
    const store = await open({ migrations });
    const usage = booksOf(store);
    const at = Date.UTC(2026, 10, 21, 12);
    await usage.record(Array.from({ length: 450 }, (_, one) => usageRow({ at: at + one, userId: one + 1, teamIds: [one % 3], costUsd: 0.1, planTokens: 1 })));
    expect(await reconcile(store, '2026-11')).toEqual([]);
    expect(await reconcile(store, '2026-12')).toEqual([]);
    for (const change of [
      `update spent set inference = inference + 5 where owner = 'user:7'`,
      `update spent set usd = usd - 0.05 where owner = 'team:2'`,
      `delete from spent where owner = 'user:300'`,
      `delete from usage where user_id = 450`,
    ])
      await sql.raw(change).execute(store.db);
    const drifts = await reconcile(store, '2026-11');
    const sumsOf = (of: string) => drifts.filter((drift) => drift.of === of).map(({ requests, planTokens, costUsd }) => [requests, planTokens, costUsd]);
    expect(sumsOf('user:7')).toEqual([[0, 5, 0]]);
    expect(sumsOf('team:2')).toEqual([[1, 1, 0.05]]);
    expect(sumsOf('user:300')).toEqual([[-1, -1, -0.1]]);
    expect(sumsOf('user:450')).toEqual([[1, 1, 0.1]]);
    expect(sumsOf(new Date(at).toISOString())).toEqual([[1, 1, 0.1]]);
    expect(drifts).toHaveLength(5);
  });

  test('finds nothing while others book', async () => {
    const store = await open({ migrations });
    const usage = booksOf(store);
    const holder = await openHolders(store).enter({ machine: 'test' });
    await openLeases({ store, holder }).lease([
      { account: { owner: 'team:1', kind: 'usd', month: '2026-11' }, turn: 1, heard: 0, amount: 0, limit: 5, least: 1, waiting: 1, wish: 1 },
    ]);
    let isDone = false;
    const booking = (async () => {
      for (let at = 0; !isDone; at++) {
        const rows = JSON.stringify(Array.from({ length: 10 }, () => usageRow({ userId: 1 + (at % 9), teamIds: [1], costUsd: 0.1 })));
        await usage.ship({ holder, journal: `${holder}/0`, from: at, to: at + 1, rows: Buffer.from(rows) });
      }
    })();
    for (let times = 0; times < 3; times++) expect(await reconcile(store, '2026-11')).toEqual([]);
    isDone = true;
    await booking;
  });
});

import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { Charge } from '#core/account';
import type { UsageRow } from '#core/usage-row';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { usageRow } from '../../../test/support/usage-rows.ts';
import { openHolders } from './holders.ts';
import { openLeases } from './leases.ts';
import { reconcile } from './reconcile.ts';
import { booksOf } from '../../../test/support/books-of.ts';

const migrations = [new URL('.', import.meta.url)];

onBothDatabases('shipping', ({ shared }) => {
  const store = shared({ migrations });
  const usage = () => booksOf(store());
  let names = 0;
  const journal = () => `journal-${++names}/0`;
  const user = () => 10_000 + ++names;
  const ship = (name: string, from: number, to: number, rows: readonly UsageRow[]) =>
    usage().ship({ holder: 'nobody', journal: name, from, to, rows: Buffer.from(JSON.stringify(rows)) });

  test('adds each row to the sums of its user, its teams and its month, by its balance', async () => {
    const [userId, team, other] = [user(), user(), user()];
    await ship(journal(), 0, 10, [
      usageRow({ userId, teamIds: [team, other], planTokens: 5, costUsd: 0.1 }),
      usageRow({ userId, teamIds: [team], planTokens: 7, costUsd: 0.2, balance: 'train' }),
      usageRow({ userId, planTokens: 11, at: Date.UTC(2026, 11, 1), inputTokens: 2, outputTokens: 9 }),
    ]);
    const [november, december] = ['2026-11', '2026-12'] as const;
    expect(await usage().spentOf(`user:${userId}`, november)).toEqual({ inference: 5, train: 7, usd: 0.3, requests: 2, inputTokens: 14, outputTokens: 6 });
    expect(await usage().spentOf(`team:${team}`, november)).toMatchObject({ inference: 5, train: 7, usd: 0.3, requests: 2 });
    expect(await usage().spentOf(`team:${other}`, november)).toMatchObject({ inference: 5, train: 0, usd: 0.1, requests: 1 });
    expect(await usage().spentOf(`user:${userId}`, december)).toMatchObject({ inference: 11, usd: 0, requests: 1, inputTokens: 2, outputTokens: 9 });
    expect(await usage().spentOf(`team:${team}`, december)).toMatchObject({ requests: 0 });
  });

  test('the cost of a group is that of the calls whose price is known, with the number of the others; it is null where none is known', async () => {
    const userId = user();
    const at = Date.UTC(2026, 10, 21, 12);
    await ship(journal(), 0, 10, [
      usageRow({ userId, at, model: 'mixed', costUsd: 0.5 }),
      usageRow({ userId, at, model: 'mixed', costUsd: null }),
      usageRow({ userId, at, model: 'unknown', costUsd: null }),
      usageRow({ userId, at, model: 'failed', costUsd: null, status: 502, inputTokens: 0, outputTokens: 0 }),
    ]);
    const sums = async (from: number, to: number) => {
      const items = await usage().usage({ from, to, groupBy: ['model'], userId });
      return Object.fromEntries(items.map(({ model, costUsd, unpriced }) => [model, [costUsd, unpriced]]));
    };
    const expected = { mixed: [0.5, 1], unknown: [null, 1], failed: [0, 0] };
    expect(await sums(at, at + 1000)).toEqual(expected); // of the rows
    expect(await sums(at, at + 3_600_000)).toEqual(expected); // of the hours, as they were booked
    await sql`select usage_fold(1000)`.execute(store().db);
    await ship(journal(), 0, 10, [usageRow({ userId, at, model: 'mixed', costUsd: null })]);
    await sql`select usage_fold(1000)`.execute(store().db);
    expect(await sums(at, at + 3_600_000)).toEqual({ ...expected, mixed: [0.5, 2] });
    expect(await reconcile(store(), '2026-11')).toEqual([]);
  });

  test('the last millisecond of a month and the first of the next are booked in their own months', async () => {
    const userId = user();
    await ship(journal(), 0, 1, [
      usageRow({ userId, at: Date.UTC(2027, 0, 1) - 1, planTokens: 1 }),
      usageRow({ userId, at: Date.UTC(2027, 0, 1), planTokens: 2 }),
    ]);
    expect(await usage().spentOf(`user:${userId}`, '2026-12')).toMatchObject({ inference: 1 });
    expect(await usage().spentOf(`user:${userId}`, '2027-01')).toMatchObject({ inference: 2 });
  });

  test('the same piece of a journal again does nothing, and a piece from elsewhere is a conflict that changes nothing', async () => {
    const [name, userId] = [journal(), user()];
    const row = usageRow({ userId });
    await ship(name, 0, 100, [row]);
    await ship(name, 0, 100, [row, usageRow({ userId })]);
    await expect(ship(name, 50, 200, [usageRow({ userId })])).rejects.toMatchObject({ code: 'conflict' });
    await expect(ship(name, 150, 200, [usageRow({ userId })])).rejects.toMatchObject({ code: 'conflict' });
    await expect(ship(journal(), 5, 200, [usageRow({ userId })])).rejects.toMatchObject({ code: 'conflict' });
    expect(await usage().position(name)).toBe(100);
    expect(await usage().position('never')).toBe(0);
    expect(await usage().spentOf(`user:${userId}`, '2026-11')).toMatchObject({ requests: 1, inference: 10 });
  });

  test('rows that another journal has shipped already move the position and count once', async () => {
    const [first, second, userId] = [journal(), journal(), user()];
    const rows = [usageRow({ userId }), usageRow({ userId }), usageRow({ userId, step: 1 })];
    await ship(first, 0, 100, rows);
    await ship(second, 0, 100, [...rows, usageRow({ userId })]);
    expect(await usage().spentOf(`user:${userId}`, '2026-11')).toMatchObject({ requests: 4, inference: 40 });
    expect(await usage().position(second)).toBe(100);
  });

  test('a row that differs from what is booked under its key is named, and the same row again is not', async () => {
    const userId = user();
    const row = usageRow({ userId, costUsd: 0.1 + 0.2, app: 'ä'.repeat(300), tags: { team: 'x' }, teamIds: [user()] });
    const other = usageRow({ userId });
    expect(await ship(journal(), 0, 100, [row, other])).toEqual([]);
    expect(await ship(journal(), 0, 100, [other, row])).toEqual([]);
    expect(await ship(journal(), 0, 100, [{ ...row, end: 'gateway-died', outputTokens: 0 }])).toEqual([]);
    const ended = { ...other, end: 'cancelled' as const };
    const twice = usageRow({ userId, step: 7 });
    expect(await ship(journal(), 0, 100, [row, ended, twice, { ...twice, outputTokens: 4 }])).toEqual([1, 3]);
    expect(await usage().spentOf(`user:${userId}`, '2026-11')).toMatchObject({ requests: 3, inference: 30 });
  });

  test('of a shipment in which one row is booked already, the others are booked once, in rows and in all sums', async () => {
    const [userId, team] = [user(), user()];
    const rows = Array.from({ length: 4 }, (_, at) => usageRow({ userId, teamIds: [team], planTokens: 10 ** at, costUsd: at / 4 }));
    expect(await ship(journal(), 0, 100, [rows[2]!])).toEqual([]);
    expect(await ship(journal(), 0, 100, rows)).toEqual([]);
    for (const owner of [`user:${userId}`, `team:${team}`] as const)
      expect(await usage().spentOf(owner, '2026-11')).toMatchObject({ requests: 4, inference: 1111, usd: 1.5, inputTokens: 28, outputTokens: 12 });
    const { rows: sums } = await sql<{ requests: number; tokens: number }>`
      select sum(requests)::int as requests, sum(plan_tokens)::int as tokens from usage_fresh where user_id = ${userId}`.execute(store().db);
    expect(sums).toEqual([{ requests: 4, tokens: 1111 }]);
  });

  test('shipped eight times in the same moment, it counts once', async () => {
    const [name, userId] = [journal(), user()];
    const rows = Array.from({ length: 20 }, () => usageRow({ userId }));
    await Promise.all(Array.from({ length: 8 }, () => ship(name, 0, 100, rows)));
    expect(await usage().spentOf(`user:${userId}`, '2026-11')).toMatchObject({ requests: 20, inference: 200 });
  });

  test('a lease is settled by as much as is booked, so that what is left stays', async () => {
    const [name, userId, team] = [journal(), user(), user()];
    const holder = await openHolders(store()).enter({ machine: 'test' });
    const leases = openLeases({ store: store(), holder });
    const account = (owner: 'user' | 'team', kind: 'inference' | 'usd') => ({
      owner: `${owner}:${owner === 'user' ? userId : team}` as const,
      kind,
      month: '2026-11',
    });
    const accounts = [account('user', 'inference'), account('team', 'inference'), account('user', 'usd')];
    let turns = 0;
    const ask = (least: number) =>
      accounts.map((one) => ({ account: one, turn: ++turns, heard: turns - 1, amount: 0, limit: 1000, least, waiting: least, wish: least }));
    const before = await leases.lease(ask(50));
    expect(before.map(({ left }) => left)).toEqual([950, 950, 950]);
    const charges = accounts.map(({ kind, owner }): Charge => `${kind} ${owner}`);
    const row = usageRow({ userId, teamIds: [team], planTokens: 30, costUsd: 0.5, charges });
    await usage().ship({ holder, journal: name, from: 0, to: 9, rows: Buffer.from(JSON.stringify([row])) });
    expect(await leases.lease(ask(0))).toEqual([
      { granted: 0, spent: 30, left: 950 },
      { granted: 0, spent: 30, left: 950 },
      { granted: 0, spent: 0.5, left: 950 },
    ]);
    const late = usageRow({ userId, teamIds: [team], planTokens: 20, costUsd: 20, charges: [charges[1]!] });
    await usage().ship({ holder, journal: name, from: 9, to: 20, rows: Buffer.from(JSON.stringify([row, late])) });
    expect(
      (await leases.lease(ask(0))).map(({ left }) => left),
      'only the team had set it aside',
    ).toEqual([930, 950, 930]);
  });

  test.each<[string, Record<string, unknown>]>([
    ['without a user', { userId: undefined }],
    ['with text for a number', { planTokens: 'many' }],
    ['with a number that no column holds', { planTokens: 1e300 }],
    ['with a negative number', { planTokens: -1 }],
    ['with a negative cost', { costUsd: -0.1 }],
    ['with a NUL', { app: 'a\0b' }],
    ['without an instant', { at: null }],
    ['of the year 20000', { at: Date.UTC(20000, 0) }],
    ['of an unknown balance', { balance: 'gold' }],
  ])('a row %s is refused as invalid, and nothing of its batch is booked', async (_what, wrong) => {
    const [name, userId] = [journal(), user()];
    const rows = JSON.stringify([usageRow({ userId }), { ...usageRow({ userId }), ...wrong }]);
    await expect(usage().ship({ holder: 'nobody', journal: name, from: 0, to: 10, rows: Buffer.from(rows) })).rejects.toMatchObject({ code: 'invalid' });
    expect(await usage().position(name)).toBe(0);
    expect(await usage().spentOf(`user:${userId}`, '2026-11')).toMatchObject({ requests: 0 });
  });

  test('many journals shipped at once with users and teams in any order never deadlock, and the sums are those of the rows', async () => {
    const [first, teams] = [user(), [user(), user(), user()]];
    const before = store().kind === 'server' ? await deadlocks() : 0;
    const pick = () => Math.floor(Math.random() * 30);
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        const name = journal();
        for (let at = 0; at < 12; at++) {
          const rows = Array.from({ length: 40 }, () =>
            usageRow({ userId: first + pick(), teamIds: teams.toSorted(() => Math.random() - 0.5).slice(pick() % 3) }),
          );
          await ship(name, at, at + 1, rows);
        }
      }),
    );
    expect(await reconcile(store(), '2026-11')).toEqual([]);
    if (store().kind === 'server') expect(await deadlocks()).toBe(before);
  });

  async function deadlocks(): Promise<number> {
    const { rows } = await sql<{ deadlocks: number }>`select deadlocks from pg_stat_database where datname = current_database()`.execute(store().db);
    return rows[0]!.deadlocks;
  }
});

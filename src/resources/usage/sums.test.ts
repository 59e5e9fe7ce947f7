import { expect, test } from 'vitest';
import { sql } from 'kysely';
import { booksOf } from '../../../test/support/books-of.ts';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { usageRow } from '../../../test/support/usage-rows.ts';
import { reconcile } from './reconcile.ts';
import type { Group } from './groups.ts';
import { itemsOf, openSums } from './sums.ts';
import { makeMonths } from './months.ts';
import { fold } from './upkeep.ts';

const migrations = ['../users/', '../teams/', '../api-keys/', './'].map((folder) => new URL(folder, import.meta.url));
const minute = 60_000;
const hour = 60 * minute;
const start = Date.UTC(2026, 10, 28, 5, 20);

test('many groups are put together in several turns of the event loop', async () => {
  const sums = { requests: 1, inputTokens: 2, cachedTokens: 0, outputTokens: 3, planTokens: 5, costUsd: 0.5, unpriced: 0, errors: 0 };
  const times = { firstTokenP50Ms: 1, firstTokenP95Ms: 2, totalP50Ms: 3, totalP95Ms: 4 };
  const rows = Array.from({ length: 20_000 }, (_, user) => ({ words: [user, '2026-11-28'], ...sums, ...times, firstTimes: null, totalTimes: null }));
  let turns = 0;
  const tick = setInterval(() => turns++, 0);
  const items = await itemsOf(rows, ['user', 'day']);
  clearInterval(tick);
  expect(turns).toBeGreaterThan(3);
  expect(items).toHaveLength(20_000);
  expect(JSON.stringify(items[7])).toBe(JSON.stringify({ user: 7, day: '2026-11-28', ...sums, ...times }));
});

onBothDatabases('sums of usage', ({ shared }) => {
  const store = shared({ migrations });
  /** Four days of two users across the end of a month, a row every 17 minutes; what came last is not folded yet. */
  const recorded = async () => {
    const usage = booksOf(store());
    const row = (at: number) =>
      usageRow({
        at: start + at * 17 * minute,
        userId: 1 + (at % 2),
        model: `model ${at % 3}`,
        face: at % 5 === 0 ? 'messages' : 'chatcompat',
        balance: at % 7 === 0 ? 'train' : 'inference',
        teamIds: at % 2 === 0 ? [4] : at % 3 === 0 ? [4, 9] : [],
        app: at % 6 === 0 ? 'shop' : 'desk',
        planTokens: at,
        inputTokens: 2 * at,
        outputTokens: 3 + at,
        costUsd: at % 11 === 0 ? null : at / 64,
        firstTokenMs: at % 13 === 0 ? null : 10 + ((at * 37) % 900),
        totalMs: at % 17 === 0 ? 0.4 : 1000 + ((at * 91) % 9000), // less than a millisecond is in the first bucket
        ...(at % 4 === 0 && { tags: { project: 'alpha' } }),
      });
    const all = Array.from({ length: 340 }, (_, at) => row(at));
    await usage.record(all.slice(0, 300));
    await fold(store());
    await usage.record(all.slice(300));
    return usage;
  };
  let made: ReturnType<typeof recorded> | undefined;

  const spans = {
    'whole days': [Date.UTC(2026, 10, 28), Date.UTC(2026, 11, 3)],
    'hours of several days': [start + 3 * hour, start + 60 * hour],
    'hours of one day': [start + 12 * hour, start + 14 * hour],
    'parts of hours': [start + 7 * minute, start + 70 * hour + 11 * minute],
    nothing: [start - 9 * hour, start - 2 * hour],
  } as const;
  const groupings: readonly (readonly Group[])[] = [
    [],
    ['model'],
    ['day'],
    ['hour'],
    ['model', 'day'],
    ['face', 'balance'],
    ['user', 'model'],
    ['team'],
    ['team', 'model', 'day'],
    ['app'],
    ['app', 'face'],
    ['app', 'team'],
    ['tag:project', 'day'],
  ];
  const cases = Object.keys(spans).flatMap((span) =>
    groupings.flatMap((groupBy) => ['UTC', 'America/New_York'].map((tz) => [groupBy.join(' and ') || 'nothing', tz, span, groupBy] as const)),
  );

  test.each(cases)('grouped by %s in %s over %s are those of the rows', async (_, tz, span, groupBy) => {
    const usage = await (made ??= recorded());
    const [from, to] = spans[span as keyof typeof spans];
    const wanted = { from, to, groupBy, tz };
    expect(await usage.usage(wanted)).toEqual(await usage.usage({ ...wanted, status: 200 })); // all rows have it, and only they know of it
  });

  test.each(groupings.map((groupBy) => [groupBy.join(' and ') || 'nothing', groupBy] as const))(
    'grouped by %s are the same where there are too many histograms to be added up here',
    async (_, groupBy) => {
      const usage = await (made ??= recorded());
      const [from, to] = spans['parts of hours'];
      const wanted = { from, to, groupBy, tz: 'Europe/Berlin' };
      expect(await openSums(store(), 0).usage(wanted)).toEqual(await usage.usage(wanted));
    },
  );

  test.each([{ team: 4 }, { team: 9 }, { app: 'shop' }, { app: 'shop', team: 4 }, { userId: 2, team: 9 }, { team: 4, model: 'model 1' }])(
    'of %o are those of the rows',
    async (filter) => {
      const usage = await (made ??= recorded());
      const [from, to] = spans['hours of several days'];
      for (const groupBy of [[], ['day'], ['app'], ['team'], ['model', 'team']] as const) {
        const sums = await usage.usage({ from, to, groupBy, ...filter });
        expect(sums[0]!.requests).toBeGreaterThan(0);
        expect(sums).toEqual(await usage.usage({ from, to, groupBy, ...filter, status: 200 }));
      }
    },
  );

  test('that another program has changed are found out, those of all users too', async () => {
    await (made ??= recorded());
    await fold(store());
    expect([...(await reconcile(store(), '2026-11')), ...(await reconcile(store(), '2026-12'))]).toEqual([]);
    await sql`update usage_overall set requests = requests + 2 where span = 'day' and hour = '2026-11-29T00:00:00Z' and model = 'model 1' and face = 'messages' and balance = 'inference'`.execute(
      store().db,
    );
    await sql`
      insert into usage_overall select month, '2026-12-31T23:00:00Z', span, face, model, provider, region, balance, 5, 0, 0, 0, 0, 0, 0, 0, '{}', '{}', series
      from usage_overall where span = 'hour' and month = '2026-12' order by hour limit 1`.execute(store().db);
    expect(await reconcile(store(), '2026-11')).toEqual([{ of: '2026-11-29T00:00:00.000Z', requests: 2, planTokens: 0, costUsd: 0 }]);
    expect(await reconcile(store(), '2026-12')).toEqual([{ of: '2026-12-31T23:00:00.000Z', requests: 5, planTokens: 0, costUsd: 0 }]);
  });

  test('what was spent before a limit is read from the sums of its owner alone, also after those of many others', async () => {
    const { db } = store();
    await makeMonths(store(), ['2026-03']);
    await sql`
      insert into usage_hour (month, hour, user_id, key_id, app, face, model, provider, region, tags, requests, input_tokens, output_tokens, plan_tokens, cost_usd,
        errors, balance, team_ids, route, cached_tokens, first_times, total_times, series, unpriced)
      select '2026-03', timestamptz '2026-03-01 00:00+00' + n % 700 * interval '1 hour', 1 + n % 1000, 1 + n % 2000, '', '', '', '', '', '', 1, 1, 1, 2, 0, 0, 'inference',
        array[n % 500], 'm' || n % 3, 0, '{}', '{}', gen_random_uuid(), 0
      from generate_series(1, 20000) as n`.execute(db);
    await sql`insert into users (id, email, role, plan) overriding system value select n, n || '@example.org', 'user', 'p' from generate_series(1, 1000) as n`.execute(
      db,
    );
    await sql`
      insert into api_keys (id, user_id, name, digest, shown) overriding system value
      select n, 1 + (n - 1) % 1000, 'k', n::text::bytea, 'k' from generate_series(1, 2000) as n`.execute(db);
    await sql`analyze usage_hour`.execute(db);
    const opened = (owner: string) =>
      store().transaction(async (inside) => {
        const read = async () => {
          const { rows } = await sql<{ all: number }>`
            select (pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid))::int as all
            from (values ('usage_hour_2026_03'::regclass)) as part(oid)`.execute(inside.db);
          return rows[0]!.all;
        };
        const before = await read();
        const { rows } = await sql<{ tokens: number }>`select inference::int as tokens from book_so_far(${owner}, '2026-03')`.execute(inside.db);
        return { tokens: rows[0]!.tokens, read: (await read()) - before };
      });
    for (let id = 1; id < 9; id++)
      for (const [owner, tokens] of [
        [`key:${id}`, 20],
        [`user:${id}`, 40],
        [`team:${id}`, 80],
        [`user:${id + 5000}/m1`, 0],
      ] as const) {
        const found = await opened(owner);
        expect([owner, found.tokens]).toEqual([owner, tokens]);
        expect([owner, found.read < 200]).toEqual([owner, true]);
      }
  });
});

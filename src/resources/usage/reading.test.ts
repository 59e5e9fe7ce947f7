import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { onBothDatabases } from '../../../test/databases.ts';
import { usageRow } from '../../../test/usage-rows.ts';
import { openUsage } from './store.ts';
import { groups, type Group } from './sums.ts';
import { fold } from './upkeep.ts';

const migrations = [new URL('.', import.meta.url)];
const noon = Date.UTC(2026, 10, 21, 12);
const minutes = 60_000;
const hours = 60 * minutes;

onBothDatabases('logs', ({ shared }) => {
  const store = shared({ migrations });
  let users = 0;

  test('are newest first, over the month’s end, in pages that neither miss nor repeat a row of the same instant', async () => {
    const userId = ++users;
    const usage = openUsage(store());
    const rows = Array.from({ length: 25 }, (_, at) => usageRow({ userId, at: Date.UTC(2026, 11, 1) + (Math.floor(at / 5) - 2) * 1000, step: at % 2 }));
    await usage.record(rows);
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page = await usage.logs({ userId, limit: 4, ...(cursor === null ? {} : { cursor }) });
      expect(page.items.length).toBe(cursor === null || page.nextCursor ? 4 : 1);
      seen.push(...page.items.map(({ requestId }) => requestId));
      cursor = page.nextCursor;
    } while (cursor !== null);
    const newest = rows.toSorted((a, b) => b.at - a.at || (a.requestId < b.requestId ? 1 : -1));
    expect(seen).toEqual(newest.map(({ requestId }) => requestId));
  });

  test('are those of a user, a model, a status, and all of these at once', async () => {
    const [one, other] = [++users, ++users];
    const usage = openUsage(store());
    const model = `model-${one}`;
    await usage.record([
      usageRow({ userId: one, model, status: 200, at: noon + 1 }),
      usageRow({ userId: one, model, status: 429, at: noon + 2 }),
      usageRow({ userId: other, model, status: 429, at: noon + 3 }),
      usageRow({ userId: other, status: 418, at: noon + 4 }),
    ]);
    const of = async (wanted: { userId?: number; model?: string; status?: number }) =>
      (await usage.logs({ ...wanted, limit: 10 })).items.map(({ userId, status }) => [userId, status]);
    expect(await of({ userId: one })).toEqual([
      [one, 429],
      [one, 200],
    ]);
    expect(await of({ model })).toEqual([
      [other, 429],
      [one, 429],
      [one, 200],
    ]);
    expect(await of({ status: 418 })).toEqual([[other, 418]]);
    expect(await of({ userId: one, model, status: 429 })).toEqual([[one, 429]]);
    expect(await of({ userId: one, model: 'another' })).toEqual([]);
    expect((await usage.logs({ userId: one, limit: -1 })).items).toHaveLength(1);
    expect((await usage.logs({ userId: one, limit: 1e9 })).items).toHaveLength(2);
  });

  test('show a row as it was booked, and a request with all its attempts and steps', async () => {
    const userId = ++users;
    const usage = openUsage(store());
    const attempts = [
      { provider: 'a', model: 'm', region: 'r', milliseconds: 3, fault: 'overloaded' },
      { provider: 'b', model: 'm2', milliseconds: 5 },
    ];
    const row = usageRow({ userId, attempts, costUsd: 0.000123, teamIds: [4, 5], cachedTokens: 2, firstTokenMs: null, balance: 'train' });
    await usage.record([{ ...row, step: 1, costUsd: null }, row]);
    const at = new Date(row.at).toISOString();
    expect((await usage.logs({ userId, limit: 1 })).items).toEqual([{ ...row, at, attempts: 2, step: 1, costUsd: null }]);
    expect(await usage.log(row.requestId)).toEqual([
      { ...row, at },
      { ...row, at, step: 1, costUsd: null },
    ]);
    expect(await usage.log('req_nobody')).toEqual([]);
  });

  test.each(['', 'x', Buffer.from('[1,2,3]').toString('base64url'), Buffer.from('["2026-11-21T12:00:00.000Z","a\\u0000",0]').toString('base64url')])(
    'with the cursor %j are refused, naming it',
    async (cursor) => {
      await expect(openUsage(store()).logs({ limit: 1, cursor })).rejects.toMatchObject({ code: 'invalid', details: { field: 'cursor' } });
    },
  );
});

onBothDatabases('usage by groups', ({ shared }) => {
  const store = shared({ migrations });

  test('equals the rows, for every grouping and every range, before and after what was booked last is folded', async () => {
    const usage = openUsage(store());
    const pick = <One>(...list: One[]) => list[Math.floor(Math.random() * list.length)]!;
    const rows = Array.from({ length: 400 }, () =>
      usageRow({
        at: noon - 40 * hours + Math.floor(Math.random() * 80 * hours),
        userId: pick(1, 2, 3),
        keyId: pick(1, 2),
        app: pick('one', 'two'),
        face: pick('chatcompat', 'gencompat'),
        model: pick('a', 'b'),
        region: pick('', 'us-east1'),
        status: pick(200, 429, 500),
        planTokens: pick(1, 7, 30),
        costUsd: pick(null, 0.1, 0.25),
        inputTokens: pick(1, 2),
        outputTokens: pick(0, 5),
      }),
    );
    await usage.record(rows.slice(0, 200));
    await fold(store());
    await usage.record(rows.slice(200));
    const ranges = [
      [noon - 100 * hours, noon + 100 * hours],
      [noon - 7 * hours, noon + 5 * hours],
      [noon - 7 * hours + 13 * minutes, noon + 5 * hours + 31 * minutes + 1],
      [noon + 3 * minutes, noon + 40 * minutes],
      [noon + 30 * minutes, noon + 90 * minutes],
      [noon, noon],
    ] as const;
    const groupings: Group[][] = [[], ...groups.map((group) => [group]), ['model', 'user'], ['day', 'region', 'key', 'app'], [...groups]];
    for (let folded = 0; folded < 2; folded++) {
      for (const [from, to] of ranges)
        for (const groupBy of groupings) {
          const items = await usage.usage({ from, to, groupBy });
          expect(new Set(items.map((item) => JSON.stringify(rounded(item))))).toEqual(from === to ? new Set() : expected(from, to, groupBy));
          if (groupBy.length === 7) expect(items.length).toBe(expected(from, to, groupBy).size);
        }
      expect((await usage.usage({ from: noon, to: noon + 10 * hours, groupBy: ['user'], userId: 2 })).map(({ user }) => user)).toEqual([2]);
      await fold(store());
    }
    const { rows: left } = await sql`select from usage_fresh`.execute(store().db);
    expect(left).toEqual([]);

    function expected(from: number, to: number, groupBy: readonly Group[]): Set<string> {
      const sums = new Map<string, Record<string, string | number>>();
      for (const row of rows.filter(({ at }) => at >= from && at < to)) {
        const words = {
          user: row.userId,
          key: row.keyId,
          app: row.app,
          face: row.face,
          model: row.model,
          region: row.region,
          day: new Date(row.at).toISOString().slice(0, 10),
        };
        const its = Object.fromEntries(groupBy.map((group) => [group, words[group]]));
        const sum = sums.get(JSON.stringify(its)) ?? { ...its, requests: 0, inputTokens: 0, outputTokens: 0, planTokens: 0, costUsd: 0, errors: 0 };
        sums.set(JSON.stringify(its), sum);
        const { inputTokens, outputTokens, planTokens } = row;
        const more = { requests: 1, inputTokens, outputTokens, planTokens, costUsd: row.costUsd ?? 0, errors: row.status >= 400 ? 1 : 0 };
        for (const [name, amount] of Object.entries(more)) sum[name] = Number(sum[name]) + amount;
      }
      if (groupBy.length === 0 && sums.size === 0) sums.set('', { requests: 0, inputTokens: 0, outputTokens: 0, planTokens: 0, costUsd: 0, errors: 0 });
      return new Set([...sums.values()].map((sum) => JSON.stringify(rounded(sum))));
    }
    function rounded(item: object) {
      return 'costUsd' in item ? { ...item, costUsd: Number(item.costUsd).toFixed(6) } : item;
    }
  });
});

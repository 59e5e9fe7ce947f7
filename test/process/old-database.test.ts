/* A server of today on the database of an earlier release. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { openStore } from '#store/open';
import { migrations } from '../../src/app/database.ts';
import { reconcile } from '../../src/resources/usage/reconcile.ts';
import { emptyName, onBothDatabases, type Place } from '../support/databases.ts';
import { administrate, askWith } from '../support/members.ts';
import { loadOldDatabase, monthAt, oldEnvironment, oldKeys } from '../support/old-database/load.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

const day = `${monthAt(0)}-24`;
const [ann, bob, eve, gone] = [2, 3, 4, 5];
/** `small` and `squad` are in the database. */
const yaml = `plans:
  free: { monthlyTokens: 200000, requestsPerMinute: 6000 }
models:
  priced: { targets: [{ provider: built-in }], price: { input: 1, output: 2 }, aliases: [dear] }
`;
const words = (model = 'built-in', max = 5) => ({ model, max_tokens: max, messages: [{ role: 'user', content: 'Say exactly: one two three four' }] });

interface Sums {
  readonly user: number;
  readonly requests: number;
  readonly planTokens: number;
  readonly totalP50Ms: number | null;
}

onBothDatabases('a database of 2026-11-22', ({ lasting }) => {
  let server: TestServer;
  let place: Place;
  let remove: () => Promise<unknown>;
  beforeAll(async () => {
    ({ place, remove } = await lasting(emptyName));
    await loadOldDatabase(place);
    server = await startTestServer({ yaml, ...place, env: oldEnvironment });
  }, 120_000);
  afterAll(async () => {
    await server?.close();
    await remove?.();
  });

  const ask = async <Answer>(path: string) => (await administrate<{ items: readonly Answer[] }>(root(), 'GET', path)).items;
  const root = () => ({ url: server.url, key: oldEnvironment.DRAGOMAN_ADMIN_API_KEY });
  const status = async (key: string, body: object = words()) => (await askWith(server, key, body)).status;

  test('opens, and its usage is as it was, by user, team, key, model, day, tag and hour', async () => {
    const users = await ask<Sums>('/usage?groupBy=user');
    expect(users.map(({ user, requests, planTokens }) => [user, requests, planTokens])).toEqual([
      [bob, 38, 978],
      [ann, 16, 253],
      [eve, 1, 12],
      [gone, 1, 12],
    ]);
    expect(users[0]!.totalP50Ms).toBeGreaterThan(0);
    const figures = async (groupBy: string) =>
      (await ask<Record<string, unknown>>(`/usage?groupBy=${groupBy}`)).map((one) => [
        ...groupBy.split(',').map((word) => one[word]),
        one['requests'],
        one['inputTokens'],
        one['outputTokens'],
        one['costUsd'],
      ]);
    expect(await figures('team')).toEqual([
      [1, 54, 881, 350, 0.000019],
      [null, 2, 22, 2, 0],
    ]);
    expect(await figures('user,model,day')).toEqual([
      [bob, 'built-in', day, 38, 679, 299, 0],
      [ann, 'built-in', day, 14, 183, 48, 0],
      [ann, 'dear', day, 1, 13, 3, 0.000019],
      [eve, 'built-in', day, 1, 11, 1, 0],
      [gone, 'built-in', day, 1, 11, 1, 0],
      [ann, 'built-in-embedding', day, 1, 6, 0, 0],
    ]);
    expect(await figures('tag:project,hour')).toEqual([
      ['', `${day}T03:00`, 45, 755, 311, 0.000019],
      ['alpha', `${day}T03:00`, 8, 112, 32, 0],
      ['beta', `${day}T03:00`, 3, 36, 9, 0],
    ]);
    expect((await ask('/logs?limit=200')).length).toBe(56);
    expect((await ask('/audit?limit=200')).length).toBe(19);
  });

  test('its balances and counters say what was spent', async () => {
    const mine = (await (await fetch(`${server.url}/server/mine`, { headers: { 'x-access-tokens': oldKeys.ann } })).json()) as { balances: unknown[] };
    expect(mine.balances).toContainEqual(expect.objectContaining({ owner: `user:${ann}`, limit: 'monthlyTokens', of: 5000, used: 253, left: 4747 }));
    expect(mine.balances).toContainEqual(expect.objectContaining({ owner: 'team:1', limit: 'monthlyTokens', of: 100_000, used: 1231 }));
    expect(mine.balances).toContainEqual(expect.objectContaining({ owner: 'team:1', limit: 'monthlyUsd', of: 10, used: 0.000019 }));
    const counted = await fetch(`${server.url}/server/count-monthly-tokens`, { headers: { 'x-access-tokens': oldKeys.bob } });
    expect(await counted.json()).toMatchObject({ response: 978 });
  });

  test('its keys are as good as they were, with their scopes and models', async () => {
    expect(await status(oldKeys.ann)).toBe(200);
    expect(await status(oldKeys.scoped)).toBe(200);
    expect(await status(oldKeys.scoped, words('priced'))).toBe(404);
    expect((await fetch(`${server.url}/server/get-datasets`, { headers: { 'x-access-tokens': oldKeys.scoped } })).status).toBe(403);
    for (const key of [oldKeys.revoked, oldKeys.suspended, oldKeys.deleted]) expect(await status(key)).toBe(401);
    const mine = await fetch(`${server.url}/server/mine/keys`, { headers: { 'x-access-tokens': oldKeys.ann } });
    expect(
      ((await mine.json()) as { items: { name: string; scopes: unknown; models: unknown }[] }).items.map((one) => [one.name, one.scopes, one.models]),
    ).toEqual([
      ['laptop', null, null],
      ['scoped', ['passthrough'], ['built-in']],
    ]);
    const stored = await fetch(`${server.url}/server/chatcompat/v1/responses/resp_1hPKbUnfCdVZVdfUBudPGt`, {
      headers: { authorization: `Bearer ${oldKeys.ann}` },
    });
    expect(JSON.stringify(await stored.json())).toContain('kept too');
  });

  test('its limits go on from what was spent, new limits of keys and models too', async () => {
    expect(await status(oldKeys.bob, words('built-in', 20))).toBe(429); // 22 of his own 1,000 are left
    await administrate(root(), 'PATCH', `/users/${bob}`, { monthlyTokens: 2000 });
    await expect.poll(() => status(oldKeys.bob, words('built-in', 20)), { timeout: 30_000 }).toBe(200);
    const change = (limits: object) =>
      fetch(`${server.url}/server/mine/keys/2?owner=${ann}`, {
        method: 'PATCH',
        headers: { 'x-access-tokens': root().key, 'content-type': 'application/json' },
        body: JSON.stringify(limits),
      });
    const spent = 253 - 14; // all of Ann's but that of her other key
    expect((await change({ monthlyTokens: spent + 1 })).status).toBe(200);
    await expect.poll(() => status(oldKeys.ann), { timeout: 30_000 }).toBe(429);
    expect((await change({ monthlyTokens: null, modelLimits: { dear: { monthlyTokens: 17 } } })).status).toBe(200);
    await expect.poll(() => status(oldKeys.ann, words('priced')), { timeout: 30_000 }).toBe(429);
    await expect.poll(() => status(oldKeys.ann), { timeout: 30_000 }).toBe(200);
  });

  test('its sums are those of its rows', async () => {
    await server.close();
    const { folder, databaseUrl } = place;
    const store = await openStore({ folder: `${folder}/data`, ...(databaseUrl === undefined ? {} : { databaseUrl }), migrations, clock: systemClock });
    try {
      expect(await reconcile(store, monthAt(0))).toEqual([]);
    } finally {
      await store.close();
    }
  });
});

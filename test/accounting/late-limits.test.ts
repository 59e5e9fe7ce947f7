/* Limits that begin while their owner uses the gateway: what was used before counts, though it was not booked yet. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { onServer } from '../support/databases.ts';
import { ok, pace, startUpstream, type Upstream } from '../support/fakes/upstream/index.ts';
import { administrate, fixed, fixedCost, newMember, usedByUser, type Member, type Served } from '../support/members.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { startCluster } from '../support/cluster.ts';
import { tally } from './exactness.ts';

const address = inject('postgres');
const database = onServer(address ?? '');

const isLimited = (headers: Headers) => Number(headers.get('x-ratelimit-limit-tokens')) < 10_000;

/** The first answer under a limit that was set a moment ago; those before it count too. */
async function firstLimited(member: Member): Promise<number> {
  for (;;) {
    const { status, headers } = await member.ask(fixed);
    if (status !== 200 || isLimited(headers)) return status;
  }
}

/** Five calls, and then a limit of three: none more is answered. */
async function noneMore(server: Served, limits: object): Promise<void> {
  const member = await newMember(server);
  expect(await tally(Array.from({ length: 5 }, () => member.ask(fixed)))).toEqual({ 200: 5 });
  await administrate(server, 'PATCH', `/users/${member.id}`, limits);
  expect([limits, await firstLimited(member)]).toEqual([limits, 429]);
}

describe('one process, embedded', () => {
  let server: TestServer;
  let upstream: Upstream;
  let cost: number;
  beforeAll(async () => {
    upstream = await startUpstream();
    server = await startTestServer({ upstream: upstream.url });
    cost = await fixedCost(server);
  });
  afterAll(async () => {
    await server.close();
    await upstream.close();
  });

  const used = (member: Member) => async () => (await usedByUser(server)).get(member.id)?.planTokens ?? 0;

  test.each(['monthlyTokens', 'dailyTokens'])('a %s that begins just after calls refuses the next one', (limit) => noneMore(server, { [limit]: 3 * cost }));

  test('so does a limit of a model that begins just after calls', () => noneMore(server, { modelLimits: { 'built-in': { monthlyTokens: 3 * cost } } }));

  test('a limit that was lifted for a while does not forget what was used meanwhile', async () => {
    const member = await newMember(server);
    const limit = (monthlyTokens: number | null) => administrate(server, 'PATCH', `/users/${member.id}`, { monthlyTokens });
    await limit(20 * cost);
    expect(await firstLimited(member)).toBe(200);
    await limit(null);
    await expect.poll(async () => isLimited((await member.ask(fixed)).headers), { timeout: 30_000 }).toBe(false);
    expect(await tally(Array.from({ length: 40 }, () => member.ask(fixed)))).toEqual({ 200: 40 });
    await expect.poll(used(member), { timeout: 30_000 }).toBeGreaterThan(40 * cost);
    await limit(20 * cost);
    await expect.poll(async () => (await member.ask(fixed)).status, { timeout: 30_000 }).toBe(429);
    const before = await used(member)();
    expect(await tally(Array.from({ length: 10 }, () => member.ask(fixed)))).toEqual({ 429: 10 });
    expect(await used(member)()).toBeLessThanOrEqual(before + 3 * cost);
  });

  test.each([{}, { dailyTokens: 100_000 }])('a stream that runs when a limit begins is taken from it when it ends, with %j before', async (before) => {
    const member = await newMember(server, before);
    upstream.script(pace(20, ok({ text: 'word '.repeat(40), usage: { input: 0, output: 1000 } })));
    const stream = await member.ask({ ...fixed, model: 'gpt-4o-mini', stream: true, max_tokens: 2000 });
    await administrate(server, 'PATCH', `/users/${member.id}`, { monthlyTokens: 20 * cost });
    expect(await firstLimited(member)).toBe(200);
    await stream.text();
    expect(await tally(Array.from({ length: 5 }, () => member.ask(fixed)))).toEqual({ 429: 5 });
  });
});

describe.skipIf(!address)('on PostgreSQL', () => {
  test('two workers: a limit that begins just after calls refuses the next one', { timeout: 120_000 }, async () => {
    const server = await startCluster(await database.place());
    await noneMore(server, { monthlyTokens: 3 * (await fixedCost(server)) });
  });
});

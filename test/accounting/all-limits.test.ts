/* Limits of API keys, teams, days and single models, each with the others. */
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { onServer } from '../support/databases.ts';
import { startCluster } from '../support/cluster.ts';
import { administrate, askWith, fixed, fixedCost, newMember, type Member } from '../support/members.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { booked, tally, tenOfAllLimits, twoMachines } from './exactness.ts';

const address = inject('postgres');
const database = onServer(address ?? '');
const minute = 60_000;

interface Refused {
  readonly error: { readonly message: string; readonly code: string };
}

describe('one process, embedded', () => {
  let server: TestServer;
  let cost: number;
  let shift = 0;
  beforeAll(async () => {
    const yaml = 'models: { priced: { targets: [{ provider: built-in }], price: { input: 1, output: 1 }, aliases: [also-priced] } }\n';
    server = await startTestServer({ yaml, clock: { ...systemClock, now: () => systemClock.now() + shift } });
    cost = await fixedCost(server);
  });
  afterAll(() => server.close());

  const keyOf = async (member: Member, limits: object) =>
    (await administrate<{ key: string }>(server, 'POST', `/users/${member.id}/keys`, { name: 'ci', ...limits })).key;
  const refusal = async (answer: Response) => ({
    status: answer.status,
    after: Number(answer.headers.get('retry-after')),
    ...((await answer.json()) as Refused),
  });

  /** What is told to be used of each limit of a month or a day. */
  const used = async (key: string) => {
    const answer = await fetch(`${server.url}/server/mine`, { headers: { authorization: `Bearer ${key}` } });
    return ((await answer.json()) as { balances: { used: number }[] }).balances.map((balance) => balance.used);
  };

  test('of 200 concurrent calls with limits of key, team, day and model at once, ten are answered', () => tenOfAllLimits([server]), 3 * minute);

  test.each([
    ['monthlyTokens', 1, 'of your API key "ci" for this month (monthlyTokens)'],
    ['dailyTokens', 1, 'of your API key "ci" for today (dailyTokens)'],
  ])('a refusal names %s and whose it is', async (limit, calls, says) => {
    const key = await keyOf(await newMember(server), { [limit]: calls * cost });
    expect(await tally([askWith(server, key, fixed)])).toEqual({ 200: 1 });
    const { status, after, error } = await refusal(await askWith(server, key, fixed));
    expect([status, error.code]).toEqual([429, 'insufficient_quota']);
    expect(error.message).toContain(says);
    expect(after).toBeGreaterThan(0);
    expect(after).toBeLessThanOrEqual(limit === 'dailyTokens' ? 86_400 : 31 * 86_400);
  });

  test('of several limits that are used up, a refusal names the one that takes longest to come back', async () => {
    const member = await newMember(server, { dailyTokens: cost });
    const key = await keyOf(member, { monthlyTokens: cost, modelLimits: { 'built-in': { requestsPerMinute: 0 } } });
    expect(await tally([member.ask(fixed)])).toEqual({ 200: 1 });
    const other = await keyOf(member, { monthlyTokens: 0 });
    const { after, error } = await refusal(await askWith(server, other, fixed));
    const toNextDay = Math.ceil((nextDay() - systemClock.now()) / 1000);
    const isLastDay = new Date(nextDay()).getUTCDate() === 1; // then both come back at the same moment
    if (!isLastDay) expect([error.message, after > toNextDay]).toEqual([expect.stringContaining('(monthlyTokens)'), true]);
    expect((await refusal(await askWith(server, key, fixed))).error.message).toContain('(dailyTokens)');
  });

  test('an answer that is given again says what is left now, and costs nothing', async () => {
    const member = await newMember(server, { monthlyTokens: 10 * cost, requestsPerMinute: 10 });
    const left = async (init?: RequestInit) => {
      const { headers } = await member.ask(fixed, init);
      return ['x-dragoman-replayed', 'x-ratelimit-limit-tokens', 'x-ratelimit-remaining-tokens', 'x-ratelimit-remaining-requests'].map((name) =>
        headers.get(name),
      );
    };
    const same = { headers: { 'idempotency-key': 'same' } };
    expect(await left(same)).toEqual([null, String(10 * cost), String(9 * cost), '9']);
    expect(await left()).toEqual([null, String(10 * cost), String(8 * cost), '8']);
    for (let times = 0; times < 2; times++) expect(await left(same)).toEqual(['true', String(10 * cost), String(8 * cost), '8']);
  });

  test.each([
    ['concurrentStreams', { concurrentStreams: 0 }, {}],
    ['requestsPerMinute', { requestsPerMinute: 0 }, {}],
    ['tokensPerMinute', { tokensPerMinute: 0 }, {}],
    ['tokensPerMinute', { tokensPerMinute: 20 }, { max_tokens: 5000 }],
  ])('a client is told not to repeat by itself what %s can never let in', async (limit, limits, more) => {
    const member = await newMember(server, limits);
    const refused = await member.ask({ ...fixed, stream: true, ...more });
    expect([refused.status, refused.headers.get('x-should-retry'), Number(refused.headers.get('retry-after'))]).toEqual([429, 'false', 60]);
    expect(await refused.text()).toContain(`(${limit})`);
  });

  test('a team that refuses is called by its name, and its own limit stands in place of its plan', async () => {
    const member = await newMember(server);
    const { id } = await administrate<{ id: number }>(server, 'POST', '/teams', {
      name: 'Research',
      plan: 'unlimited',
      members: [member.id],
      dailyTokens: cost,
    });
    expect(await tally([member.ask(fixed)])).toEqual({ 200: 1 });
    expect((await refusal(await member.ask(fixed))).error.message).toContain('of your team "Research" for today (dailyTokens)');
    expect(await administrate(server, 'PATCH', `/teams/${id}`, { dailyTokens: null })).not.toHaveProperty('dailyTokens');
    await expect.poll(() => tally([member.ask(fixed)]), { timeout: 30_000 }).toEqual({ 200: 1 });
  });

  test('what was spent before a limit was set counts for it: of the day, the key and the model', async () => {
    for (const limits of [{ dailyTokens: 3 * cost }, { modelLimits: { 'built-in': { monthlyTokens: 3 * cost } } }]) {
      const member = await newMember(server);
      expect(await tally([member.ask(fixed), member.ask(fixed)])).toEqual({ 200: 2 });
      await booked(server, member.id, { requests: 2, planTokens: 2 * cost });
      await administrate(server, 'PATCH', `/users/${member.id}`, limits);
      expect(await used(member.keys[0]!)).toEqual([2 * cost]);
      await expect.poll(async () => (await member.ask(fixed)).headers.get('x-ratelimit-limit-tokens'), { timeout: 30_000 }).toBe(String(3 * cost));
      expect(await tally([member.ask(fixed), member.ask(fixed)])).toEqual({ 429: 2 });
    }
  });

  test('what is told to be used of a new limit of a key is what the key has spent, and not what another has', async () => {
    const member = await newMember(server, {}, 2);
    expect(await tally(member.keys.map((key) => askWith(server, key, fixed)))).toEqual({ 200: 2 });
    await booked(server, member.id, { requests: 2, planTokens: 2 * cost });
    const { items } = await administrate<{ items: { id: number }[] }>(server, 'GET', `/users/${member.id}/keys`);
    const limits = { monthlyTokens: 1000, dailyTokens: 1000, modelLimits: { priced: { monthlyTokens: 1000 }, 'built-in': { monthlyTokens: 1000 } } };
    const changed = await fetch(`${server.url}/server/mine/keys/${items[0]!.id}?owner=${member.id}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(limits),
    });
    expect(changed.status).toBe(200);
    await expect.poll(() => used(member.keys[0]!), { timeout: 30_000 }).toEqual([cost, cost, 0, cost]);
    expect(await tally([askWith(server, member.keys[0]!, fixed)])).toEqual({ 200: 1 });
    await expect.poll(() => used(member.keys[0]!), { timeout: 30_000 }).toEqual([2 * cost, 2 * cost, 0, 2 * cost]);
  });

  test('a limit of a model holds under its alias too, and for no other model', async () => {
    const member = await newMember(server, { modelLimits: { 'also-priced': { requestsPerMinute: 1 } } });
    expect(await tally([member.ask({ ...fixed, model: 'priced' })])).toEqual({ 200: 1 });
    const { status, error } = await refusal(await member.ask({ ...fixed, model: 'also-priced' }));
    expect([status, error.message]).toEqual([
      429,
      expect.stringMatching(
        /^Your plan "[^"]+" for the model priced allows 1 request a minute \(modelLimits\.priced\.requestsPerMinute\): send this again in \d+ seconds?\.$/,
      ),
    ]);
    expect(await tally([member.ask(fixed), member.ask(fixed)])).toEqual({ 200: 2 });
  });

  test('whoever may use a model by its alias may use it by its name, which the list of models has', async () => {
    const member = await newMember(server, { models: ['also-priced'] });
    const list = await fetch(`${server.url}/v1/models`, { headers: { authorization: `Bearer ${member.keys[0]}` } });
    expect(await list.json()).toMatchObject({ data: [{ id: 'priced' }] });
    const key = await keyOf(member, { models: ['priced'] });
    for (const model of ['priced', 'also-priced']) {
      const calls = [member.ask({ ...fixed, model }), askWith(server, key, { ...fixed, model })];
      expect([model, await tally(calls)]).toEqual([model, { 200: 2 }]);
    }
    expect(await tally([member.ask(fixed)])).toEqual({ 404: 1 });
  });

  test('dollars of a day are spent to the limit, and a model without a price is refused where they count', async () => {
    const member = await newMember(server, { dailyUsd: (2 * cost) / 1e6 });
    const priced = { ...fixed, model: 'priced' };
    expect(await tally([member.ask(priced), member.ask(priced)])).toEqual({ 200: 2 });
    expect((await refusal(await member.ask(priced))).error.message).toMatch(/US dollars of your plan "[^"]+" for today \(dailyUsd\)/);
  });

  test('a day that ends gives back what the day has, and the month goes on', async () => {
    const member = await newMember(server, { dailyTokens: cost, monthlyTokens: 2 * cost });
    try {
      shift = nextDay() - systemClock.now() - 3000;
      expect(await tally([member.ask(fixed)])).toEqual({ 200: 1 });
      expect((await refusal(await member.ask(fixed))).after).toBeLessThanOrEqual(3);
      shift += 4000;
      expect(await tally([member.ask(fixed)])).toEqual({ 200: 1 });
      expect((await refusal(await member.ask(fixed))).error.message).toMatch(/used up|left for/);
    } finally {
      shift = 0;
    }
  });

  test('tokens of a minute are counted in plan tokens: what does not fit is 429 until the minute is over, and a call larger than a minute says so', async () => {
    const member = await newMember(server, { tokensPerMinute: 2 * cost });
    const [first, second] = [await member.ask(fixed), await member.ask(fixed)];
    expect([first.status, second.status]).toEqual([200, 200]);
    expect(second.headers.get('x-ratelimit-limit-tokens')).toBe(String(2 * cost));
    expect(second.headers.get('x-ratelimit-remaining-tokens')).toBe('0');
    const { status, after, error } = await refusal(await member.ask(fixed));
    expect([status, error.code]).toEqual([429, 'rate_limit_exceeded']);
    expect(error.message).toMatch(
      new RegExp(`^Your plan "[^"]+" allows ${2 * cost} tokens a minute \\(tokensPerMinute\\): send this again in \\d+ seconds\\.$`),
    );
    expect(after).toBeGreaterThan(50);
    const large = await refusal(await member.ask({ ...fixed, max_tokens: 5000 }));
    expect(large.error.message).toMatch(
      /^This request may cost \d+ tokens, and your plan "[^"]+" allows \d+ a minute \(tokensPerMinute\): ask for a max_tokens of \d+ at most\.$/,
    );
  });

  test('a minute that is smaller than a step lets in a call without a maximum, whose prompt fits', async () => {
    const member = await newMember(server, { tokensPerMinute: 100 });
    const { max_tokens: _, ...open } = fixed;
    expect((await member.ask(open)).status).toBe(200);
    const other = await newMember(server, { tokensPerMinute: 300 }); // its prompt has instructions
    const answer = await fetch(`${server.url}/server/query`, {
      method: 'POST',
      headers: { 'x-access-tokens': other.keys[0]!, 'content-type': 'application/json' },
      body: JSON.stringify({ message: 'Say exactly: hello' }),
    });
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('hello')]);
  });

  test('of 50 concurrent calls as many are answered as fit into the tokens of a minute', async () => {
    const member = await newMember(server, { tokensPerMinute: 7 * cost });
    expect(await tally(Array.from({ length: 50 }, () => member.ask(fixed)))).toEqual({ 200: 7, 429: 43 });
  });

  test.each([
    ['a number below 0', { dailyTokens: -1 }, 'dailyTokens'],
    ['text', { tokensPerMinute: 'many' }, 'tokensPerMinute'],
    ['no number of a model', { modelLimits: { m: { monthlyTokens: 1.5 } } }, 'modelLimits.m.monthlyTokens'],
    ['an unknown limit of a model', { modelLimits: { m: { dailyTokens: 1 } } }, 'modelLimits.m.dailyTokens'],
    ['a list for models that is empty', { models: [] }, 'models'],
    ['a pattern for models', { models: ['gpt-*'] }, 'models[0] must be the name of a model, or "*" alone for all: there are no patterns'],
    ['limits of all models in those of one', { modelLimits: { '*': { monthlyTokens: 1 } } }, 'modelLimits.* must name one model'],
  ])('limits with %s are 400 naming the field, for plans, users, teams and keys', async (_what, limits, field) => {
    const member = await newMember(server);
    for (const [method, path, body] of [
      ['PUT', '/plans/bad', {}],
      ['PATCH', `/users/${member.id}`, {}],
      ['POST', '/teams', { name: 'bad', plan: 'unlimited' }],
      ['POST', `/users/${member.id}/keys`, { name: 'bad' }],
    ] as const) {
      const answer = await fetch(`${server.url}/server/admin${path}`, {
        method,
        headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...body, ...limits }),
      });
      expect([path, answer.status]).toEqual([path, 400]);
      expect(((await answer.json()) as { message: string }).message).toContain(field);
    }
  });

  test('to whom models are given no other exists: not listed, and 404 as an unknown one; of several lists only what all allow', async () => {
    const member = await newMember(server, { models: ['built-in', 'priced'] });
    await administrate(server, 'POST', '/teams', { name: 'few', plan: 'unlimited', members: [member.id], models: ['priced', 'built-in-embedding'] });
    const listed = async () => {
      const answer = await fetch(`${server.url}/server/chatcompat/v1/models`, { headers: { authorization: `Bearer ${member.keys[0]}` } });
      return ((await answer.json()) as { data: { id: string }[] }).data.map(({ id }) => id);
    };
    await expect.poll(listed, { timeout: 30_000 }).toEqual(['priced']);
    expect(await tally([member.ask({ ...fixed, model: 'priced' })])).toEqual({ 200: 1 });
    const [hidden, unknown] = [await member.ask(fixed), await member.ask({ ...fixed, model: 'nowhere' })];
    expect([hidden.status, unknown.status]).toEqual([404, 404]);
    expect((await hidden.text()).replaceAll('built-in', 'nowhere')).toBe(await unknown.text());
  });
});

const nextDay = () => (Math.floor(systemClock.now() / 86_400_000) + 1) * 86_400_000;

describe.skipIf(!address)('on PostgreSQL', () => {
  test(
    'two workers: limits of key, team, day and model at once',
    async () => {
      await tenOfAllLimits([await startCluster(await database.place())]);
    },
    2 * minute,
  );

  test(
    'two machines: limits of key, team, day and model at once',
    async () => {
      await tenOfAllLimits(await twoMachines(await database.place()));
    },
    2 * minute,
  );

  test('one process: limits of key, team, day and model at once', async () => {
    const server = await startTestServer(await database.place());
    onTestFinished(server.close);
    await tenOfAllLimits([server]);
  }, 120_000);
});

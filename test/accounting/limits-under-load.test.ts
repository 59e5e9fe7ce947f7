/* Months that end, limits that change and plans that are damaged, while calls run. */
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { onServer } from '../support/databases.ts';
import { booked, tally } from './exactness.ts';
import { pace, ok, startUpstream, times, type Upstream } from '../support/fakes/upstream/index.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { administrate, askWith, fixed, fixedCost, loggedBy, newMember, usedByUser, type Member } from '../support/members.ts';
import { calm, expectNoDrift } from '../support/mixed-load.ts';
import { proves } from '../support/proves.ts';

const address = inject('postgres');
const { place } = onServer(address ?? '');
const minute = 60_000;

describe.skipIf(!address)('under load', () => {
  let upstream: Upstream;
  let server: TestServer;
  let database: pg.Client;
  let remove: () => Promise<void>;
  beforeAll(async () => {
    if (!address) return;
    const name = `limits_${process.pid}`;
    const admin = new pg.Client(address);
    await admin.connect();
    await admin.query(`create database ${name}`);
    const databaseUrl = new URL(name, address).href;
    upstream = await startUpstream();
    server = await startTestServer({ upstream: upstream.url, databaseUrl, yaml: calm });
    database = new pg.Client(databaseUrl);
    await database.connect();
    remove = async () => {
      await database.end();
      await server.close();
      await upstream.close();
      await admin.query(`drop database ${name} with (force)`);
      await admin.end();
    };
  });
  afterEach(() => upstream?.reset());
  afterAll(() => remove?.());

  /** This many streams that have begun and end in a second or two, twenty words a second. */
  async function streams(member: Member, many: number, words = 30): Promise<readonly Response[]> {
    upstream.script(times(many, pace(50, ok({ text: 'word '.repeat(words) }))));
    const body = { ...fixed, model: 'gpt-4o-mini', stream: true, max_tokens: 100 };
    return Promise.all(Array.from({ length: many }, () => member.ask(body)));
  }

  test('the balances of a user say how many streams run at the moment', { timeout: 120_000 }, async () => {
    const member = await newMember(server, { concurrentStreams: 40 });
    const balance = async () => {
      const answer = await fetch(`${server.url}/server/mine`, { headers: { 'x-access-tokens': member.keys[0]! } });
      return ((await answer.json()) as { readonly balances: readonly object[] }).balances;
    };
    const said = (used: number) => [{ owner: `user:${member.id}`, limit: 'concurrentStreams', model: null, of: 40, used, left: 40 - used, resetsAt: null }];
    expect(await balance()).toEqual(said(0));
    const running = await streams(member, 3, 600); // half a minute, unless they are left
    await expect.poll(balance, { timeout: 30_000 }).toEqual(said(3)); // a busy machine gives back late what no stream uses
    for (const { body } of running) await body!.cancel();
    await expect.poll(balance, { timeout: 30_000 }).toEqual(said(0));
  });

  test.each([
    ['whose limit is lowered to the spent amount', 'PATCH', { monthlyTokens: 0 }, { words: 30, refusal: 429, last: /data: \[DONE\]\n\n$/, end: 'completed' }],
    ['who is suspended', 'PATCH', { status: 'suspended' }, { words: 600, refusal: 401, last: /data: \{"error":.*\}\n\n$/, end: 'cancelled' }],
    ['who is deleted', 'DELETE', undefined, { words: 600, refusal: 401, last: /data: \{"error":.*\}\n\n$/, end: 'cancelled' }],
  ] as const)(
    proves('Q-08', 'a user %s is refused within a second, and the 100 running streams end properly and are booked'),
    async (_what, method, change, { words, refusal, last, end }) => {
      const member = await newMember(server, { monthlyTokens: 1_000_000 });
      const running = await streams(member, 100, words); // those that are cut off would last half a minute
      await administrate(server, method, `/users/${member.id}`, change);
      await expect.poll(async () => Object.keys(await tally([member.ask(fixed)])), { timeout: 30_000, interval: 50 }).toEqual([String(refusal)]);
      for (const answer of running) expect(await answer.text()).toMatch(last);
      const ended = async () => (await loggedBy(server, member.id)).filter((row) => row.end === end && row.outputTokens > 0).length;
      await expect.poll(ended, { timeout: 30_000 }).toBe(100);
      const rows = await loggedBy(server, member.id);
      await booked(server, member.id, { requests: rows.length, planTokens: rows.reduce((sum, { planTokens }) => sum + planTokens, 0) });
    },
    2 * minute,
  );

  test.each([
    ['null', `update plans set limits = 'null' where name = $1`],
    ['a limit of null', `update plans set limits = '{"monthlyTokens":null}' where name = $1`],
    ['a negative limit', `update plans set limits = '{"monthlyTokens":-1}' where name = $1`],
    ['a limit in words', `update plans set limits = '{"monthlyTokens":"many"}' where name = $1`],
    ['a limit that is a list', `update plans set limits = '{"monthlyTokens":[9]}' where name = $1`],
    ['text', `update plans set limits = '"unlimited"' where name = $1`],
    ['a list', `update plans set limits = '[]' where name = $1`],
    ['a row that is gone', 'delete from plans where name = $1'],
    ['a blank name', `update users set plan = '' where plan = $1`],
    ['an own limit that is negative', `update users set limits = '{"monthlyTokens":-5}' where plan = $1`],
    ['own limits that are null', `update users set limits = 'null' where plan = $1`],
    ['own limits that are text', `update users set limits = '"all"' where plan = $1`],
  ])(proves('Q-14', 'a plan damaged to %s blocks its own users and no others'), async (_how, damage) => {
    const [harmed, other] = [await newMember(server, { monthlyTokens: 1_000_000 }), await newMember(server, { monthlyTokens: 1_000_000 })];
    expect(await tally([harmed.ask(fixed), other.ask(fixed)])).toEqual({ 200: 2 });
    const { plan } = await administrate<{ plan: string }>(server, 'GET', `/users/${harmed.id}`);
    await database.query(damage, [plan]);
    for (const topic of ['plans', 'users']) await database.query(`select pg_notify('dragoman', '{"origin":"elsewhere","topic":"${topic}","payload":null}')`);
    await expect.poll(async () => (await tally([harmed.ask(fixed)]))[200] ?? 0, { timeout: 30_000 }).toBe(0);
    for (const status of Object.keys(await tally([harmed.ask(fixed), harmed.ask({ ...fixed, stream: true })]))) expect(['429', '500']).toContain(status);
    expect(await tally([other.ask(fixed), askWith(server, server.key, fixed)])).toEqual({ 200: 2 });
  });
});

describe.skipIf(!address)('created on another machine a moment ago', () => {
  async function opened() {
    const where = await place();
    const server = await startTestServer({ ...where, yaml: calm });
    onTestFinished(server.close);
    const database = new pg.Client(where.databaseUrl);
    await database.connect();
    onTestFinished(() => database.end());
    const member = await newMember(server, { monthlyTokens: 1_000_000 });
    expect(await tally([member.ask(fixed)])).toEqual({ 200: 1 });
    const tell = (topic: string) => database.query(`select pg_notify('dragoman', '{"origin":"elsewhere","topic":"${topic}","payload":null}')`);
    const team = async (name: string, plan: string) => {
      const { rows } = await database.query<{ id: string }>('insert into teams (name, plan) values ($1, $2) returning id', [name, plan]);
      await database.query('insert into team_members (team_id, user_id) values ($1, $2)', [rows[0]!.id, member.id]);
      return Number(rows[0]!.id);
    };
    return { server, database, member, tell, team };
  }

  test('a team and its plan apply to a member whose key is looked up before the change feed has reported them', async () => {
    const { database, member, tell, team } = await opened();
    await database.query(`insert into plans (name, limits) values ('brand-new', '{"requestsPerMinute":1}')`);
    await team('new', 'brand-new');
    await tell('users');
    await expect.poll(async () => Object.keys(await tally([member.ask(fixed)])), { timeout: 30_000 }).toEqual(['429']); // the second of the team's minute
    const refused = await member.ask(fixed);
    expect(await refused.json()).toMatchObject({ error: { code: 'rate_limit_exceeded' } });
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60);
  });

  test("a newly assigned plan of a user or a team is 503 with Retry-After 1 until it is read from the database, and never a month's 429", async () => {
    const { database, member, tell, team } = await opened();
    const id = await team('old', 'unlimited');
    await tell('users');
    await tell('teams');
    expect(await tally([member.ask(fixed)])).toEqual({ 200: 1 });
    for (const plan of ['given-1', 'given-2', 'given-3']) {
      await database.query('insert into plans (name, limits) values ($1, $2)', [plan, { monthlyTokens: 1_000_000 }]);
      await database.query('update teams set plan = $1 where id = $2', [plan, id]);
      await tell('teams');
      for (let call = 0; call < 20; call++) {
        const answer = await member.ask(fixed);
        await answer.text();
        expect([200, 503]).toContain(answer.status);
        if (answer.status === 503) expect(answer.headers.get('retry-after')).toBe('1');
      }
      expect(await tally([member.ask(fixed)])).toEqual({ 200: 1 });
    }
    await database.query(`update teams set plan = 'nobody-made-it' where id = $1`, [id]);
    await tell('teams');
    await expect.poll(async () => Object.keys(await tally([member.ask(fixed)])), { timeout: 30_000 }).toEqual(['429']);
    await database.query('update teams set plan = $1 where id = $2', ['given-1', id]);
    await tell('teams');
    await expect.poll(async () => Object.keys(await tally([member.ask(fixed)])), { timeout: 30_000 }).toEqual(['200']);
  });
});

test.skipIf(!address)(
  proves('Q-07', 'a month that ends under load: each call is in one month, the months add up to the rows, and the new month begins with a full balance'),
  async () => {
    const where = await place();
    let shift = 0;
    const server = await startTestServer({ ...where, yaml: calm, clock: { ...systemClock, now: () => systemClock.now() + shift } });
    onTestFinished(server.close);
    const cost = await fixedCost(server);
    const member = await newMember(server, { monthlyTokens: 100 * cost });
    const now = new Date();
    const next = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1);
    const month = (milliseconds: number) => new Date(milliseconds).toISOString();
    const [from, to, end] = [Date.UTC(now.getUTCFullYear(), now.getUTCMonth()), next, Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 2)].map(month) as [
      string,
      string,
      string,
    ];
    shift = next - systemClock.now() - 300; // this many milliseconds before the end
    let served = 0;
    const afterwards = () => systemClock.now() + shift > next;
    const client = async () => {
      for (let more = 2; more > 0;) {
        const { 200: one = 0 } = await tally([member.ask(fixed)]);
        served += one;
        if (afterwards() && one === 0) more--;
      }
    };
    await Promise.all(Array.from({ length: 10 }, client));
    const read = async () => {
      const [old, fresh] = await Promise.all([usedByUser(server, { from, to }), usedByUser(server, { from: to, to: end })]);
      return [old.get(member.id), fresh.get(member.id)];
    };
    await expect.poll(async () => (await read()).reduce((sum, used) => sum + (used?.requests ?? 0), 0), { timeout: 30_000 }).toBe(served);
    const [old, fresh] = await read();
    expect(old!.planTokens).toBeLessThanOrEqual(100 * cost);
    expect(fresh).toEqual({ requests: 100, planTokens: 100 * cost });
    const rows = await loggedBy(server, member.id);
    expect(rows.filter(({ at }) => Date.parse(at) < next)).toHaveLength(old!.requests);
    expect(rows).toHaveLength(served);
    await expectNoDrift(where, month(next).slice(0, 7));
    await expectNoDrift(where);
  },
  2 * minute,
);

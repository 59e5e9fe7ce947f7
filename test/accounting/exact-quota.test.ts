/* Quota to the token, however many ask at once and wherever. */
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { onServer } from '../support/databases.ts';
import { booked, stepOver, tally, tenOf200, tenOfATeam, twoMachines } from './exactness.ts';
import { always, cut, failing, headersThenHang, ok, startUpstream, tooMany, usage, type Upstream } from '../support/fakes/upstream/index.ts';
import { startCluster } from '../support/cluster.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { administrate, fixed, fixedCost, loggedBy, newMember } from '../support/members.ts';
import { proves } from '../support/proves.ts';

const address = inject('postgres');
const server = onServer(address ?? '');
const minute = 60_000;
const rounds = 3;
const step = 64;
const yaml = `limits: { reserveOutput: ${step}, streamIdleSeconds: 1 }\nrouting: { cooldownSeconds: 0 }\n`;

describe('one process, embedded', () => {
  let upstream: Upstream;
  let server: TestServer;
  beforeAll(async () => {
    upstream = await startUpstream();
    server = await startTestServer({ upstream: upstream.url, yaml });
  });
  afterEach(() => upstream.reset());
  afterAll(async () => {
    await server.close();
    await upstream.close();
  });

  test(proves(['Q-01', 'Q-10'], 'of 200 concurrent calls over two keys with quota for ten, ten are answered'), () => tenOf200([server], rounds), 3 * minute);
  test('the limits of a team and of its user apply together', () => tenOfATeam([server], 1), 3 * minute);
  test(proves(['Q-02', 'Q-04'], 'each stream without a maximum exceeds the quota by a step at most'), () => stepOver([server], step), 3 * minute);

  test(proves('Q-04', 'an amount that a provider bills above the reservation is booked in full, and then no further call is admitted'), async () => {
    const member = await newMember(server, { monthlyTokens: 60 });
    upstream.script(usage({ input: 10, output: 100 }));
    const body = { ...fixed, model: 'gpt-4o-mini', max_tokens: 20, stream: true };
    expect(await tally([member.ask(body)])).toEqual({ 200: 1 });
    await booked(server, member.id, { requests: 1, planTokens: 110 });
    expect(await tally([member.ask(body), member.ask(fixed)])).toEqual({ 429: 2 });
    expect(upstream.requests).toHaveLength(1);
  });

  test(
    proves('Q-05', '1,000 failed and abandoned calls hold nothing back: all of the remaining quota can be spent'),
    async () => {
      const cost = await fixedCost(server);
      const member = await newMember(server, { monthlyTokens: 1_000_000 });
      const body = { ...fixed, model: 'gpt-4o-mini', max_tokens: 100 };
      upstream.script(always(failing(500)));
      for (let turn = 0; turn < 7; turn++) await tally(Array.from({ length: 100 }, () => member.ask({ ...body, stream: turn % 2 === 0 })));
      upstream.reset();
      upstream.script(always(headersThenHang({ afterEvents: 3 })));
      for (let turn = 0; turn < 3; turn++)
        await Promise.all(
          Array.from({ length: 100 }, async () => {
            const leaving = new AbortController();
            const answer = await member.ask({ ...body, stream: true }, { signal: leaving.signal });
            await answer.body!.getReader().read();
            leaving.abort();
          }),
        );
      await expect.poll(async () => (await loggedBy(server, member.id)).length, { timeout: 30_000 }).toBe(1000);
      const spent = (await loggedBy(server, member.id)).reduce((sum, { planTokens }) => sum + planTokens, 0);
      await administrate(server, 'PATCH', `/users/${member.id}`, { monthlyTokens: spent + 10 * cost });
      expect(await tally(Array.from({ length: 40 }, () => member.ask(fixed)))).toEqual({ 200: 10, 429: 30 });
    },
    2 * minute,
  );

  test(proves('Q-13', 'a call that first failed elsewhere is booked once, for the attempt that answered'), async () => {
    const member = await newMember(server, { monthlyTokens: 1_000_000 });
    upstream.script(failing(503), ok(), tooMany({ retryAfter: 0 }), cut({ afterEvents: 0 }), ok());
    for (let turn = 0; turn < 6; turn++) await (await member.ask({ ...fixed, model: 'gpt-4o-mini', stream: turn % 2 === 0 })).text();
    await expect.poll(async () => (await loggedBy(server, member.id)).length).toBe(6);
    const rows = await loggedBy(server, member.id);
    for (const row of rows) expect(row.planTokens > 0).toBe(row.end === 'completed' || row.end === 'length');
  });
});

describe.skipIf(!address)('on PostgreSQL', () => {
  test(
    proves('Q-01', 'one process: of 200 concurrent calls with quota for ten, ten are answered'),
    async () => {
      const dragoman = await startTestServer({ ...(await server.place()), yaml });
      onTestFinished(dragoman.close);
      await tenOf200([dragoman], rounds);
    },
    2 * minute,
  );

  test(
    proves('Q-02', 'two workers: the same, for teams too, and each stream without a maximum exceeds the quota by a step at most'),
    async () => {
      const workers = [await startCluster(await server.place(), yaml)];
      await tenOf200(workers, rounds);
      await tenOfATeam(workers, 1);
      await stepOver(workers, step);
    },
    2 * minute,
  );

  test(
    proves('Q-02', 'two machines: the same, for teams too, and each stream without a maximum exceeds the quota by a step at most'),
    async () => {
      const machines = await twoMachines(await server.place(), yaml);
      await tenOf200(machines, rounds);
      await tenOfATeam(machines, 1);
      await stepOver(machines, step);
    },
    2 * minute,
  );
});

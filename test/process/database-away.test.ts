/* The database away, slow, read-only and restarted under load, as callers and the books see it. */
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { away } from './outages.ts';
import { eventsIn } from '../api/native/run-events.ts';
import { visitorsOf } from '../api/native/visitors.ts';
import { onServer } from '../support/databases.ts';
import { administer } from '../support/postgres.ts';
import { booked, tally } from '../accounting/exactness.ts';
import { ok, pace, startUpstream, talkative, toolCalls } from '../support/fakes/upstream/index.ts';
import { startScriptedMcp, toolNamed } from '../support/fakes/mcp.ts';
import { startTestServer } from '../support/server.ts';
import { askWith, fixed, newMember } from '../support/members.ts';
import { calm, expectNoDrift, mixedLoad } from '../support/mixed-load.ts';
import { lineTo, timed } from '../support/tcp-proxy.ts';
import { proves } from '../support/proves.ts';
import { slowness } from '../support/cpu-time.ts';

const address = inject('postgres');
const { place } = onServer(address ?? '');
const minute = 60_000;

async function dragoman(clock = systemClock) {
  const { folder, databaseUrl } = await place();
  const line = await lineTo(databaseUrl!);
  const upstream = await startUpstream();
  const open = await startTestServer({ folder, databaseUrl: line.url, upstream: upstream.url, yaml: calm, clock });
  onTestFinished(async () => {
    await line.set('on');
    line.delay(0);
    await open.close();
    await upstream.close();
  });
  return { ...open, line, upstream, folder, databaseUrl: databaseUrl! };
}

describe.skipIf(!address)('the database', () => {
  test(
    proves(['D-04', 'D-05'], 'away for seconds under load: leases go on, then 503, never a 401, and the books are whole afterwards'),
    async () => away(await place(), 5),
    3 * minute,
  );

  test(
    proves('D-06', 'half a second and then five late: calls of those it knows do not wait for it'),
    async () => {
      const { line, ...server } = await dragoman();
      const [unlimited, limited] = [await newMember(server), await newMember(server, { monthlyTokens: 1_000_000 })];
      for (const { ask } of [unlimited, limited]) await tally([ask(fixed), ask(fixed)]);
      for (const late of [500, 5000]) {
        line.delay(late);
        const times: number[] = [];
        for (let call = 0; call < 40; call++) times.push((await timed(async () => (await (call % 2 ? limited : unlimited).ask(fixed)).text())).milliseconds);
        expect(times.toSorted((a, b) => a - b)[30]).toBeLessThan(400 * slowness());
      }
      const strangers = Array.from({ length: 100 }, (_, at) => askWith(server, `drg_${'x'.repeat(30)}${at}`, fixed));
      expect(Object.keys(await tally(strangers)).every((status) => status === '401' || status === '503')).toBe(true);
      expect(await tally([unlimited.ask(fixed), limited.ask(fixed)])).toEqual({ 200: 2 });
      line.delay(0);
      const { planTokens } = await spentBy(unlimited.ask(fixed));
      await booked(server, unlimited.id, { requests: 44, planTokens: 44 * planTokens });
      await booked(server, limited.id, { requests: 43, planTokens: 43 * planTokens });
    },
    3 * minute,
  );

  test(
    'away for longer than a credential is fresh: calls of those it knows do not wait for it, and are 503 when they were not seen for too long',
    async () => {
      let later = 0;
      const { line, ...server } = await dragoman({ ...systemClock, monotonic: () => systemClock.monotonic() + later });
      const members = await Promise.all(Array.from({ length: 5 }, () => newMember(server)));
      await tally(members.map(({ ask }) => ask(fixed)));
      await line.set('refuse');
      await expect.poll(async () => (await fetch(`${server.url}/readyz`)).status, { timeout: 30_000 }).toBe(503);
      later = 61_000;
      const times: number[] = [];
      for (let call = 0; call < 40; call++) times.push((await timed(async () => (await members[call % 5]!.ask(fixed)).text())).milliseconds);
      expect(times.toSorted((a, b) => a - b)[30]).toBeLessThan(500 * slowness());
      expect(await tally(members.map(({ ask }) => ask(fixed)))).toEqual({ 200: 5 });
      later = 301_000;
      expect(await tally(members.map(({ ask }) => ask(fixed)))).toEqual({ 503: 5 });
      await line.set('on');
      await expect.poll(() => tally(members.map(({ ask }) => ask(fixed))), { timeout: 30_000 }).toEqual({ 200: 5 });
    },
    3 * minute,
  );

  test(
    'away while calls are answered: their prompts are in the log when it is back',
    async () => {
      const { line, ...server } = await dragoman();
      const { ask, keys } = await newMember(server);
      const { as } = visitorsOf(server);
      const logs = () => as(keys[0]!)('POST', '/user/get-user-logs', { limit: 20 });
      await tally([ask(fixed)]);
      await line.set('refuse');
      expect(await tally(Array.from({ length: 6 }, () => ask(fixed)))).toEqual({ 200: 6 });
      expect((await logs()).status).toBe(503); // it has tried to write them
      await line.set('on');
      const prompts = async () => ((await logs()).body['response'] as { prompt: string }[]).map(({ prompt }) => prompt);
      await expect.poll(prompts, { timeout: 30_000 }).toEqual(Array.from({ length: 7 }, () => 'Say exactly: hello'));
    },
    3 * minute,
  );

  test.each([
    ['after it has begun to speak', pace(50, ok({ text: 'word '.repeat(40) })), 'in_progress'],
    ['before it has', undefined, 'queued'],
  ])(
    'away for longer than the lease of a background response that ends meanwhile, %s: it is completed, with one call, which is booked once',
    async (_, behaviour, status) => {
      const { line, upstream, ...server } = await dragoman();
      const gate = Promise.withResolvers<void>();
      upstream.script(behaviour ?? talkative(10, gate.promise));
      const path = '/server/chatcompat/v1/responses';
      const read = async (address: string, body?: object) => (await (await server.ask(address, body)).json()) as { id: string; status: string };
      const { id } = await read(path, { model: 'gpt-4o-mini', input: 'one two', background: true });
      await upstream.arrived(0);
      await expect.poll(async () => (await read(`${path}/${id}`)).status).toBe(status);
      await line.set('refuse');
      gate.resolve();
      await new Promise((resolve) => setTimeout(resolve, 13_000));
      await line.set('on');
      await expect.poll(() => read(`${path}/${id}`), { timeout: 60_000 }).toMatchObject({ status: 'completed', output: [{ type: 'message' }] });
      await expect.poll(() => read(`/server/admin/logs/req_${id.slice(5)}`), { timeout: 30_000 }).toMatchObject({ end: 'completed', steps: [] });
      expect(upstream.requests).toHaveLength(1);
    },
    3 * minute,
  );

  test(
    'with every session ended again and again under load: no call fails, each is booked once',
    async () => {
      const { databaseUrl, upstream, ...server } = await dragoman();
      const database = new pg.Client(databaseUrl);
      await database.connect();
      onTestFinished(() => database.end());
      const load = mixedLoad(upstream, 12);
      const clients = load.run(server);
      for (let round = 0; round < 4; round++) {
        const enough = load.outcomes.size + 20;
        await database.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()');
        await expect.poll(() => load.outcomes.size, { timeout: 30_000 }).toBeGreaterThan(enough);
      }
      load.stop();
      await clients;
      expect([...load.outcomes.values()]).not.toContain('broken');
      await load.audit(server);
      await expectNoDrift({ folder: server.folder, databaseUrl });
    },
    3 * minute,
  );

  test(
    proves('D-08', 'read-only for a while: what needs no lease goes on, what needs one is 503, and it catches up by itself'),
    async () => {
      const { databaseUrl, ...server } = await dragoman();
      const name = new URL(databaseUrl).pathname.slice(1);
      const [unlimited, limited] = [await newMember(server), await newMember(server, { monthlyTokens: 1_000_000 })];
      await tally([unlimited.ask(fixed), limited.ask({ ...fixed, stream: true, max_tokens: 1 })]);
      await administer(address!, `alter database ${name} set default_transaction_read_only = on`);
      await administer(address!, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
      const fresh = async () => {
        const answer = await askWith(server, limited.keys[0]!, { ...fixed, max_tokens: 500_000 });
        await answer.text();
        return answer;
      };
      await expect.poll(async () => (await fresh()).status, { timeout: 30_000 }).toBe(503);
      expect((await fresh()).headers.get('retry-after')).toMatch(/^\d+$/);
      const ready = async () => {
        const answer = await fetch(`${server.url}/readyz`);
        return [answer.status, ((await answer.json()) as { missing: string[] }).missing];
      };
      expect(await ready()).toEqual([503, ['writable database']]);
      for (let call = 0; call < 10; call++) expect(await tally([unlimited.ask(fixed)])).toEqual({ 200: 1 });
      await administer(address!, `alter database ${name} set default_transaction_read_only = off`);
      await expect.poll(ready, { timeout: 30_000 }).toEqual([200, []]); // without a call that writes
      await expect.poll(async () => (await fresh()).status, { timeout: 30_000 }).toBe(200);
      const { planTokens } = await spentBy(unlimited.ask(fixed));
      await booked(server, unlimited.id, { requests: 12, planTokens: 12 * planTokens });
    },
    3 * minute,
  );

  test(
    'away while a run of an agent calls a tool: the run goes on, and the call is made once',
    async () => {
      const mcp = await startScriptedMcp([toolNamed('one')]);
      const { folder, databaseUrl } = await place();
      const line = await lineTo(databaseUrl!);
      const upstream = await startUpstream();
      const yaml = `${calm}outbound: { allow: ["${mcp.origin}"] }\nmcp: { approval: never }\n`;
      const open = await startTestServer({ folder, databaseUrl: line.url, upstream: upstream.url, yaml });
      onTestFinished(async () => {
        await line.set('on');
        await open.close();
        await upstream.close();
      });
      const { admin } = visitorsOf(open);
      const server = (await admin('POST', '/server/mine/mcp-servers', { name: 's', url: mcp.url })).body['id'] as number;
      const agent = { name: 'Worker', mode: 'autonomous', instructions: 'Work.', model: 'gpt-4o-mini', tools: [{ type: 'mcp', server, approval: 'never' }] };
      const { id } = (await admin('POST', '/server/mine/agents', agent)).body;
      mcp.script(({ method }, response, message) => {
        if (method === 'tools/list') return { tools: [toolNamed('one')] };
        void line.set('refuse').then(() => {
          const result = { content: [{ type: 'text', text: 'done' }] };
          response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: message, result }));
          setTimeout(() => void line.set('on'), 3000);
        });
        return undefined;
      });
      upstream.script(toolCalls([{ name: 's__one', json: '{}' }]), ok({ text: 'All done.' }));
      const executed = await admin('POST', '/server/execute-agent', { agent_id: id, message: 'Go.', streaming: false });
      expect(executed).toMatchObject({ status: 200, body: { execution_status: 'completed', response: { response: 'All done.' } } });
      expect(mcp.asked.filter(({ method }) => method === 'tools/call')).toHaveLength(1);
      const run = `/server/mine/runs/${executed.body['execution_id'] as string}`;
      expect((await admin('GET', run)).body).toMatchObject({ state: 'completed', steps: 2, calls: 1 });
      const told = eventsIn(await (await fetch(`${open.url}${run}/events`, { headers: { 'x-access-tokens': open.key } })).text());
      expect(told.map(({ id: seq }) => Number(seq))).toEqual(told.map((_, at) => at + 1));
      expect(told.filter(({ event }) => event === 'tool.call' || event === 'tool.result' || event === 'warning')).toHaveLength(2);
    },
    3 * minute,
  );
});

async function spentBy(call: Promise<Response>): Promise<{ planTokens: number }> {
  return { planTokens: ((await (await call).json()) as { usage: { total_tokens: number } }).usage.total_tokens };
}

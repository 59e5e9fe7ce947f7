/* The server killed as kill -9 does, and its books afterwards. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { embedded, onBothDatabases, onServer } from '../support/databases.ts';
import { tally } from '../accounting/exactness.ts';
import { ok, pace, startUpstream } from '../support/fakes/upstream/index.ts';
import { until } from '../support/cluster.ts';
import { killed } from './killings.ts';
import { askWith, fixed, fixedCost, loggedAs, loggedBy, newMember } from '../support/members.ts';
import { calm, expectNoDrift, mixedLoad } from '../support/mixed-load.ts';
import { startProcess } from '../support/server-process.ts';
import { lineTo } from '../support/tcp-proxy.ts';
import { proves } from '../support/proves.ts';
import { ofNode, passedOn } from '../support/surroundings.ts';

const address = inject('postgres');
const minute = 60_000;

onBothDatabases('a server killed again and again under mixed load', ({ name, place }) => {
  const times = name === 'embedded' ? 1 : 4;
  test(
    proves(['A-01', 'A-02'], 'has booked each answered call once and each cut one as died, within 30 s of the restart, and its sums agree'),
    async () => killed(await place(), times),
    4 * minute,
  );
});

test(
  proves('A-02', 'a stream that passed as it came is booked with what its client had read when the server was killed'),
  { timeout: 3 * minute },
  async () => {
    const { folder } = await embedded.place();
    const upstream = await startUpstream();
    onTestFinished(() => upstream.close());
    upstream.script(pace(50, ok({ text: 'word '.repeat(1000) })));
    const server = await startProcess({ folder }, upstream.url, calm);
    const member = await newMember(server);
    const answer = await member.ask({ ...fixed, model: 'gpt-4o-mini', max_tokens: 1000, stream: true });
    const reader = answer.body!.getReader();
    let words = 0;
    const read = async () => {
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) words += Buffer.from(piece.value).toString().split('word').length - 1;
    };
    const reading = read().catch(() => undefined);
    const noted = async () => {
      const files = await readdir(join(folder, 'data', 'journal'), { recursive: true, withFileTypes: true });
      const texts = await Promise.all(files.filter((file) => file.isFile()).map((file) => readFile(join(file.parentPath, file.name), 'latin1')));
      return texts.some((text) => /^p[0-9a-f]{8} /m.test(text));
    };
    await until(noted);
    await server.kill();
    await reading;
    expect(words).toBeGreaterThan(10);

    const next = await startProcess({ folder }, upstream.url, calm);
    const row = await loggedAs(next, answer.headers.get('x-request-id')!);
    expect(row).toMatchObject({ end: 'gateway-died', outputTokens: expect.toSatisfy((tokens: number) => tokens > words / 4) });
  },
);

test(proves('G-03', 'a second signal ends the server at once, and what was said by then is booked'), { timeout: 3 * minute }, async () => {
  const { folder } = await embedded.place();
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  upstream.script(pace(50, ok({ text: 'word '.repeat(1000) })));
  const server = await startProcess({ folder }, upstream.url, calm);
  const member = await newMember(server);
  const ended = once(server.child, 'exit');
  const answer = await member.ask({
    ...fixed,
    model: 'gpt-4o-mini',
    messages: [{ role: 'user', content: 'word '.repeat(200) }],
    max_tokens: 1000,
    stream: true,
  });
  const reader = answer.body!.getReader();
  let words = 0;
  const read = async () => {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) words += Buffer.from(piece.value).toString().split('word').length - 1;
  };
  const reading = read().catch(() => undefined);
  await until(() => words > 0);
  server.child.kill('SIGTERM');
  await new Promise((resolve) => setTimeout(resolve, 1500)); // less than a second apart, two signals are one
  server.child.kill('SIGTERM');
  expect(await ended).toEqual([1, null]);
  await reading;
  expect(words).toBeGreaterThan(2);

  const next = await startProcess({ folder }, upstream.url, calm);
  const row = await loggedAs(next, answer.headers.get('x-request-id')!);
  expect(row).toMatchObject({ end: 'cancelled', status: 500, provenance: 'partial', outputTokens: expect.toSatisfy((tokens: number) => tokens >= words) });
  expect(row.inputTokens).toBeGreaterThan(200);
});

describe.skipIf(!address)('killed behind the end of the upstream', () => {
  const points = {
    'before anything is shipped': 'hang',
    'with the rows in a transaction that is not committed': 'locked',
    'with the rows committed, and before it hears so': 'deaf',
  } as const;

  test.each(Object.entries(points))(
    proves('A-03', '%s, it has each call once after the restart'),
    async (_when, point) => {
      const { folder, databaseUrl } = await onServer(address!).place();
      const line = await lineTo(databaseUrl!);
      const upstream = await startUpstream();
      const database = new pg.Client(databaseUrl);
      await database.connect();
      onTestFinished(async () => {
        await database.end();
        await upstream.close();
      });
      const rows = async () => Number((await database.query<{ count: string }>('select count(*) from usage')).rows[0]!.count);

      const server = await startProcess({ folder, databaseUrl: line.url }, upstream.url, calm);
      const member = await newMember(server);
      await tally([member.ask(fixed)]);
      await until(async () => (await rows()) === 1);
      // What else is written in the background would wait for its answer on the connection that ships.
      await until(async () => (await database.query('select from api_keys where user_id = $1 and last_used_at is not null', [member.id])).rowCount === 1);
      if (point === 'locked') await database.query('begin; lock table usage_fresh in exclusive mode');
      else await line.set(point);
      expect(await tally(Array.from({ length: 20 }, () => member.ask({ ...fixed, model: 'gpt-4o-mini' })))).toEqual({ 200: 20 });
      if (point === 'locked') await until(async () => (await database.query('select from pg_locks where not granted')).rowCount);
      if (point === 'deaf') await until(async () => (await rows()) > 1);
      await server.kill();
      if (point === 'locked') await database.query('commit');
      await line.set('on');

      const next = await startProcess({ folder, databaseUrl: line.url }, upstream.url, calm);
      await until(async () => (await rows()) >= 21);
      const found = await loggedBy(next, member.id);
      expect(found).toHaveLength(21);
      expect(new Set(found.map(({ end }) => end)).has('gateway-died')).toBe(false);
      expect(await next.stop()).toBe(0);
      await expectNoDrift({ folder, databaseUrl: databaseUrl! });
    },
    3 * minute,
  );
});

describe.skipIf(!address)('one of two machines that is gone for good', () => {
  test(
    proves('A-01', 'keeps what it had leased until its journal is adopted: then all calls are booked and all that is left can be spent'),
    async () => {
      const { folder, databaseUrl } = await onServer(address!).place();
      const upstream = await startUpstream();
      onTestFinished(() => upstream.close());
      const [here, gone] = [join(folder, 'here'), join(folder, 'gone')];
      for (const one of [here, gone]) await mkdir(join(one, 'data'), { recursive: true });
      const staying = await startProcess({ folder: here, databaseUrl: databaseUrl! }, upstream.url, calm);
      await copyFile(join(here, 'data', 'master.key'), join(gone, 'data', 'master.key'));
      const leaving = await startProcess({ folder: gone, databaseUrl: databaseUrl! }, upstream.url, calm);

      const cost = await fixedCost(staying);
      const member = await newMember(staying, { monthlyTokens: 100 * cost });
      const ask = (server: typeof staying, many: number) => tally(Array.from({ length: many }, () => askWith(server, member.keys[0]!, fixed)));
      expect(await ask(leaving, 3)).toEqual({ 200: 3 });
      const load = mixedLoad(upstream);
      const clients = load.run(leaving);
      await until(() => load.outcomes.size > 30);
      await leaving.kill();
      await clients;

      const { 200: meanwhile = 0 } = await ask(staying, 120);
      expect(meanwhile).toBeLessThan(97);
      expect(meanwhile).toBeGreaterThan(50);
      const adopted = await dragoman(['journal', 'adopt', join(gone, 'data'), '--data', join(here, 'data'), '--database-url', databaseUrl!]);
      expect(adopted).toMatch(/rows booked\. Its leases are free again/);
      const trail = async () => {
        const answer = await fetch(`${staying.url}/server/admin/audit?targetKind=holder`, { headers: { authorization: `Bearer ${staying.key}` } });
        return ((await answer.json()) as { items: { action: string; actor: object; changed: Record<string, { to: unknown }> }[] }).items;
      };
      const [noted, ...others] = await trail();
      expect(others).toEqual([]);
      expect(noted).toMatchObject({ action: 'holder.adopt', actor: { type: 'local' }, changed: { how: { to: 'adopted' } } });
      expect(adopted).toContain(`: ${String(noted!.changed['rows']!.to)} rows booked`);
      await dragoman(['journal', 'adopt', join(gone, 'data'), '--data', join(here, 'data'), '--database-url', databaseUrl!]);
      expect(await trail()).toHaveLength(1);
      await load.audit(staying);
      await until(async () => (await ask(staying, 1))[200]);
      const { 200: more = 0 } = await ask(staying, 120);
      expect(3 + meanwhile + 1 + more).toBe(100);
      await until(async () => (await loggedBy(staying, member.id)).length === 100);
      await expectNoDrift({ folder: here, databaseUrl: databaseUrl! });
    },
    3 * minute,
  );
});

/** What the command line says. @throws Error where it fails */
async function dragoman(args: readonly string[]): Promise<string> {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  const child = spawn(process.execPath, [...ofNode, main, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: passedOn(),
  });
  const said = child.stdout.setEncoding('utf8').toArray();
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`dragoman ${args.join(' ')} ended with ${code}.`);
  return (await said).join('');
}

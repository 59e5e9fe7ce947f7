/* Several processes on one port (DRAGOMAN_WORKERS), as whoever runs and kills them sees it. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { onServer } from '../support/databases.ts';
import { on, startUpstream, tooMany } from '../support/fakes/upstream/index.ts';
import { startCluster, isAlive, settingsFile, until, type Client, type Cluster } from '../support/cluster.ts';
import { loggedAs } from '../support/members.ts';
import { isPortFree } from '../support/ports.ts';
import { proves } from '../support/proves.ts';

const address = inject('postgres');
const { place } = onServer(address ?? '');
const minute = 60_000;

const slow = 'models: { built-in: { tokensPerSecond: 20 } }\n';
const saying = (words: number) => ({ stream: true, messages: [{ role: 'user', content: `Say exactly: ${'word '.repeat(words)}` }] });
/** Lasts a second and a half. */
const story = saying(30);
/** Lasts half a minute: nobody waits for its end. */
const longStory = saying(600);

/** A client at each worker. */
async function oneOfEach(server: Cluster): Promise<[Client, Client]> {
  const one = await server.client();
  return [one, await server.client([one.worker])];
}

async function status(client: Client): Promise<number> {
  const { status: found, text } = await client.ask();
  await text;
  return found;
}

async function figure(server: Cluster, name: string): Promise<number> {
  const text = await (await server.get('/metrics')).text();
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `) || (line.startsWith(`${name}{`) && line.includes('/chat/completions')))
      ?.split(' ')
      .at(-1),
  );
}

describe.skipIf(!address)('two workers', () => {
  test(
    'share the port, and each of them answers for the machine',
    async () => {
      const server = await startCluster(await place());
      const clients = await oneOfEach(server);
      expect(clients.map(({ worker }) => worker)).not.toContain(server.parent);
      const before = await figure(server, 'dragoman_requests_total');
      for (const client of clients) for (let turn = 0; turn < 5; turn++) expect(await status(client)).toBe(200);
      expect(await figure(server, 'dragoman_requests_total')).toBe(before + 10);
      expect(await figure(server, 'dragoman_request_seconds_count')).toBe(before + 10);
      const text = await (await server.get('/metrics')).text();
      expect(text).toContain('# HELP dragoman_requests_total Requests answered. Sum over all processes.');
      for (let turn = 0; turn < 6; turn++) expect(await (await server.get('/readyz')).json()).toEqual({ status: 'ok', missing: [] });
      expect((await server.get('/healthz')).status).toBe(200);
    },
    2 * minute,
  );

  test(
    'do not say that requests of the minute are left when they refuse one for want of them',
    async () => {
      const server = await startCluster(await place(), 'plans: { unlimited: { requestsPerMinute: 20 } }\n');
      const clients = await oneOfEach(server);
      await until(async () => (await status(clients[0])) === 429);
      for (const client of clients) {
        const { status: refused, headers, text } = await client.ask();
        await text;
        expect([refused, headers['x-ratelimit-limit-requests'], headers['x-ratelimit-remaining-requests']]).toEqual([429, '20', '0']);
      }
    },
    2 * minute,
  );

  test(
    'see the regions as one: a cooldown in one worker is shown by each of them, and a reset ends it in all',
    async () => {
      const upstream = await startUpstream();
      onTestFinished(() => upstream.close());
      const server = await startCluster(
        await place(),
        `
providers:
  pool: { dialect: gemini, kind: vertex, project: p, baseUrl: "${upstream.url}/{region}/v1", credentials: { accessToken: t }, regions: [us-central1, us-east1] }
models: { gemini-2.5-flash: { targets: [{ provider: pool }] } }
`,
      );
      const clients = await oneOfEach(server);
      const regionFor = async (client: Client) => {
        const asked = upstream.requests.length;
        const { status: found, text } = await client.ask({ model: 'gemini-2.5-flash' });
        await text;
        expect(found).toBe(200);
        return upstream.requests.slice(asked).map(({ region }) => region);
      };
      const states = async (path = '/server/admin/regions', init: RequestInit = {}) => {
        const answer = await fetch(server.url + path, { ...init, headers: { authorization: `Bearer ${server.key}`, connection: 'close' } });
        return ((await answer.json()) as { items: { region: string; state: string }[] }).items.map(({ region, state }) => [region, state]);
      };
      upstream.script(on({ region: 'us-central1' }, tooMany({ retryAfter: 200 })));
      expect(await regionFor(clients[0])).toEqual(['us-central1', 'us-east1']);
      for (let turn = 0; turn < 8; turn++)
        expect(await states()).toEqual([
          ['us-central1', 'cooling'],
          ['us-east1', 'ok'],
        ]);
      const well = [
        ['us-central1', 'ok'],
        ['us-east1', 'ok'],
      ];
      expect(await states('/server/admin/regions/reset', { method: 'POST' })).toEqual(well);
      for (let turn = 0; turn < 8; turn++) expect(await states()).toEqual(well);
      for (const client of clients) expect(await regionFor(client)).toEqual(['us-central1']);
    },
    2 * minute,
  );

  test(
    'both apply new settings, keep the old ones where the new are invalid, and refuse a revoked key',
    async () => {
      const server = await startCluster(await place());
      const clients = await oneOfEach(server);
      const statuses = () => Promise.all(clients.map(status));
      await writeFile(settingsFile(server.folder), 'plans: { unlimited: { monthlyTokens: 0 } }\n');
      process.kill(server.parent, 'SIGHUP');
      await until(() => server.errors().includes('New settings are in effect'));
      expect(await statuses()).toEqual([429, 429]);
      await writeFile(settingsFile(server.folder), 'plans: [\n');
      await until(() => server.errors().includes('the old ones stay in effect'));
      expect(await statuses()).toEqual([429, 429]);
      await writeFile(settingsFile(server.folder), 'plans: {}\n');
      await until(async () => (await statuses()).every((one) => one === 200));

      const database = new pg.Client({ connectionString: server.databaseUrl });
      await database.connect();
      await database.query('update api_keys set revoked_at = now()');
      await database.query(`select pg_notify('dragoman', '{"origin":"elsewhere","topic":"api-keys","payload":null}')`);
      await database.end();
      await until(async () => (await statuses()).every((one) => one === 401));
    },
    2 * minute,
  );

  test(
    proves('A-04', 'one is killed under load: the other never fails, the killed one is replaced, and no counter falls'),
    { timeout: 2 * minute },
    async () => {
      const server = await startCluster(await place());
      const [victim, other] = await oneOfEach(server);
      const clients = [victim, other];
      while (clients.length < 8) clients.push(await server.client());
      const served = await figure(server, 'dragoman_requests_total');
      let stop = false;
      const failures: Client[] = [];
      let answered = 0;
      const load = clients.map(async (client) => {
        while (!stop) {
          try {
            const answer = await client.ask();
            await answer.text;
            if (answer.status !== 200) failures.push(client);
            answered++;
          } catch {
            failures.push(client); // its next request goes over a new connection
          }
        }
      });
      await until(() => answered > 50);
      process.kill(victim.worker, 'SIGKILL');
      await until(() => !isAlive(victim.worker));
      await until(async () => (await figure(server, 'dragoman_workers')) === 2); // a standby takes its place within a second, on a machine with nothing else to do
      stop = true;
      await Promise.all(load);
      expect(failures.filter(({ worker }) => worker !== victim.worker)).toEqual([]);
      expect(failures.length).toBeLessThanOrEqual(clients.filter(({ worker }) => worker === victim.worker).length);
      expect(await figure(server, 'dragoman_requests_total')).toBeGreaterThanOrEqual(served);
      const third = await server.client([other.worker]);
      expect(third.worker).not.toBe(victim.worker);
    },
  );

  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s: streams at both end well, exit 0, no process is left',
    async (signal) => {
      const server = await startCluster(await place(), slow);
      const clients = await oneOfEach(server);
      const streams = await Promise.all(clients.map((client) => client.ask(story)));
      server.launcher.kill(signal);
      for (const { worker } of clients) process.kill(worker, signal); // as a terminal does
      const refused = await until(() =>
        server.get('/healthz').then(
          () => undefined,
          (error: unknown) => error,
        ),
      );
      expect(refused).toBeDefined();
      for (const { text } of streams) expect((await text).endsWith('data: [DONE]\n\n')).toBe(true);
      expect(await server.ended).toBe(0);
      expect(clients.filter(({ worker }) => isAlive(worker))).toEqual([]);
      expect(await isPortFree(server.port)).toBe(true);
    },
    2 * minute,
  );

  test(
    'a second signal ends all processes at once, and what each had said is booked',
    async () => {
      const where = await place();
      const server = await startCluster(where, slow);
      const clients = await oneOfEach(server);
      const streams = await Promise.all(clients.map((client) => client.ask(longStory)));
      server.launcher.kill('SIGTERM');
      await new Promise((resolve) => setTimeout(resolve, 2500)); // less than a second apart, two signals are one, and a busy machine delivers the first late
      server.launcher.kill('SIGTERM');
      expect(await server.ended).toBe(1);
      await Promise.all(streams.map(({ text }) => expect(text).rejects.toThrow()));
      await until(() => isPortFree(server.port));
      const next = await startCluster(where, slow);
      for (const { id } of streams)
        expect(await loggedAs(next, id)).toMatchObject({
          end: 'cancelled',
          provenance: 'partial',
          outputTokens: expect.toSatisfy((tokens: number) => tokens > 20),
        });
    },
    2 * minute,
  );

  test(
    'one is killed: its part of the requests of a minute counts as used, and calls go on in its successor and in the other',
    async () => {
      const server = await startCluster(await place(), 'plans: { unlimited: { requestsPerMinute: 1001 } }\n'); // an eighth of it is no whole number
      const [killed, other] = await oneOfEach(server);
      for (const client of [killed, other]) expect(await status(client)).toBe(200);
      process.kill(killed.worker, 'SIGKILL');
      await until(() => server.errors().includes('A worker has ended'));
      await until(async () => (await figure(server, 'dragoman_workers')) === 2, 100);
      const successor = await server.client([killed.worker, other.worker]);
      for (let turn = 0; turn < 45; turn++) for (const client of [successor, other]) expect(await status(client)).toBe(200);
      expect(server.errors()).not.toContain('could not be given back');
    },
    2 * minute,
  );

  test(
    'the parent is killed: streams end with an error frame at once, and no process is left',
    async () => {
      const server = await startCluster(await place(), slow);
      const clients = await oneOfEach(server);
      const streams = await Promise.all(clients.map((client) => client.ask(longStory)));
      await Promise.all(streams.map(({ begun }) => begun));
      process.kill(server.parent, 'SIGKILL');
      const killedAt = performance.now();
      const texts = await Promise.all(streams.map(({ text }) => text));
      await until(() => clients.every(({ worker }) => !isAlive(worker)));
      expect(performance.now() - killedAt).toBeLessThan(25_000); // a second, on a machine with nothing else to do; the streams have half a minute
      for (const text of texts) {
        expect(text).toContain('shutting down');
        expect(text).not.toContain('[DONE]');
      }
      expect(await server.ended).toBe(128 + 9);
      expect(await isPortFree(server.port)).toBe(true);
    },
    2 * minute,
  );

  test(
    'the launcher is killed: the workers drain, and no process is left',
    async () => {
      const server = await startCluster(await place(), slow);
      const clients = await oneOfEach(server);
      const streams = await Promise.all(clients.map((client) => client.ask(story)));
      server.launcher.kill('SIGKILL');
      for (const { text } of streams) expect((await text).endsWith('data: [DONE]\n\n')).toBe(true);
      await until(() => [server.parent, ...clients.map(({ worker }) => worker)].every((pid) => !isAlive(pid)));
      expect(await isPortFree(server.port)).toBe(true);
    },
    2 * minute,
  );

  test(
    'a second server on the same data folder is refused and does not disturb the first',
    async () => {
      const server = await startCluster(await place());
      const { status: code, stderr } = dragoman({ ...around(server), PORT: '0' });
      expect(code).toBe(1);
      expect(stderr).toContain('is in use by another Dragoman');
      expect((await server.get('/readyz')).status).toBe(200);
    },
    2 * minute,
  );
});

describe.skipIf(!address)('a port in use', () => {
  test(
    'is refused with a sentence that names the way out',
    async () => {
      const { folder, databaseUrl = '' } = await place();
      const other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      onTestFinished(() => void other.close());
      const { port } = other.address() as AddressInfo;
      const { status: code, stderr } = dragoman({ ...around({ folder, databaseUrl }), PORT: String(port) });
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: `dragoman: Port ${port} of 127.0.0.1 is in use: stop the program that uses it, or choose another with PORT or --port.\n`,
      });
    },
    2 * minute,
  );
});

describe('DRAGOMAN_WORKERS', () => {
  test('of two without DATABASE_URL is an invalid setting: exit 2, and a sentence names it', () => {
    const { status: code, stderr } = dragoman({ DRAGOMAN_WORKERS: '2', DATABASE_URL: undefined });
    expect(code).toBe(2);
    expect(stderr).toContain('DRAGOMAN_WORKERS must be 1 unless DATABASE_URL names a PostgreSQL server.');
  });
});

const around = ({ folder, databaseUrl }: Pick<Cluster, 'folder' | 'databaseUrl'>) => ({
  DRAGOMAN_DATA: `${folder}/data`,
  DATABASE_URL: databaseUrl,
  DRAGOMAN_WORKERS: '2',
});

function dragoman(env: Record<string, string | undefined>) {
  const file = new URL('../../bin/dragoman.js', import.meta.url).pathname;
  return spawnSync(process.execPath, [file], { encoding: 'utf8', env: { ...process.env, ...env }, timeout: 60_000 });
}

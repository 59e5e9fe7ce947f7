/* `dragoman doctor`, at a running server and where none runs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { emptyName, onServer } from '../../support/databases.ts';
import {
  altered,
  always,
  badKey,
  body,
  hang,
  nobody,
  notFound,
  on,
  startUpstream,
  tooMany,
  type Behaviour,
  type Nobody,
  type Upstream,
} from '../../support/fakes/upstream/index.ts';
import { isSigned, keys } from '../../support/fakes/signed.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { ofNode, passedOn } from '../../support/surroundings.ts';

interface Check {
  readonly name: string;
  readonly state: string;
  readonly says: string;
  readonly milliseconds: number | null;
}

const main = new URL('../../../src/main.ts', import.meta.url).pathname;
const secrets = /canary/;

/** Runs the command in a folder; its data folder is `data`. */
async function doctor(home: string, args: readonly string[] = [], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [...ofNode, main, 'doctor', ...args], { cwd: home, env: { ...passedOn('HOME'), ...env } });
  let [out, errors] = ['', ''];
  child.stdout.on('data', (text: Buffer) => (out += text.toString()));
  child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  expect(out + errors).not.toMatch(secrets);
  return { code, out, errors };
}

const newFolder = () => {
  const home = mkdtempSync(join(tmpdir(), 'dragoman-doctor-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
};

const stateOf = (checks: readonly Check[]) => Object.fromEntries(checks.map(({ name, state, says }) => [name, `${state}: ${says}`]));

let upstream: Upstream;
let dead: Nobody;
beforeAll(async () => {
  upstream = await startUpstream();
  dead = await nobody();
});
afterAll(async () => {
  await upstream.close();
  dead.close();
});
beforeEach(() => upstream.reset());

/** These, and for all else that is asked a good answer. */
const script = (...behaviours: Behaviour[]) => upstream.script(...behaviours, always(on({ path: /\/models(\?|$)|:countTokens$/ }, body('{"data":[]}'))));

describe('dragoman doctor at a running server', () => {
  let server: TestServer;
  let home: string;
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'dragoman-doctor-'));
    const { url } = upstream;
    const at = (name: string) => `headers: { x-fake: ${name} }`;
    writeFileSync(join(home, 'canary.json'), 'canary-10 is no JSON');
    server = await startTestServer({
      folder: home,
      yaml: `
providers:
  openai: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [canary-1, canary-2], ${at('openai')} }
  azure: { dialect: openai-chat, kind: azure, baseUrl: "${url}", apiVersion: "2025-04-01-preview", apiKeys: [canary-3], ${at('azure')} }
  thinks: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [canary-4], ${at('thinks')} }
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [canary-5], ${at('claude')} }
  gemini: { dialect: gemini, baseUrl: "${url}/v1beta", apiKeys: [canary-6], ${at('gemini')} }
  open: { dialect: openai-chat, baseUrl: "${url}/free/v1", ${at('open')} }
  gone: { dialect: openai-chat, baseUrl: "${dead.url}/v1", apiKeys: [canary-7] }
  platform: { dialect: gemini, kind: vertex, project: my-project, baseUrl: "${url}/{region}/v1", credentials: { accessToken: canary-8 }, regions: [us-east1, us-west1] }
  file: { dialect: gemini, kind: vertex, project: my-project, baseUrl: "${url}/{region}/v1", credentials: { serviceAccountFile: canary.json }, regions: [us-east1] }
  unasked: { dialect: gemini, kind: vertex, project: my-project, baseUrl: "${url}/{region}/v1", credentials: { accessToken: canary-9 }, regions: [us-east1] }
models:
  gpt: { targets: [{ provider: openai }, { provider: azure }] }
  flash: { targets: [{ provider: platform, model: gemini-2.5-flash }, { provider: file, model: gemini-2.5-flash }] }
  "*": { targets: [{ provider: thinks }, { provider: claude }, { provider: gemini }, { provider: gone }] }
`,
    });
  });
  afterAll(async () => {
    await server.close();
    rmSync(home, { recursive: true, force: true });
  });
  const asked = async () => {
    const answer = await server.ask('/server/admin/doctor');
    const text = await answer.text();
    expect(answer.status).toBe(200);
    expect(text).not.toMatch(secrets);
    return (JSON.parse(text) as { items: Check[] }).items;
  };

  test('the doctor probes each provider and region at no cost, with each key, and checks everything else', async () => {
    script();
    const checks = await asked();
    expect(stateOf(checks)).toEqual({
      runtime: expect.stringMatching(/^(ok|warning): Node 26\./) as string,
      database: expect.stringMatching(/^ok: embedded PostgreSQL 1\d/) as string,
      disk: expect.stringMatching(/^(ok|warning): [\d.]+ [MGT]B of [\d.]+ [GT]B free at /) as string,
      clock: expect.stringMatching(/^ok: within a second of that of /) as string,
      'provider openai': 'ok: answers with each of its 2 keys.',
      'provider azure': 'ok: answers.',
      'provider thinks': 'ok: answers.',
      'provider claude': 'ok: answers.',
      'provider gemini': 'ok: answers.',
      'provider open': 'ok: answers; no model in the settings uses it.',
      'provider gone': 'failed: cannot be reached (ECONNREFUSED).',
      'region us-east1 of platform': 'ok: answers.',
      'region us-west1 of platform': 'ok: answers.',
      'region us-east1 of file': 'failed: the credentials cannot be obtained: the key file of the account is not a JSON object.',
      'provider unasked': 'skipped: No model in the settings uses it.',
    });
    const questions = upstream.requests.map(({ method, path, key }) => `${method} ${path} ${key ?? 'without a key'}`).toSorted();
    const flash = 'projects/my-project/locations';
    expect(questions).toEqual(
      [
        'GET /v1/models canary-1',
        'GET /v1/models canary-2',
        'GET /openai/models?api-version=2025-04-01-preview canary-3',
        'GET /v1/models canary-4',
        'GET /v1/models?limit=1 canary-5',
        'GET /v1beta/models?pageSize=1 canary-6',
        'GET /free/v1/models without a key',
        `POST /us-east1/v1/${flash}/us-east1/publishers/google/models/gemini-2.5-flash:countTokens canary-8`,
        `POST /us-west1/v1/${flash}/us-west1/publishers/google/models/gemini-2.5-flash:countTokens canary-8`,
      ].toSorted(),
    );
    expect(await (await server.ask('/server/admin/logs')).json()).toMatchObject({ items: [] });
    expect(await readdir(join(home, 'data'))).not.toContainEqual(expect.stringMatching(/^doctor/));
  });

  test('the doctor tells a refused key, a busy region, a missing model and a hanging provider apart, in bounded time', async () => {
    script(
      always(on({ key: 'canary-2' }, badKey())),
      always(on({ region: 'us-east1' }, tooMany())),
      always(on({ region: 'us-west1' }, notFound('model'))),
      always(on({ fake: 'claude' }, notFound())),
      always(on({ fake: 'gemini' }, hang())),
    );
    const startedAt = performance.now();
    expect(stateOf(await asked())).toMatchObject({
      'provider openai': 'failed: rejects the credentials (401) with key 2 of 2.',
      'region us-east1 of platform': 'warning: answers, but its rate limit is exceeded at the moment (429).',
      'region us-west1 of platform': 'warning: answers, but does not have the model (404).',
      'provider claude': expect.stringMatching(/^warning: has nothing at \/\S*models \(404\): check the path of baseUrl\.$/) as string,
      'provider gemini': 'failed: did not answer in time.',
      'provider azure': 'ok: answers.',
    });
    expect(performance.now() - startedAt).toBeLessThan(15_000);
  }, 120_000);

  test('requests for the checks that arrive while they run share one run', async () => {
    script();
    await Promise.all([asked(), asked(), asked()]);
    expect(upstream.requests.filter(({ key }) => key === 'canary-1')).toHaveLength(1);
  });

  test('the doctor reports the state of recent calls in a region', async () => {
    script(always(on({ region: 'us-east1', path: /generateContent/ }, tooMany({ retryAfter: 30 }))));
    const say = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] };
    expect((await server.ask('/server/gencompat/v1beta/models/flash:generateContent', say)).status).toBe(200);
    expect(stateOf(await asked())).toMatchObject({
      'region us-east1 of platform': expect.stringMatching(/^warning: answers; cooling for gemini-2.5-flash until \d{4}-/) as string,
      'region us-west1 of platform': 'ok: answers.',
    });
    await server.ask('/server/admin/regions/reset', undefined, { method: 'POST' });
  });

  test('dragoman doctor prints a line for each check, or JSON, and ends with 1 if one failed', async () => {
    script();
    const { code, out, errors } = await doctor(home);
    expect([code, errors]).toEqual([1, '']);
    expect(out.split('\n')).toEqual(
      expect.arrayContaining([
        expect.stringMatching(new RegExp(`^Dragoman [\\d.]+, server at ${server.url}$`)),
        expect.stringMatching(/^ {2}✓ server +responds and is ready\. \([\d.]+ ms\)$/),
        expect.stringMatching(/^ {2}✓ provider openai +answers with each of its 2 keys\. \([\d.]+ ms\)$/),
        expect.stringMatching(/^ {2}✗ provider gone +cannot be reached \(ECONNREFUSED\)\.$/),
        expect.stringMatching(/^ {2}- provider unasked +No model/),
        expect.stringMatching(/^2 of 16 checks failed/),
      ]),
    );
    const json = await doctor(home, ['--json']);
    expect(json.code).toBe(1);
    const { ok, url, checks } = JSON.parse(json.out) as { ok: boolean; url: string; checks: Check[] };
    expect([ok, url, ...checks.slice(0, 4).map(({ name, state }) => `${name} ${state}`)]).toMatchObject([
      false,
      server.url,
      'server ok',
      expect.stringMatching(/^runtime /),
      'database ok',
      expect.stringMatching(/^disk /),
    ]);
  }, 120_000);

  test.each([
    [2, ['--nonsense']],
    [2, ['--url', 'http://127.0.0.1:9']],
    [1, ['--url', 'http://127.0.0.1:1025', '--key', 'x']],
    [0, ['--help']],
  ])('dragoman doctor ends with %i: %j', async (code, args) => {
    expect((await doctor(home, args)).code).toBe(code);
  });
});

test('the doctor names plans that are not there with who has them, and a bucket that refuses its keys', async () => {
  const home = newFolder();
  let isGood = false;
  const bucket = createHttpServer((request, response) => {
    response.writeHead(isSigned(request) && isGood ? 200 : 403).end();
  });
  bucket.listen(0, '127.0.0.1');
  await once(bucket, 'listening');
  onTestFinished(() => void bucket.close());
  const before = await startTestServer({ folder: home, yaml: 'plans: { small: { requestsPerMinute: 5 } }\n' });
  const body = { email: 'ada@example.com', plan: 'small' };
  expect((await before.ask('/server/admin/users', body)).status).toBe(201);
  await before.close();

  const host = `127.0.0.1:${(bucket.address() as AddressInfo).port}`;
  const server = await startTestServer({ folder: home, yaml: `blobs: { s3: ${JSON.stringify({ ...keys, endpoint: `http://${host}` })} }\n` });
  onTestFinished(() => server.close());
  const states = async () => stateOf(((await (await server.ask('/server/admin/doctor')).json()) as { items: Check[] }).items);
  expect(await states()).toMatchObject({
    'plan small': 'warning: There is no such plan, and 1 user and 0 teams have it: their calls are refused. Make it, or give them another one.',
    'bucket files': `failed: answers at ${host} with 403: check its name, region and keys.`,
  });
  isGood = true;
  expect(await states()).toMatchObject({ 'bucket files': `ok: answers at ${host}.` });
}, 120_000);

describe('dragoman doctor without a server', () => {
  const json = (text: string) => JSON.parse(text) as { ok: boolean; url: string | null; checks: Check[] };

  test('the doctor passes a fresh folder and leaves it unchanged, and reports a port in use and an invalid settings file', async () => {
    const home = newFolder();
    const fresh = await doctor(home, [], { PORT: '0' });
    expect(fresh).toMatchObject({
      code: 0,
      errors: '',
      out: expect.stringMatching(/- database +The first start creates it[^]*(All checks passed|No check failed)/) as string,
    });
    expect(await readdir(home)).toEqual([]);

    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    onTestFinished(() => void taken.close());
    const { port } = taken.address() as AddressInfo;
    expect(await doctor(home, [], { PORT: String(port) })).toMatchObject({
      code: 1,
      out: expect.stringContaining(`✗ port       Port ${port} of 127.0.0.1 is in use`) as string,
    });
    await writeFile(join(home, 'dragoman.yaml'), 'nonsense: 1\n');
    expect(await doctor(home)).toMatchObject({ code: 2, out: '', errors: expect.stringContaining('nonsense') as string });
  }, 120_000);

  test('the doctor says which of the folders that datasets may follow cannot be read', async () => {
    const home = newFolder();
    await writeFile(join(home, 'dragoman.yaml'), `sources: { folders: ["${home}", "${home}/nothing"] }\n`);
    const { checks } = json((await doctor(home, ['--json'], { PORT: '0' })).out);
    expect(stateOf(checks)).toMatchObject({
      [`folder ${home}`]: expect.stringMatching(/^ok/) as string,
      [`folder ${home}/nothing`]: expect.stringMatching(/^warning: It cannot be read/) as string,
    });
  }, 120_000);

  test('the doctor checks the database that a server left, and asks the server of a folder in use', async () => {
    const home = newFolder();
    const server = await startTestServer({ folder: home });
    await mkdir(join(home, 'elsewhere')); // where nobody finds the server by its file
    const inUse = json((await doctor(join(home, 'elsewhere'), ['--data', join(home, 'data'), '--json'], { PORT: '0' })).out);
    expect(inUse.url).toBe(server.url);
    await server.close();
    const { ok, url, checks } = json((await doctor(home, ['--json'], { PORT: '0' })).out);
    expect([ok, url]).toEqual([true, null]);
    expect(stateOf(checks)).toMatchObject({ database: expect.stringMatching(/^ok: embedded PostgreSQL/) as string });
  }, 120_000);

  test('the doctor fails a clock that differs from all others', async () => {
    const home = newFolder();
    const late = (hours: number) =>
      always(
        altered('late', body('{}'), (answer) => ({ ...answer, headers: { ...answer.headers, date: new Date(Date.now() + hours * 3_600_000).toUTCString() } })),
      );
    upstream.script(late(2));
    await writeFile(join(home, 'dragoman.yaml'), `providers: { far: { dialect: openai-chat, baseUrl: "${upstream.url}/v1", apiKeys: [canary] } }\n`);
    const { code, out } = await doctor(home, ['--json'], { PORT: '0' });
    expect(code).toBe(1);
    expect(stateOf(json(out).checks)).toMatchObject({ clock: expect.stringMatching(/^failed: 7(19|20)\d(\.\d)? seconds behind that of far\.$/) as string });
  }, 120_000);

  const address = inject('postgres');
  test.skipIf(!address)(
    'the doctor checks a PostgreSQL server without a change, and reports one that is away or refuses without its password',
    async () => {
      const { folder, databaseUrl } = await onServer(address!).place(emptyName);
      const well = json((await doctor(folder, ['--json'], { PORT: '0', DATABASE_URL: databaseUrl! })).out);
      expect(stateOf(well.checks)).toMatchObject({
        database: expect.stringMatching(/^(ok|warning): PostgreSQL 1\d[.\d]*, with(out)? pgvector, \d+ of \d+ connections open\.$/) as string,
        clock: 'ok: within a second of that of the database.',
      });
      const { default: pg } = await import('pg');
      const client = new pg.Client({ connectionString: databaseUrl! });
      await client.connect();
      onTestFinished(() => client.end());
      expect((await client.query(`select count(*)::int as tables from pg_tables where schemaname = 'public'`)).rows).toEqual([{ tables: 0 }]);
      for (const away of [`postgres://me:canary@127.0.0.1:${new URL(dead.url).port}/x`, new URL(`/nothing_there`, databaseUrl).href]) {
        const { code, out } = await doctor(folder, ['--json'], { PORT: '0', DATABASE_URL: away });
        expect(code).toBe(1);
        expect(stateOf(json(out).checks)).toMatchObject({ database: expect.stringMatching(/^failed: ./) as string });
      }
    },
    120_000,
  );
});

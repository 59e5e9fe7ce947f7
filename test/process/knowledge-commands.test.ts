/* Commands of users at a running server: ingest and ask; and work, which has no server. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { onServer } from '../support/databases.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { ofNode, passedOn } from '../support/surroundings.ts';

const main = new URL('../../src/main.ts', import.meta.url).pathname;

function start(home: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [...ofNode, main, ...args], {
    cwd: home,
    env: { ...passedOn('HOME'), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ran = { code: null as number | null, out: '', errors: '' };
  child.stdout.on('data', (text: Buffer) => (ran.out += text.toString()));
  child.stderr.on('data', (text: Buffer) => (ran.errors += text.toString()));
  const ended = new Promise<typeof ran>((resolve) => child.once('close', (code) => resolve(Object.assign(ran, { code }))));
  return { child, ran, ended };
}

describe('files and questions on the command line', () => {
  let server: TestServer;
  let home: string;
  const run = (...args: string[]) => start(home, args).ended;
  const admin = async (method: string, path: string, body?: object) =>
    (await (await server.ask(path, undefined, { method, ...(body ? { body: JSON.stringify(body) } : {}) })).json()) as Record<string, unknown>;
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'dragoman-knowledge-'));
    server = await startTestServer({ folder: home });
    await writeFile(join(home, 'canteen.md'), '# Canteen\n\nThe canteen opens at seven in the morning.\n');
    await writeFile(join(home, 'empty.txt'), '');
  });
  afterAll(async () => {
    await server.close();
    rmSync(home, { recursive: true, force: true });
  });

  test('are put into a dataset and asked by the first administrator, with what the answer cites below it', { timeout: 120_000 }, async () => {
    const put = await run('ingest', 'canteen.md', 'empty.txt', '--dataset', 'handbook');
    expect(put).toEqual({
      code: 1,
      out: 'canteen.md: 1 passage\nempty.txt: failed: file (empty.txt): The file is empty: it has no bytes.\n',
      errors: expect.stringContaining('1 of 2 files') as string,
    });
    const again = await run('ingest', 'canteen.md', '--dataset', 'user_custom_1_handbook_content', '--json');
    expect([again.code, JSON.parse(again.out)]).toMatchObject([0, { items: [{ filename: 'canteen.md', state: 'done', passages: 1 }] }]);
    expect((await admin('POST', '/server/get-datasets', {}))['response']).toEqual(['user_custom_1_handbook_content']);

    const unknown = await run('ask', 'When does the canteen open?', '--dataset', 'handbook,cellar');
    expect([unknown.code, unknown.errors]).toEqual([1, expect.stringContaining('cellar')]);
    const short = await run('ask', 'When does the canteen open?', '--dataset', 'handbook');
    expect([short.code, short.out]).toEqual([0, expect.stringMatching(/seven in the morning.*\[1\]/s)]);
    const asked = await run('ask', 'When does the canteen open?', '--dataset', 'all');
    expect([asked.code, asked.errors]).toEqual([0, '']);
    expect(asked.out).toMatch(/seven in the morning.*\[1\]/s);
    expect(asked.out).toMatch(/\n\n\[1\] canteen\.md.* \(user_custom_1_handbook_content\)\n$/);
    const whole = await run('ask', 'Say exactly: heron', '--json');
    expect(JSON.parse(whole.out)).toMatchObject({ message: 'heron', citations: [], status: 200 });
    expect((await run('ask', 'Say exactly: a heron')).out).toBe('a heron\n');
  });

  test('are refused in the same words where the native interface refuses with 200', { timeout: 120_000 }, async () => {
    await server.change('compat: { nativeErrors: envelope }\n');
    onTestFinished(() => server.change(''));
    expect(await run('ask', 'When?', '--dataset', 'cellar')).toMatchObject({
      code: 1,
      out: '',
      errors: expect.stringContaining('none called "cellar"') as string,
    });
    expect(await run('ask', 'When?', '--model', 'nobody')).toMatchObject({ code: 2, errors: expect.stringContaining('`nobody` does not exist') as string });
    expect(await run('ask', 'When?', '--url', server.url, '--key', 'x')).toMatchObject({
      code: 1,
      errors: 'dragoman: The API key is not valid: it is mistyped, has expired or was revoked, or belongs to another server.\n',
    });
    expect(await run('ingest', 'canteen.md', '--dataset', 'pantry')).toMatchObject({ code: 0, errors: '' });
    expect((await run('ask', 'When does the canteen open?', '--dataset', 'pantry')).out).toMatch(/seven in the morning.*\[1\]/s);
  });

  test('are those of whom --email names, or whose key it is, and of nobody else', { timeout: 120_000 }, async () => {
    const { id } = await admin('POST', '/server/admin/users', { email: 'ada@example.org' });
    const { key } = await admin('POST', `/server/admin/users/${String(id)}/keys`, { name: 'k' });
    expect((await run('ingest', 'canteen.md', '--dataset', 'of ada', '--email', 'ADA@example.org')).code).toBe(0);
    expect((await admin('POST', '/server/get-dataset-info', { dataset: `user_custom_${String(id)}_of ada_content` }))['status']).toBe(404);
    const withKey = ['--url', server.url, '--key', String(key)];
    expect((await run('ask', 'When does the canteen open?', '--dataset', `user_custom_${String(id)}_of ada_content`, ...withKey)).out).toContain('seven');
    for (const [args, code, says] of [
      [['ask', 'x', '--dataset', 'user_custom_1_handbook_content', '--email', 'ada@example.org'], 1, 'there is none called'],
      [['ask', 'x', '--email', 'nobody@example.org'], 1, 'There is no user nobody@example.org.'],
      [['ask', 'x', '--email', 'ada@example.org', ...withKey], 2, '--email is for the machine'],
      [['ask', 'x', '--model', 'nobody'], 2, 'nobody'],
      [['ask'], 2, 'question'],
      [['ingest', 'canteen.md'], 2, '--dataset'],
      [['ingest', 'gone.md', '--dataset', 'handbook'], 2, 'gone.md is not there.'],
      [['ingest', 'data', '--dataset', 'handbook'], 2, 'data is no file.'],
      [['ingest', 'canteen.md', '--dataset', 'abc'], 2, 'dataset must have'],
      [['ask', 'x', '--data', 'elsewhere'], 1, 'No server is running'],
    ] as const) {
      const ran = await run(...args);
      expect([args, ran.code, ran.errors]).toEqual([args, code, expect.stringContaining(says)]);
    }
    await admin('PATCH', `/server/admin/users/${String(id)}`, { status: 'suspended' });
    expect((await run('ask', 'x', '--email', 'ada@example.org')).errors).toMatch(/suspended/);
    const spoofed = await fetch(`${server.url}/server/mine`, { headers: { 'x-access-tokens': String(key), 'x-dragoman-as': 'admin@localhost' } });
    expect(spoofed.status).toBe(401); // the header is nothing with a key
  });
});

describe.skipIf(!inject('postgres'))('dragoman work', () => {
  test('works on jobs without listening, and stops in order', { timeout: 120_000 }, async () => {
    const { folder, databaseUrl = '' } = await onServer(inject('postgres') ?? '').place();
    const server = await startTestServer({
      folder,
      databaseUrl,
      convert: async (_, { signal }) => {
        await sleep(100_000, undefined, { signal: signal! });
        throw new Error('nobody waits so long');
      },
    });
    await server.ask('/user/add-dataset', { dataset: 'to be done' });
    await server.ask('/server/mine/datasets/1/files?filename=a.md', 'The text of the file.', { headers: { 'content-type': 'text/markdown' } });
    await server.close();
    const { child, ran, ended } = start(folder, ['work'], {
      DRAGOMAN_CONFIG: join(folder, 'dragoman.yaml'),
      DRAGOMAN_DATA: join(folder, 'data'),
      DATABASE_URL: databaseUrl,
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const database = new pg.Client({ connectionString: databaseUrl });
    await database.connect();
    onTestFinished(() => database.end());
    const state = async () => (await database.query<{ state: string }>(`select state from job where kind = 'ingestion'`)).rows[0]?.state;
    await expect.poll(state, { timeout: 60_000, interval: 200 }).toBe('done');
    expect(ran.out).toBe('Working on the jobs of the database. Stop with Ctrl-C.\n');
    expect(existsSync(join(folder, 'data/server.json'))).toBe(false);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, errors: '', out: expect.stringContaining('Stopped.') as string });
  });
});

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { withDatabase } from '../support/migrated.ts';
import { chat, startTestServer, type TestServer } from '../support/server.ts';
import { ofNode, passedOn } from '../support/surroundings.ts';

const main = new URL('../../src/main.ts', import.meta.url).pathname;

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly errors: string;
}

/** Runs a command in a folder where a settings file may stand; its data folder is `data`. */
async function ran(home: string, ...args: string[]): Promise<Ran> {
  const child = start(home, args);
  let [out, errors] = ['', ''];
  child.stdout.on('data', (text: Buffer) => (out += text.toString()));
  child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, out, errors };
}

function start(home: string, args: readonly string[]) {
  return spawn(process.execPath, [...ofNode, main, ...args], { cwd: home, env: passedOn('HOME'), stdio: ['ignore', 'pipe', 'pipe'] });
}

const json = ({ out }: Ran) => JSON.parse(out) as Record<string, unknown>;

const folder = () => {
  const home = mkdtempSync(join(tmpdir(), 'dragoman-line-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
};

describe('the command line at a running server', () => {
  let server: TestServer;
  let home: string;
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'dragoman-line-'));
    server = await startTestServer({ folder: home, yaml: 'plans: { free: { monthlyTokens: 1000 }, team: {} }\n' });
  });
  afterAll(async () => {
    await server.close();
    rmSync(home, { recursive: true, force: true });
  });

  test('a user is added, gets a key that works, is given another plan and suspended', async () => {
    const added = await ran(home, 'user', 'add', '--email', 'Ada@example.org', '--json');
    expect(added).toMatchObject({ code: 0, errors: '' });
    expect(added.out).toBe('{"id":2,"email":"ada@example.org","plan":"free","role":"user"}\n');
    const made = json(await ran(home, 'key', 'create', '--email', 'ada@example.org', '--name', 'laptop', '--scopes', 'passthrough,query', '--json'));
    expect(Object.keys(made)).toEqual(['id', 'name', 'key', 'scopes']);
    expect(made).toMatchObject({ name: 'laptop', scopes: ['passthrough', 'query'] });
    const headers = { authorization: `Bearer ${String(made['key'])}` };
    const say = async () =>
      (await server.ask(chat, { model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: hi' }], max_tokens: 5 }, { headers })).status;
    expect(await say()).toBe(200);

    const keys = await ran(home, 'key', 'list', '--email', 'ada@example.org');
    expect(keys.out).toMatch(/^ID {2}NAME .*\n *\d+ {2}laptop {2}dgm_\w{3}…\w{4} {2}passthrough, query {2}all /);
    expect(keys.out).not.toContain(made['key']);
    expect(json(await ran(home, 'user', 'set-plan', '--email', 'ada@example.org', '--plan', 'team', '--json'))).toMatchObject({ plan: 'team' });
    expect((await ran(home, 'user', 'suspend', '--email', 'ada@example.org')).out).toBe('ada@example.org is suspended. Their keys no longer work.\n');
    expect(await say()).toBe(401);
    expect(json(await ran(home, 'user', 'list', '--query', 'ada@', '--json'))).toEqual({
      items: [{ id: 2, email: 'ada@example.org', plan: 'team', role: 'user', status: 'suspended' }],
    });
    expect((await ran(home, 'user', 'suspend', '--email', 'ada@example.org', '--undo')).code).toBe(0);
    expect(await say()).toBe(200);
    const rotated = json(await ran(home, 'key', 'rotate', '--email', 'ada@example.org', '--id', String(made['id']), '--grace', '0', '--json'));
    expect(rotated).toMatchObject({ id: made['id'], name: 'laptop', oldUntil: expect.any(String) });
    expect(await say()).toBe(401);
    headers.authorization = `Bearer ${String(rotated['key'])}`;
    expect((await server.ask('/server/chatcompat/v1/models', undefined, { headers })).status).toBe(200);
    const revoked = await ran(home, 'key', 'revoke', '--email', 'ada@example.org', '--id', String(made['id']));
    expect(revoked).toMatchObject({ code: 0, out: expect.stringContaining('is revoked') as string });
    expect(await say()).toBe(401);
    expect((await ran(home, 'key', 'list', '--email', 'ada@example.org')).out).toBe('ada@example.org has no keys.\n');
    const trail = (await (await server.ask('/server/admin/audit')).json()) as { items: { action: string; actor: object; address: string | null }[] };
    expect(trail.items.map(({ action }) => action)).toEqual([
      'key.revoke',
      'key.rotate',
      'user.change',
      'user.change',
      'user.change',
      'key.create',
      'user.add',
      'key.create', // of the first start
      'user.add',
    ]);
    for (const { actor, address } of trail.items.slice(0, 7)) expect([actor, address]).toEqual([{ type: 'local', userId: null, keyId: null }, '127.0.0.1']);
    expect(JSON.stringify(trail)).not.toContain(made['key']);

    await expect.poll(async () => ((await (await server.ask('/server/admin/logs')).json()) as { items: [] }).items.length, { timeout: 30_000 }).toBe(2);
    const { out } = await ran(home, 'logs', '--email', 'ada@example.org');
    expect(out.split('\n')).toMatchObject([
      expect.stringMatching(/^TIME +STATUS +END +USER +MODEL +PROVIDER +IN +OUT +PLAN TOKENS +MS +APP +REQUEST ID$/),
      expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +200 +completed +ada@example\.org +built-in +built-in +\d+ +\d+ +\d+ +\d+ +laptop +\S+$/),
      expect.anything(),
      '',
    ]);
  }, 120_000);

  test('logs -f shows as many of the requests before as it is told, and then the new ones as they come', async () => {
    const child = start(home, ['logs', '-f', '--json', '--limit', '1']);
    onTestFinished(() => void child.kill('SIGKILL'));
    let out = '';
    child.stdout.on('data', (text: Buffer) => (out += text.toString()));
    const ask = () => server.ask(chat, { model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: hi' }], app_name: 'followed' });
    await expect.poll(() => out.split('\n').length, { timeout: 30_000 }).toBe(2);
    await ask();
    await expect.poll(() => out, { timeout: 30_000 }).toContain('"app":"followed"');
    await ask();
    await expect.poll(() => out.match(/"app":"followed"/g)?.length, { timeout: 30_000 }).toBe(2);
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { app: string }).app),
    ).toEqual(['laptop', 'followed', 'followed']);
  }, 120_000);

  test("a command with --url works from another folder with an administrator's key, and with no other", async () => {
    const elsewhere = folder();
    const listed = await ran(elsewhere, 'user', 'list', '--url', server.url, '--key', server.key, '--json');
    expect(json(listed)).toMatchObject({ items: [{ email: 'admin@localhost' }, {}] });
    const made = json(await ran(home, 'key', 'create', '--email', 'ada@example.org', '--name', 'other', '--json'));
    const refused = await ran(elsewhere, 'user', 'list', '--url', server.url, '--key', String(made['key']));
    expect(refused).toMatchObject({ code: 1, out: '', errors: 'dragoman: This key does not belong to an administrator.\n' });
    expect(await ran(elsewhere, 'user', 'list', '--url', server.url, '--key', 'x')).toMatchObject({
      code: 1,
      errors: 'dragoman: The API key is not valid: it is mistyped, has expired or was revoked, or belongs to another server.\n',
    });
    const token = (await readFile(join(home, 'data/local'), 'utf8')).trim();
    expect(refused.errors + listed.out).not.toContain(token);
  }, 120_000);

  test.each([
    [2, ['user', 'add']],
    [2, ['user', 'add', '--email', 'nobody']],
    [2, ['user', 'add', '--email', 'b@example.org', '--plan', 'nothing']],
    [2, ['user', 'add', '--email', 'b@example.org', '--nonsense']],
    [2, ['user', 'nonsense']],
    [2, ['key', 'create', '--email', 'admin@localhost', '--name', 'k', '--scopes', 'root']],
    [2, ['logs', '--limit', '-1']],
    [2, ['user', 'list', '--url', 'http://127.0.0.1:9']],
    [1, ['user', 'list', '--url', 'http://127.0.0.1:1025', '--key', 'x']],
    [1, ['user', 'add', '--email', 'admin@localhost']],
    [1, ['user', 'suspend', '--email', 'admin@localhost']],
    [1, ['user', 'set-plan', '--email', 'who@example.org', '--plan', 'free']],
    [1, ['key', 'revoke', '--email', 'admin@localhost', '--id', '../../1']],
    [2, ['key', 'rotate', '--email', 'admin@localhost', '--id', '1', '--grace', 'soon']],
    [2, ['key', 'rotate', '--email', 'admin@localhost', '--id', '1', '--grace', '9999999']],
    [0, ['user', '--help']],
    [0, ['key', 'create', '--help']],
    [0, ['logs', '--help']],
  ])('a command ends with %i: %j', async (code, args) => {
    const { code: ended, out, errors } = await ran(home, ...args);
    expect([ended, out + errors]).toEqual([code, expect.stringMatching(/\S/)]);
    expect(code === 0 ? errors : out).toBe('');
    expect(errors).not.toMatch(/\n {4}at /);
  });

  test('a server that is not there, and an address that is none, are named', async () => {
    const at = (url: string) => ran(home, 'user', 'list', '--url', url, '--key', 'x');
    expect(await at('http://127.0.0.1:1025/')).toMatchObject({
      code: 1,
      errors: expect.stringMatching(/^dragoman: http:\/\/127\.0\.0\.1:1025 does not respond: /),
    });
    expect(await at(`${server.url}/v1`)).toMatchObject({
      code: 1,
      errors: `dragoman: ${server.url}/v1 returned 404, but not a Dragoman error. Check the address: leave out /v1 unless a proxy in front of the server needs it.\n`,
    });
    for (const none of ['localhost:8080', 'nothing', 'file:///etc'])
      expect(await at(none)).toMatchObject({ code: 2, errors: 'dragoman: --url must be the address of a server, such as http://127.0.0.1:8080.\n' });
  });

  test('a key for a model that the server does not have is made, with a warning', async () => {
    const made = ['key', 'create', '--email', 'admin@localhost', '--name', 'narrow', '--models', 'built-in, bilt-in', '--json'];
    expect(await ran(home, ...made)).toMatchObject({ code: 0, errors: 'The server has no model bilt-in now: the key cannot use it until there is one.\n' });
  });

  test('a plan that names models that the server does not have is made, with a warning for each; patterns of names are refused', async () => {
    const file = join(home, 'plan.json');
    const set = ['plan', 'set', '--name', 'some', '--file', file, '--json'];
    await writeFile(file, JSON.stringify({ models: ['built-in', 'bilt-in', '*'], modelLimits: { 'gpt-x': { monthlyTokens: 1 } } }));
    const said = (name: string) => `The server has no model ${name} now: what the plan says of it has no effect until there is one.\n`;
    expect(await ran(home, ...set)).toMatchObject({ code: 0, errors: said('bilt-in') + said('gpt-x') });
    await writeFile(file, JSON.stringify({ models: ['gpt-*'] }));
    expect(await ran(home, ...set)).toMatchObject({
      code: 2,
      errors: expect.stringContaining('models[0] must be the name of a model, or "*" alone') as string,
    });
    expect(await ran(home, 'plan', 'delete', '--name', 'some')).toMatchObject({ code: 0 });
  });

  test('a key that nobody has used yet is not shown as used, also where the command looked for its models', async () => {
    const { id } = json(await ran(home, 'key', 'create', '--email', 'admin@localhost', '--name', 'unused', '--models', 'bilt-in', '--json'));
    // What is used is written after a second. A key that is used later shows that the writing is done.
    const { key, id: later } = json(await ran(home, 'key', 'create', '--email', 'admin@localhost', '--name', 'used', '--json'));
    expect((await server.ask('/v1/models', undefined, { headers: { authorization: `Bearer ${String(key)}` } })).status).toBe(200);
    const uses = async () => {
      const { items } = json(await ran(home, 'key', 'list', '--email', 'admin@localhost', '--json')) as { items: { id: unknown; lastUsedAt: string | null }[] };
      return new Map(items.map((one) => [one.id, one.lastUsedAt]));
    };
    await expect.poll(async () => (await uses()).get(later)).not.toBeNull();
    expect((await uses()).get(id)).toBeNull();
  });

  test('a list of lessons without any says so', async () => {
    expect(await ran(home, 'lesson', 'list')).toMatchObject({ code: 0, out: 'Nothing was learned from refusals in the last hour.\n' });
  });
});

describe('the command line without a server', () => {
  test('commands work on the data folder itself, and a server started later sees the changes', async () => {
    const home = folder();
    for (const [name, args] of [
      ['elsewhere', ['user', 'list']],
      ['elsewhere', ['journal', 'adopt', 'lost']],
      ['unfinished', ['user', 'list']],
    ] as const) {
      mkdirSync(join(home, 'lost/journal'), { recursive: true });
      mkdirSync(join(home, 'unfinished/database'), { recursive: true });
      const refused = await ran(home, ...args, '--data', name);
      expect(refused).toMatchObject({ code: 1, out: '', errors: expect.stringContaining(`/${name} holds no Dragoman data yet`) as string });
    }
    expect(readdirSync(home).toSorted()).toEqual(['lost', 'unfinished']);
    expect(json(await ran(home, 'user', 'add', '--email', 'ada@example.org', '--role', 'admin', '--json'))).toEqual({
      id: 1,
      email: 'ada@example.org',
      plan: 'unlimited',
      role: 'admin',
    });
    const { key } = json(await ran(home, 'key', 'create', '--email', 'ada@example.org', '--name', 'k', '--json'));
    expect(await ran(home, 'user', 'suspend', '--email', 'ada@example.org')).toMatchObject({
      code: 1,
      errors: expect.stringContaining('last active') as string,
    });
    const server = await startTestServer({ folder: home });
    const answer = await fetch(`${server.url}/server/admin/users`, { headers: { 'x-access-tokens': String(key) } });
    expect(answer.status).toBe(200);
    const trail = await fetch(`${server.url}/server/admin/audit`, { headers: { 'x-access-tokens': String(key) } });
    const here = { actor: { type: 'local', userId: null, keyId: null }, requestId: null, address: null };
    expect(await trail.json()).toMatchObject({
      items: [
        { ...here, action: 'key.create', target: { kind: 'key', id: '1' } },
        { ...here, action: 'user.add', changed: { email: { to: 'ada@example.org' } } },
      ],
      nextCursor: null,
    });
    await server.close();
    expect((await ran(home, 'logs')).out).toBe('No requests have been logged yet.\n');
    expect((await ran(home, 'logs', '--status', '429')).out).toBe('No request matches.\n');
    expect(await ran(home, 'logs', '-f')).toMatchObject({ code: 1, errors: 'dragoman: No server is running: there is nothing to follow.\n' });
  }, 120_000);

  test('users who are added before the first start do not keep the server from making its administrator', async () => {
    for (const [added, expected] of [
      ['ada@example.org', { id: 2, email: 'admin@localhost', plan: 'unlimited' }],
      ['admin@localhost', { id: 1, email: 'admin@localhost', plan: 'small' }],
    ] as const) {
      const home = folder();
      const yaml = 'plans: { small: {} }\nnewUsers: { plan: small }\n';
      await writeFile(join(home, 'dragoman.yaml'), yaml);
      await withDatabase(join(home, 'data'));
      expect(await ran(home, 'user', 'add', '--email', added)).toMatchObject({ code: 0 });
      const server = await startTestServer({ folder: home, yaml });
      expect(await (await fetch(`${server.url}/server/mine`, { headers: { 'x-access-tokens': server.key } })).json()).toMatchObject({
        ...expected,
        role: 'admin',
      });
      await server.close();
    }
  }, 120_000);

  test('a command does not take what a killed server left behind for a server, and does not touch a folder in use', async () => {
    const home = folder();
    const server = await startTestServer({ folder: home });
    const left = await readFile(join(home, 'data/server.json'), 'utf8');
    await rm(join(home, 'data/server.json'));
    const refused = await ran(home, 'user', 'list');
    expect(refused).toMatchObject({ code: 1, errors: expect.stringContaining('in use by another Dragoman') as string });
    await server.close();
    await writeFile(join(home, 'data/server.json'), left);
    await writeFile(join(home, 'data/local'), 'dgl_old\n');
    expect(json(await ran(home, 'user', 'list', '--json'))).toMatchObject({ items: [{ email: 'admin@localhost' }] });
  }, 120_000);
});

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { chat, startTestServer, type TestServer } from '../support/server.ts';
import { ofNode, passedOn } from '../support/surroundings.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 }); // a process for each command

const main = new URL('../../src/main.ts', import.meta.url).pathname;

interface Shell {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** Runs a command in a folder, with nothing in the environment but what is said. */
async function ran(home: string, args: readonly string[], { env = {}, input }: Shell = {}) {
  const child = spawn(process.execPath, [...ofNode, main, ...args], { cwd: home, env: { ...passedOn('HOME'), ...env }, stdio: 'pipe' });
  let [out, errors] = ['', ''];
  child.stdout.on('data', (text: Buffer) => (out += text.toString()));
  child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
  child.stdin.end(input ?? '');
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, out, errors };
}

const folder = (yaml?: string) => {
  const home = mkdtempSync(join(tmpdir(), 'dragoman-shell-'));
  if (yaml !== undefined) writeFileSync(join(home, 'dragoman.yaml'), yaml);
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
};

describe('commands in another shell than the server', () => {
  let server: TestServer;
  let home: string;
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'dragoman-shell-'));
    server = await startTestServer({ folder: home, yaml: 'plans: { free: { monthlyTokens: 1000 } }\n' });
    await writeFile(
      join(home, 'dragoman.yaml'),
      'providers: { a: { dialect: openai-chat, baseUrl: "http://x", apiKeys: ["${SECRET_OF_THE_SERVER}"] } }\nnonsense: 1\n',
    );
  });
  afterAll(async () => {
    await server.close();
    await rm(home, { recursive: true, force: true });
  });

  test('need no variable of the settings file, nor that it is right', async () => {
    for (const args of [['user', 'list'], ['plan', 'list'], ['team', 'list'], ['usage'], ['logs'], ['holder', 'list']]) {
      const { code, errors } = await ran(home, args);
      expect({ args, code, errors }).toEqual({ args, code: 0, errors: '' });
    }
    expect((await ran(home, ['doctor'])).out).toContain('responds and is ready');
  });

  test('plans are set from a file or the standard input and deleted, teams are added, changed and deleted, users deleted', async () => {
    const set = await ran(home, ['plan', 'set', '--name', 'gold', '--file', '-'], { input: 'monthlyTokens: 5000\nrequestsPerMinute: 9\n' });
    expect(set).toMatchObject({ code: 0, out: 'The plan gold now has monthlyTokens 5000, requestsPerMinute 9.\n' });
    expect((await ran(home, ['plan', 'list'])).out).toMatch(/gold +database +monthlyTokens 5000, requestsPerMinute 9/);
    expect(await ran(home, ['plan', 'set', '--name', 'gold', '--file', '-'], { input: 'monthly: 5' })).toMatchObject({
      code: 2,
      errors: expect.stringContaining('monthly') as string,
    });
    expect(await ran(home, ['plan', 'set', '--name', 'gold', '--file', '/nowhere'])).toMatchObject({ code: 2 });
    expect(await ran(home, ['plan', 'set', '--name', 'gold', '--file', '-'], { input: 'monthlyTokens: 5\n  x: [' })).toMatchObject({
      code: 2,
      errors: expect.stringContaining('--file: - is neither YAML nor JSON: see line 1, column 16.') as string,
    });

    expect((await ran(home, ['user', 'add', '--email', 'ada@example.org'])).code).toBe(0);
    const made = await ran(home, ['team', 'add', '--name', 'ops', '--members', 'ada@example.org', '--admins', 'admin@localhost', '--json']);
    expect(JSON.parse(made.out)).toMatchObject({ name: 'ops', plan: 'unlimited', members: [2], admins: [1] });
    expect((await ran(home, ['team', 'change', '--name', 'ops', '--plan', 'gold', '--admins', ''])).code).toBe(0);
    expect((await ran(home, ['team', 'list'])).out).toMatch(/ops +gold +ada@example\.org/);
    expect((await ran(home, ['team', 'change', '--name', 'ops', '--members', ''])).out).toBe('The team ops has the plan gold and 0 members.\n');
    expect(await ran(home, ['team', 'change', '--name', 'ops'])).toMatchObject({ code: 2 });
    expect((await ran(home, ['team', 'delete', '--name', 'ops'])).out).toBe('The team ops is deleted.\n');
    expect(await ran(home, ['team', 'delete', '--name', 'ops'])).toMatchObject({ code: 1, errors: 'dragoman: There is no team ops.\n' });
    expect((await ran(home, ['plan', 'delete', '--name', 'gold'])).out).toBe('The plan gold is deleted.\n');

    expect((await ran(home, ['user', 'set-role', '--email', 'ada@example.org', '--role', 'auditor'])).out).toBe('ada@example.org now has the role auditor.\n');
    expect(await ran(home, ['user', 'set-role', '--email', 'ada@example.org', '--role', 'king'])).toMatchObject({ code: 2 });
    expect(await ran(home, ['user', 'delete', '--email', 'ada@example.org'])).toMatchObject({ code: 2 });
    expect((await ran(home, ['user', 'delete', '--email', 'ada@example.org', '--yes'])).out).toBe('ada@example.org is deleted.\n');
    expect((await ran(home, ['user', 'list', '--query', 'ada'])).out).toBe('No user matches.\n');
  });

  test('usage is shown by what one asks for', async () => {
    expect((await server.ask(chat, { model: 'built-in', messages: [{ role: 'user', content: 'hi' }] })).status).toBe(200);
    await expect
      .poll(async () => (await ran(home, ['usage', '--group-by', 'user,model'])).out, { timeout: 60_000 })
      .toMatch(/USER +MODEL +REQUESTS .*\nadmin@localhost +built-in +1 /);
    expect((await ran(home, ['usage', '--group-by', 'team,key'])).out).toMatch(/TEAM +KEY +REQUESTS .*\n– +\S.* \(1\) +1 /);
    expect(await ran(home, ['usage', '--group-by', 'nonsense'])).toMatchObject({ code: 2 });
    const csv = await ran(home, ['usage', '--group-by', 'day', '--tz', 'Asia/Tokyo', '--format', 'csv']);
    expect(csv).toMatchObject({ code: 0, out: expect.stringMatching(/^day,requests,.*\r?\n\d{4}-\d\d-\d\d,1,/) as string });
  });

  test.each([
    [['usage', '--tz', 'Nowhere'], '--tz must be the IANA name of a time zone such as Europe/Berlin.'],
    [['usage', '--format', 'xml'], '--format must be "csv" or "jsonl".'],
    [['usage', '--group-by', 'nix'], '--group-by must be words out of model, '],
    [['usage', '--from', 'x'], '--from must be a time in ISO 8601'],
    [['user', 'add', '--email', 'nobody'], '--email must be an e-mail address'],
    [['user', 'set-plan', '--email', 'admin@localhost', '--plan', 'gold'], '--plan must name a plan: there is none called "gold".'],
    [['key', 'create', '--email', 'admin@localhost', '--name', 'k', '--scopes', 'chat'], '--scopes must be "query", '],
    [['key', 'create', '--email', 'admin@localhost', '--name', 'k', '--expires', 'tomorrow'], '--expires must be a time in ISO 8601'],
    [['key', 'rotate', '--email', 'admin@localhost', '--id', '1', '--grace', '9999999'], '--grace must be between 0 and 2592000.'],
    [['logs', '--status', 'x'], '--status must be an integer.'],
  ])('a mistake in an option is named as it was typed: %j', async (args, expected) => {
    const { code, errors } = await ran(home, args);
    expect([code, errors.slice(0, `dragoman: ${expected}`.length)]).toEqual([2, `dragoman: ${expected}`]);
  });

  test('the key comes from the environment or the standard input', async () => {
    const elsewhere = folder();
    const list = ['user', 'list', '--url', server.url];
    expect((await ran(elsewhere, list, { env: { DRAGOMAN_KEY: server.key } })).out).toContain('admin@localhost');
    expect((await ran(elsewhere, [...list, '--key', '-'], { input: `${server.key}\n` })).out).toContain('admin@localhost');
    expect(await ran(elsewhere, list)).toMatchObject({ code: 2, errors: expect.stringContaining('DRAGOMAN_KEY') as string });
    expect(await ran(elsewhere, [...list, '--key', '-'])).toMatchObject({ code: 2 });
  });
});

test('config check lists all mistakes at once, and nothing that only follows from them', async () => {
  const home = folder(`port: x
logLevle: info
providers:
  a: { dialect: openai, baseUrl: "http://x", apiKeys: ["\${NOT_SET}"] }
  b: { dialect: openai-chat, baseUrl: "http://x" }
models:
  m: { targets: [{ provider: a }], kind: chatt }
limits: { bodyBytes: 0 }
plans: { free: { monthlyTokens: -1 } }
`);
  const { code, errors } = await ran(home, ['config', 'check']);
  expect(code).toBe(2);
  const places = errors
    .trim()
    .split('\n')
    .map((line) => line.replace(/^dragoman\.yaml:(\d+):\d+: (\S+) .*$/, '$1 $2'));
  expect(places.toSorted()).toEqual([
    '1 port',
    '2 logLevle',
    '4 providers.a.apiKeys[0]',
    '4 providers.a.dialect',
    '7 models.m.kind',
    '8 limits.bodyBytes',
    '9 plans.free.monthlyTokens',
  ]);
  const checked = JSON.parse((await ran(home, ['config', 'check', '--json'])).out) as { ok: boolean; file: string; problems: unknown[] };
  expect([checked.ok, checked.file, checked.problems.length]).toEqual([false, join(realpathSync(home), 'dragoman.yaml'), 7]);
  expect(JSON.parse((await ran(home, ['config', 'check', '--json', '--config', 'none.yaml'])).out)).toMatchObject({ ok: false, file: null });
  expect(await ran(folder('port: 1'), ['config', 'check'])).toMatchObject({ code: 0, out: expect.stringContaining('no mistakes') as string });
});

test('numbers and booleans may be variables, and a .env beside the file is read below the environment', async () => {
  const home = folder('port: "${MY_PORT}"\nresponses: { store: "${STORE}" }\nlimits: { connectSeconds: "${SECONDS_TO_CONNECT}" }\n');
  const env = { MY_PORT: '0', STORE: 'false', SECONDS_TO_CONNECT: '1.5' };
  expect(await ran(home, ['config', 'check'], { env })).toMatchObject({ code: 0 });
  expect((await ran(home, ['config', 'check'], { env: { ...env, MY_PORT: 'x' } })).errors).toContain('port must be an integer. Found "${MY_PORT}".');
  writeFileSync(join(home, '.env'), 'MY_PORT=1\nKEY : y\nSTORE=true\nSECONDS_TO_CONNECT=2');
  expect((await ran(home, ['config', 'check'])).out).toContain('.env:2 is not read: a line must be NAME=value.\n');
  writeFileSync(join(home, '.env'), 'MY_PORT=80800\nSTORE=true\n# a comment\nSECONDS_TO_CONNECT="2"\n');
  expect((await ran(home, ['config', 'check'])).errors).toContain('port must be between 0 and 65535');
  expect(await ran(home, ['config', 'check'], { env: { MY_PORT: '1' } })).toMatchObject({ code: 0 });
});

test('commands that were meant are named, a comment that the shell passes on is left out, and a file of LiteLLM is known', async () => {
  const home = folder('model_list: []\n');
  for (const [word, meant] of [
    ['start', 'serve'],
    ['usr', 'user'],
    ['keys', 'key create'],
    ['plans', 'plan'],
  ] as const)
    expect(await ran(home, [word])).toMatchObject({ code: 2, errors: expect.stringContaining(`Did you mean ${meant}?`) as string });
  expect(await ran(home, ['user', 'lst'])).toMatchObject({ code: 2, errors: expect.stringContaining('Did you mean list?') as string });
  expect((await ran(home, ['config', 'check', '#', 'all', 'of', 'it'])).errors).toContain('This looks like a settings file of LiteLLM');
});

test('init writes a file that works, and with --full every setting', async () => {
  const home = folder();
  expect((await ran(home, ['init'])).code).toBe(0);
  expect((await ran(home, ['config', 'check'])).code).toBe(0);
  await rm(join(home, 'dragoman.yaml'));
  expect((await ran(home, ['init', '--full'])).out).toContain('Every setting in it is commented out');
});

test('the completion scripts are understood by their shells, and complete commands and options', async () => {
  const home = folder();
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, out } = await ran(home, ['completion', shell]);
    expect({ shell, code }).toEqual({ shell, code: 0 });
    writeFileSync(join(home, shell), out);
    const checked = spawnSync(shell, ['-n', join(home, shell)], { encoding: 'utf8' });
    if (checked.error === undefined) expect({ shell, errors: checked.stderr, status: checked.status }).toEqual({ shell, errors: '', status: 0 }); // where the shell is here
  }
  const asked = (line: string) => {
    const words = line.split(' ');
    const script = `source ${join(home, 'bash')}; COMP_WORDS=(${words.map((word) => `"${word}"`).join(' ')}); COMP_CWORD=${words.length - 1}; _dragoman; echo "\${COMPREPLY[@]}"`;
    return spawnSync('bash', ['-c', script], { encoding: 'utf8' }).stdout.trim();
  };
  expect(asked('dragoman us')).toBe('user usage');
  expect(asked('dragoman user s')).toBe('set-plan set-role suspend');
  expect(asked('dragoman key create --na')).toBe('--name');
  expect(await ran(home, ['completion', 'csh'])).toMatchObject({ code: 2 });
});

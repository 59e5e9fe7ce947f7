import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { anyPlace } from '../support/databases.ts';
import { withDatabase } from '../support/migrated.ts';
import { ownPort } from '../support/ports.ts';
import { proves } from '../support/proves.ts';
import { ofNode } from '../support/surroundings.ts';

const root = new URL('../..', import.meta.url).pathname;

let home: string;
let port: number;
let running: ChildProcess | undefined;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'dragoman-process-'));
  port = await ownPort();
});
afterEach(async () => {
  if (running?.exitCode === null && running.signalCode === null) {
    const pid = serverPid();
    running.kill('SIGKILL');
    if (pid) kill(pid, 'SIGKILL');
  }
  running = undefined;
  await rm(home, { recursive: true, force: true, maxRetries: 10 }); // a killed server may still write
});

const serverPid = (): number | undefined => {
  try {
    return (JSON.parse(readFileSync(join(home, 'data/server.json'), 'utf8')) as { pid: number }).pid;
  } catch {
    return undefined;
  }
};

function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

interface Started {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly errors: () => string;
  readonly ended: Promise<number | null>;
}

/** Runs a command in the project's folder and waits for the server's first answer. */
async function started(command: string, args: string[], env: Record<string, string> = {}): Promise<Started> {
  const child = spawn(command, args, {
    cwd: root,
    env: { ...process.env, PORT: String(port), DRAGOMAN_DATA: join(home, 'data'), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running = child;
  let output = '';
  let errors = '';
  child.stdout.on('data', (text) => (output += text));
  child.stderr.on('data', (text) => (errors += text));
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  for (let tries = 0; tries < 1200; tries++) {
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
    if (answer?.ok) return { child, output: () => output, errors: () => errors, ended };
    if (child.exitCode !== null) throw new Error(`It ended with ${child.exitCode}: ${errors}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`No answer: ${output} ${errors}`);
}

/** For a start that is not about the first one, which unpacks a database and makes its tables. @returns the variables that it needs */
async function begunBefore(): Promise<Record<string, string>> {
  await withDatabase(join(home, 'data'));
  return {};
}

/** For one that is not about the embedded database either, which costs each start more than a second of CPU time. @returns the variables that it needs */
async function begunElsewhere(): Promise<Record<string, string>> {
  const { databaseUrl } = await anyPlace();
  return databaseUrl === undefined ? begunBefore() : { DATABASE_URL: databaseUrl };
}

const npmStart = (env?: Record<string, string>) => started('npm', ['start'], env);
const keyIn = (output: string) => /API key +(\S{64})/.exec(output)?.[1];

async function until(what: () => boolean): Promise<void> {
  for (let tries = 0; !what(); tries++) {
    if (tries > 2400) throw new Error('It did not happen.');
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

describe('npm start', () => {
  test('on an empty folder prints a key that works, in a line that works when pasted; the second start prints none', async () => {
    const first = await npmStart();
    await until(() => first.output().includes('curl'));
    const key = keyIn(first.output());
    expect(key).toBeDefined();
    const curl = first.output().slice(first.output().indexOf('curl '));
    const pasted = spawn('sh', ['-c', curl], { stdio: ['ignore', 'pipe', 'ignore'] });
    let answer = '';
    pasted.stdout.on('data', (text) => (answer += text));
    await once(pasted, 'exit');
    expect(JSON.parse(answer)).toMatchObject({ choices: [{ message: { content: 'it works' } }] });
    first.child.kill('SIGTERM');
    expect(await first.ended).toBe(0);
    expect(readFileSync(join(home, 'data/server.json'), { encoding: 'utf8', flag: 'a+' })).toBe('');

    const second = await npmStart();
    await until(() => second.output().includes('listening'));
    expect(second.output()).not.toContain('API key');
    const again = await fetch(`http://127.0.0.1:${port}/server/chatcompat/v1/models`, { headers: { authorization: `Bearer ${key}` } });
    expect(again.status).toBe(200);
    second.child.kill('SIGINT');
    expect(await second.ended).toBe(0);
  }, 120_000);

  test.each([
    ['SIGTERM', begunBefore],
    ['SIGINT', begunElsewhere],
  ] as const)(
    '%s to its pid: it prints how many requests it waits for, a stream in flight ends well, exit 0, no process and no lock stay, the port is free',
    async (signal, begun) => {
      const database = await begun();
      await writeFile(join(home, 'dragoman.yaml'), 'models: { built-in: { tokensPerSecond: 20 } }\n');
      const key = 'a'.repeat(64);
      const { child, output, ended } = await npmStart({ ...database, DRAGOMAN_CONFIG: join(home, 'dragoman.yaml'), DRAGOMAN_ADMIN_API_KEY: key });
      const pid = serverPid()!;
      const answer = await fetch(`http://127.0.0.1:${port}/server/chatcompat/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'built-in', stream: true, messages: [{ role: 'user', content: `Say exactly: ${'word '.repeat(100)}` }] }),
      });
      child.kill(signal);
      child.kill(signal);
      const text = await answer.text();
      expect(text).toMatch(/data: \[DONE\]\n\n$/);
      expect(await ended).toBe(0);
      expect(output()).toMatch(/\nWaiting up to 30 s for 1 request to finish\.\nStopped\.\n$/);
      expect(kill(pid, 0)).toBe(false);
      const next = createServer().listen(port, '127.0.0.1');
      await once(next, 'listening');
      next.close();
    },
    120_000,
  );

  test('the server ends when npm start is killed, and frees the port', async () => {
    const { child } = await npmStart(await begunElsewhere());
    await until(() => serverPid() !== undefined);
    const pid = serverPid()!;
    child.kill('SIGKILL');
    await until(() => !kill(pid, 0));
  }, 120_000);
});

describe('bad settings', () => {
  test('end it with 2 and name the line', async () => {
    await writeFile(join(home, 'dragoman.yaml'), 'limits:\n  bodyBites: 5\n');
    await expect(npmStart({ DRAGOMAN_CONFIG: join(home, 'dragoman.yaml') })).rejects.toThrow(/ended with 2: .*dragoman\.yaml:2:3: .*bodyBites/s);
  });
});

test('a port that is in use is refused with a sentence that names the way out', async () => {
  const other = createServer().listen(port, '127.0.0.1');
  await once(other, 'listening');
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'bin/dragoman.js')], {
    env: { ...process.env, PORT: String(port), DRAGOMAN_DATA: join(home, 'data') },
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: `dragoman: Port ${port} of 127.0.0.1 is in use: stop the program that uses it, or choose another with PORT or --port.\n`,
  });
  other.close();
}, 120_000);

test('an unknown command is named, and the help refers to the options of the server', () => {
  const run = (...wishes: string[]) => spawnSync(process.execPath, [join(root, 'bin/dragoman.js'), ...wishes], { encoding: 'utf8' });
  const typed = 'node bin/dragoman.js';
  expect(run('strat')).toMatchObject({ status: 2, stderr: `dragoman: There is no command strat. Run ${typed} --help for a list of commands.\n` });
  expect(run('strat', 'it', '--name', 'x')).toMatchObject({ status: 2, stderr: expect.stringContaining('There is no command strat.') as string });
  expect(run('--help').stdout).toContain(`${typed} serve --help`);
}, 120_000);

test('SIGHUP applies new settings; invalid ones leave the old in effect, and a metric counts both', async () => {
  const database = await begunElsewhere();
  const file = join(home, 'dragoman.yaml');
  await writeFile(file, 'plans: { unlimited: { } }\n');
  const key = 'a'.repeat(64);
  const { errors, child, ended } = await started(process.execPath, [join(root, 'bin/dragoman.js')], {
    ...database,
    DRAGOMAN_CONFIG: file,
    DRAGOMAN_ADMIN_API_KEY: key,
  });
  const ask = async () =>
    (
      await fetch(`http://127.0.0.1:${port}/server/chatcompat/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'built-in', messages: [{ role: 'user', content: 'hello' }] }),
      })
    ).status;
  const reloads = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { authorization: `Bearer ${key}` } });
    return Array.from((await answer.text()).matchAll(/^dragoman_reloads_total\{result="(\w+)"\} (\d+)$/gm), ([, result, count]) => `${count} ${result}`);
  };
  expect(await ask()).toBe(200);
  expect(await reloads()).toEqual(['0 applied', '0 refused']);
  await writeFile(file, 'plans: { unlimited: { monthlyTokens: 0 } }\n');
  kill(serverPid()!, 'SIGHUP');
  await until(() => errors().includes('New settings are in effect'));
  expect(await ask()).toBe(429);
  await writeFile(file, 'plans: [\n');
  kill(serverPid()!, 'SIGHUP');
  await until(() => errors().includes('the old ones stay in effect'));
  expect(await ask()).toBe(429);
  const [applied, refused] = await reloads();
  expect(applied).toMatch(/^[12] applied$/); // the change of the file may be seen before the signal
  expect(refused).toMatch(/^[12] refused$/);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  expect(existsSync(join(home, 'data'))).toBe(true);
}, 120_000);

test('settings that are not yet in effect are named in one warning, at the start and after a reload', async () => {
  const database = await begunElsewhere();
  const file = join(home, 'dragoman.yaml');
  const oidc = 'issuer: "https://sign-in.example.org", scopes: [openid], groupsClaim: groups, adminGroups: [ops], teams: { dev: developers }, plan: free';
  await writeFile(file, `otel: { endpoint: "http://127.0.0.1:4318" }\nauth: { oidc: { ${oidc} } }\n`);
  const { child, errors, ended } = await started(process.execPath, ['bin/dragoman.js', 'serve'], { ...database, DRAGOMAN_CONFIG: file });
  const warnings = () =>
    errors()
      .split('\n')
      .filter((line) => line.includes('not yet in effect'))
      .map((line) => JSON.parse(line) as unknown);
  await until(() => warnings().length > 0);
  await writeFile(file, 'otel: { endpoint: "http://127.0.0.1:4318" }\n');
  await until(() => warnings().length > 1);
  expect(warnings()).toMatchObject([
    { level: 'warn', settings: ['otel', 'auth.oidc'], msg: 'These settings are accepted but not yet in effect.' },
    { level: 'warn', settings: ['otel'] },
  ]);
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
}, 120_000);

test(
  proves('A-05', 'an uncaught error is logged, requests in flight end well, and the process exits with 1 and no lock'),
  async () => {
    await begunBefore();
    await writeFile(join(home, 'dragoman.yaml'), 'models: { built-in: { tokensPerSecond: 20 } }\n');
    const key = 'a'.repeat(64);
    const mistaken = `data:text/javascript,process.on('SIGUSR2', () => { throw new Error('injected'); })`;
    const { child, ended, errors } = await started(process.execPath, ['--import', mistaken, ...ofNode, join(root, 'src/main.ts')], {
      DRAGOMAN_CONFIG: join(home, 'dragoman.yaml'),
      DRAGOMAN_ADMIN_API_KEY: key,
    });
    const answer = await fetch(`http://127.0.0.1:${port}/server/chatcompat/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'built-in', stream: true, messages: [{ role: 'user', content: `Say exactly: ${'word '.repeat(20)}` }] }),
    });
    child.kill('SIGUSR2');
    const text = await answer.text();
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(await ended).toBe(1);
    expect(errors()).toMatch(/"message":"injected".*Unexpected error: the server is stopping\./);
    expect(serverPid()).toBeUndefined();
  },
  120_000,
);

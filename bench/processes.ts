/** The processes that the bench starts: pinned to cores, measured through /proc, ended by their ids. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';

/** The gateway under test has a core to itself; clients, provider and database share the other. `any`: not pinned. */
export const cores = { gateway: '1', others: '0', any: '0-1' } as const;

export type Cores = (typeof cores)[keyof typeof cores];

export interface Command {
  readonly program: string;
  readonly words: readonly string[];
  readonly core: Cores;
  readonly folder: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** The file for its output. */
  readonly log: string;
  /** The signal that asks it to end; absent: SIGTERM. */
  readonly ending?: NodeJS.Signals;
}

export interface Running {
  readonly pid: number;
  /** True while it has not ended. */
  readonly alive: () => boolean;
  /** What it printed last. */
  readonly lastWords: () => string;
  stop(): Promise<void>;
}

const started = new Map<ChildProcess, NodeJS.Signals>();

/** However this process ends, all processes that it started end with it, including their children (a worker, a server behind `runuser`). */
process.on('exit', () => {
  const left = Array.from(started, ([child, ending]) => family(child.pid ?? 0).map((pid) => ({ pid, ending }))).flat();
  for (const { pid, ending } of left) signal(pid, ending);
  if (left.length > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lastPatienceMilliseconds);
  for (const { pid } of left) signal(pid, 'SIGKILL');
});

const lastPatienceMilliseconds = 500;

function signal(pid: number, which: NodeJS.Signals): void {
  try {
    process.kill(pid, which);
  } catch {
    // it has ended
  }
}

/** Starts a program pinned to one core. */
export function start({ program, words, core, folder, environment = {}, log, ending = 'SIGTERM' }: Command): Running {
  const output = openSync(log, 'a');
  const child = spawn('taskset', ['-c', core, program, ...words], {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...environment },
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  started.set(child, ending);
  const ended = new Promise<void>((resolve) => {
    child.once('exit', resolve);
    child.once('error', () => resolve());
  }).then(() => started.delete(child));
  const alive = () => started.has(child);
  return {
    pid: child.pid ?? 0,
    alive,
    lastWords: () => readFileSync(log, 'utf8').slice(-1500),
    async stop() {
      if (alive()) child.kill(ending);
      const timeout = new AbortController();
      await Promise.race([ended, setTimeout(15_000, undefined, { signal: timeout.signal }).then(() => child.kill('SIGKILL'))]);
      timeout.abort();
      await ended;
    },
  };
}

/** Keeps this process off the gateway's core. */
export function standAside(): void {
  spawnSync('taskset', ['-acp', cores.others, String(process.pid)]);
}

/** Microseconds of user and system time. */
export interface CpuTime {
  readonly user: number;
  readonly system: number;
}

const tickMicroseconds = 10_000; // USER_HZ is 100 on every Linux that Node runs on

/** CPU time so far of a process, the processes below it and those of them that have ended. */
export function cpuTime(pid: number): CpuTime {
  let user = 0;
  let system = 0;
  for (const one of family(pid)) {
    const stat = readProc(one, 'stat');
    const [utime = 0, stime = 0, cutime = 0, cstime = 0] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 15)
      .map(Number);
    user += utime + cutime;
    system += stime + cstime;
  }
  return { user: user * tickMicroseconds, system: system * tickMicroseconds };
}

/** Resident memory of a process and those below it, in megabytes of 10⁶ bytes. */
export function residentMegabytes(pid: number): number {
  return family(pid).reduce((sum, one) => sum + (Number(/VmRSS:\s+(\d+)/.exec(readProc(one, 'status'))?.[1] ?? 0) * 1024) / 1e6, 0);
}

function family(pid: number): number[] {
  if (pid === 0) return [];
  const children = readProc(pid, `task/${pid}/children`).split(' ').filter(Boolean).map(Number);
  return [pid, ...children.flatMap(family)];
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return ''; // it has ended
  }
}

/** A free port of 127.0.0.1. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/**
 * Asks again until there is an answer.
 *
 * @throws Error with `what` after these seconds, or when `alive` returns false
 */
export async function until<Answer>(
  ask: () => Promise<Answer | undefined>,
  { what, seconds = 30, alive = () => true }: { what: string; seconds?: number; alive?: () => boolean },
): Promise<Answer> {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (!alive() || performance.now() > deadline) throw new Error(what);
    await setTimeout(5);
  }
}

/** True where the program is in the path. */
export function installed(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v "$1"`, 'sh', program]).status === 0;
}

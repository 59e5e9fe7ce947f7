import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock, type Clock } from '#kit/async/clock';
import { openLog } from '#telemetry/log';
import type { WorkerHandle } from './worker-handle.ts';
import { openWorkerPool, type WorkerPool } from './worker-pool.ts';

let folder: string;
let pool: WorkerPool | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-workers-'));
});
afterEach(async () => {
  await pool?.close(async () => {}, 0);
  await rm(folder, { recursive: true });
});

/** Opens a pool of one worker that runs this program. */
async function poolOf(
  text: string,
  starting: (worker: WorkerHandle) => Promise<unknown> = ({ channel }) => channel.ask('figures'),
  clock: Clock = systemClock,
) {
  const program = join(folder, 'program.mjs');
  await writeFile(program, text);
  const startFailure = Promise.withResolvers<unknown>();
  const ended: string[] = [];
  const startedAt: number[] = [];
  pool = openWorkerPool({
    count: 1,
    program,
    answersFor: () => ({}),
    async start(worker) {
      startedAt.push(performance.now());
      await starting(worker);
    },
    onEnd: (name) => void ended.push(name),
    onStartFailure: startFailure.resolve,
    clock,
    log: openLog('silent'),
  });
  return { startFailure: startFailure.promise, ended, startedAt };
}

const answering = `process.on('message', ({ id, question }) => process.send({ type: 'answer', id, answer: [] }));`;

const until = async (what: () => boolean) => {
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 10));
};

describe('a pool of workers', () => {
  test('gives up when no worker can start: after five tries, each later than the one before', async () => {
    const { startFailure, ended, startedAt } = await poolOf('process.exit(3);');
    expect(await startFailure).toMatchObject({ message: 'Workers end as soon as they start (exit 3).' });
    expect(ended).toHaveLength(5);
    expect(startedAt[4]! - startedAt[3]!).toBeGreaterThan(400);
    expect(startedAt[3]! - startedAt[2]!).toBeGreaterThan(200);
    await until(() => pool!.all.length === 0);
    expect(pool!.serving).toEqual([]);
  });

  test('gives up as well where each worker takes long to find that it cannot start', async () => {
    let late = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + late };
    const slowly = async () => {
      late += 60_000;
      throw new Error('The database took too long.');
    };
    const { startFailure, ended } = await poolOf(`${answering} setInterval(() => {}, 1000);`, slowly, clock);
    expect(await startFailure).toMatchObject({ message: 'The database took too long.' });
    expect(ended).toHaveLength(5);
  });

  test('replaces a worker that dies with the standby, which has another name', async () => {
    const { ended } = await poolOf(`${answering} setInterval(() => {}, 1000); process.on('message', ({ name }) => name === 'drain' && process.exit(1));`);
    await until(() => pool!.serving.length === 1);
    const [first] = pool!.serving;
    first!.channel.tell('drain', 0);
    await until(() => ended.length === 1);
    await until(() => pool!.serving.length === 1);
    expect(pool!.serving[0]!.name).not.toBe(first!.name);
    expect(pool!.all).toHaveLength(1);
  });

  test('replaces a worker that does not respond any more, and not one that does', async () => {
    const quick = { ...systemClock, after: (milliseconds: number, work: () => void) => systemClock.after(milliseconds / 100, work) };
    const silentOnce = `let asked = 0; process.on('message', ({ id, name }) => name === 'responds' && ++asked > 3 ? undefined : process.send({ type: 'answer', id, answer: [] }));`;
    const { ended } = await poolOf(`${silentOnce} setInterval(() => {}, 1000);`, ({ channel }) => channel.ask('figures'), quick);
    await until(() => pool!.serving.length === 1);
    const { name } = pool!.serving[0]!;
    await until(() => ended.length === 1);
    expect(ended).toEqual([name]);
    await until(() => pool!.serving.length === 1);
    expect(pool!.serving[0]!.name).not.toBe(name);
  });

  test('kills a worker that does not end in time when the pool is closed', async () => {
    await poolOf(`${answering} setInterval(() => {}, 1000); process.on('SIGTERM', () => {});`);
    await until(() => pool!.serving.length === 1);
    await pool!.close(() => new Promise(() => {}), 0.1);
    expect(pool!.all).toEqual([]);
    pool = undefined;
  });
});

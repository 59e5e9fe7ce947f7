import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { openLog } from '#telemetry/log';
import { keepWorkers, type Workers } from './worker-pool.ts';

let folder: string;
let workers: Workers | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dragoman-workers-'));
});
afterEach(async () => {
  await workers?.close(async () => {}, 0);
  await rm(folder, { recursive: true });
});

/** Keeps one worker that runs this program. */
async function keep(text: string) {
  const program = join(folder, 'program.mjs');
  await writeFile(program, text);
  const hopeless = Promise.withResolvers<unknown>();
  const ended: string[] = [];
  const restarted: number[] = [];
  workers = keepWorkers({
    count: 1,
    program,
    answers: () => ({}),
    async makeReady({ channel }) {
      restarted.push(performance.now());
      await channel.ask('figures');
    },
    ended: (name) => void ended.push(name),
    onStartFailure: hopeless.resolve,
    clock: systemClock,
    log: openLog('silent'),
  });
  return { hopeless: hopeless.promise, ended, restarted };
}

const answering = `process.on('message', ({ id, question }) => process.send({ type: 'answer', id, answer: [] }));`;

const until = async (what: () => boolean) => {
  while (!what()) await new Promise((resolve) => setTimeout(resolve, 10));
};

describe('workers that are kept', () => {
  test('when none can start there is no hope after five tries, each later than the one before, and none is started any more', async () => {
    const { hopeless, ended, restarted } = await keep('process.exit(3);');
    expect(await hopeless).toMatchObject({ message: 'Workers end at once (exit 3).' });
    expect(ended).toHaveLength(5);
    expect(restarted[4]! - restarted[3]!).toBeGreaterThan(400);
    expect(restarted[3]! - restarted[2]!).toBeGreaterThan(200);
    await until(() => workers!.all.length === 0);
    expect(workers!.serving).toEqual([]);
  });

  test('one that dies is replaced by one that was made ready before, under another name', async () => {
    const { ended } = await keep(`${answering} setInterval(() => {}, 1000); process.on('message', ({ name }) => name === 'drain' && process.exit(1));`);
    await until(() => workers!.serving.length === 1);
    const [first] = workers!.serving;
    first!.channel.tell('drain', 0);
    await until(() => ended.length === 1);
    await until(() => workers!.serving.length === 1);
    expect(workers!.serving[0]!.name).not.toBe(first!.name);
    expect(workers!.all).toHaveLength(1);
  });

  test('one that is closed and does not end in time is killed', async () => {
    await keep(`${answering} setInterval(() => {}, 1000); process.on('SIGTERM', () => {});`);
    await until(() => workers!.serving.length === 1);
    await workers!.close(() => new Promise(() => {}), 0.1);
    expect(workers!.all).toEqual([]);
    workers = undefined;
  });
});

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../async/clock.ts';
import { openScripts, ScriptFailed } from './scripts.ts';
import { slowness } from '../../../test/support/cpu-time.ts';

const scripts = openScripts(systemClock);
afterAll(() => scripts.close());

let owners = 0;
const run = (code: string, calls: Parameters<typeof scripts.run>[0]['calls'] = {}, { run: ran } = scripts) =>
  ran({ code: `export default ${code}`, given: { values: {} }, calls, owner: String(++owners), signal: new AbortController().signal });

test('a script begins within 30 ms where a thread is ready, and an endless one ends within 200 ms of its limit', { timeout: 120_000 }, async () => {
  const starts: number[] = [];
  for (let at = 0; at < 60 && !starts.some((took) => took < 30); at++) {
    await new Promise((resolve) => setTimeout(resolve, 500)); // the next thread gets ready; the machine may be busy with other things, for which it makes way
    const began = performance.now();
    expect(await run('() => "done"')).toBe('done');
    starts.push(performance.now() - began);
  }
  expect(Math.min(...starts)).toBeLessThan(30 * slowness());
  const ends: number[] = [];
  for (let at = 0; at < 6 && !ends.some((took) => took < 5200); at++) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    const began = performance.now();
    await expect(run('() => { for (;;); }')).rejects.toThrow('5 seconds');
    ends.push(performance.now() - began);
  }
  expect(Math.min(...ends)).toBeLessThan(5200);
  expect(Math.min(...ends)).toBeGreaterThan(4900);
});

test('a thread that dies before it has a script ends none', async () => {
  const made = vi.spyOn(Worker.prototype, 'unref');
  onTestFinished(() => made.mockRestore());
  const others = openScripts(systemClock);
  onTestFinished(() => others.close());
  expect(await run('() => "first"', {}, others)).toBe('first');
  await (made.mock.contexts.at(-1) as Worker).terminate();
  expect(await run('() => "second"', {}, others)).toBe('second');
});

/** Told by a process of its own: which priorities its threads have while a script runs, and while one does that has a low priority itself. */
const priorities = `
  import { readdirSync, readFileSync } from 'node:fs';
  import { setPriority } from 'node:os';
  import { openScripts } from '${new URL('./scripts.ts', import.meta.url).href}';
  import { systemClock } from '${new URL('../async/clock.ts', import.meta.url).href}';
  const nice = (thread) => Number(readFileSync('/proc/self/task/' + thread + '/stat', 'utf8').split(') ').at(-1).split(' ')[16]);
  const look = async () => [...new Set(readdirSync('/proc/self/task').map(nice))].toSorted();
  const seen = async () => {
    const scripts = openScripts(systemClock);
    try {
      return await scripts.run({ code: 'export default ({ look }) => look()', given: {}, calls: { look }, owner: '1', signal: new AbortController().signal });
    } finally {
      await scripts.close();
    }
  };
  setPriority(0, 3);
  const first = await seen();
  setPriority(0, 15);
  console.log(JSON.stringify([first, await seen()]));
`;

test.skipIf(process.platform !== 'linux')('scripts have a lower priority than the rest, also where the process has a low one', async () => {
  const args = ['--conditions=dragoman-source', '--eval', priorities];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const [usual, low] = (JSON.parse(stdout) as string[]).map((list) => JSON.parse(list) as number[]);
  expect(usual).toEqual(expect.arrayContaining([3, 13]));
  expect(low).toEqual(expect.arrayContaining([15, 19]));
});

test.concurrent.each([
  ['a pattern that backtracks', '() => /^(a+)+$/.test("a".repeat(40) + "b")', '5 seconds'],
  ['work that is left behind', '() => { (async () => { for (;;) await null; })(); return new Promise(() => {}); }', '5 seconds'],
  ['ten gigabytes', '() => new ArrayBuffer(10 * 2 ** 30)', 'length'],
  [
    'a species that grows',
    '() => { class A extends Array { static get [Symbol.species]() { return class { constructor() { return new Array(2 ** 26).fill(1); } }; } } return A.from([1]).map(String); }',
    'memory',
  ],
  ['an answer that holds itself', '() => { const a = {}; a.a = a; return a; }', 'circular'],
  ['an answer that JSON has no word for', 'async () => ({ n: 10n })', 'BigInt'],
  ['a proxy that never ends', '() => JSON.stringify(new Proxy([], { get: (_, name) => name === "length" ? 2 ** 31 : 1 }))', ''],
])('%s ends with a stated reason', { timeout: 120_000 }, async (_, code, reason) => {
  const began = performance.now();
  await expect(run(code)).rejects.toThrow(reason);
  expect(performance.now() - began).toBeLessThan(20_000);
});

test.concurrent('the time that a script waits for calls is not its own', { timeout: 120_000 }, async () => {
  const slow = (args: readonly unknown[]) => new Promise((resolve) => setTimeout(() => resolve(args[0]), 2700));
  expect(await run('async ({ slow }) => await slow("a") + await slow("b")', { slow })).toBe('ab');
});

test.concurrent('a script that works on one of two answers that come together uses up its 5 seconds', { timeout: 120_000 }, async () => {
  const began = performance.now();
  const code = 'async ({ call }) => { const a = call(1), b = call(2); await a; await b; for (;;); }';
  await expect(run(code, { call: () => Promise.resolve(1) })).rejects.toThrow('5 seconds');
  expect(performance.now() - began).toBeLessThan(20_000);
});

test.each([
  ['timers', 'typeof setTimeout + typeof setInterval + typeof setImmediate', 'undefinedundefinedundefined'],
  ['threads and shared memory', 'typeof Worker + typeof Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0)', ''],
  ['files, sockets and other programs', 'typeof std + typeof os + typeof fetch + typeof XMLHttpRequest', 'undefinedundefinedundefinedundefined'],
])('there are no %s', async (_, code, found) => {
  expect(await run(`() => { try { return ${code}; } catch { return ''; } }`)).toBe(found);
});

test.each([
  'Array.prototype.toJSON = () => null',
  'Array.prototype.toJSON = () => undefined',
  'Array.prototype.toJSON = () => ({})',
  'Object.prototype.toJSON = () => 7',
])('%s makes a call fail, for the script alone', async (change) => {
  const call = (args: readonly unknown[]) => Promise.resolve(args.length);
  await expect(run(`async ({ call }) => { ${change}; return await call(1); }`, { call })).rejects.toThrow(ScriptFailed);
  expect(await run(`async ({ call }) => { ${change}; try { await call(1); } catch { return 'caught'; } }`, { call })).toBe('caught');
});

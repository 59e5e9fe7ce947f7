import { afterAll, expect, test } from 'vitest';
import { systemClock } from '../async/clock.ts';
import { openScripts, ScriptFailed } from './scripts.ts';

const scripts = openScripts(systemClock);
afterAll(() => scripts.close());

const run = (code: string, calls: Parameters<typeof scripts.run>[0]['calls'] = {}) =>
  scripts.run({ code: `export default ${code}`, given: { values: {} }, calls, owner: '1', signal: new AbortController().signal });

test('the time that a script waits for calls is not its own', { timeout: 30_000 }, async () => {
  const slow = (args: readonly unknown[]) => new Promise((resolve) => setTimeout(() => resolve(args[0]), 2700));
  expect(await run('async ({ slow }) => await slow("a") + await slow("b")', { slow })).toBe('ab');
});

test('a script that works on one of two answers that come together uses up its 5 seconds', { timeout: 30_000 }, async () => {
  const began = performance.now();
  const code = 'async ({ call }) => { const a = call(1), b = call(2); await a; await b; for (;;); }';
  await expect(run(code, { call: () => Promise.resolve(1) })).rejects.toThrow('5 seconds');
  expect(performance.now() - began).toBeLessThan(20_000);
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

import { createHook } from 'node:async_hooks';
import { expect, test } from 'vitest';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { collectGarbageOfStart, keepTickShape } from './collected.ts';

const garbage = () => new WeakRef({ large: Buffer.alloc(1000) });
const isThere = (one: WeakRef<object>): boolean => one.deref() !== undefined;

test('the garbage of the start is collected where nobody waits for an answer, and the process goes on', async () => {
  const clock = testClock();
  collectGarbageOfStart(clock, () => true);
  const left = garbage();
  clock.advance(2999);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(isThere(left)).toBe(true);
  clock.advance(1);
  await expect.poll(() => isThere(left), { timeout: 30_000 }).toBe(false);
});

test('a process that is busy from the start is left alone', () => {
  const clock = testClock();
  let asked = 0;
  collectGarbageOfStart(clock, () => (asked++, false));
  for (let seconds = 0; seconds < 60; seconds++) clock.advance(1000);
  expect(asked).toBe(1);
});

test('the kept object begins as the ticks of this Node do', async () => {
  let tick: object | undefined;
  const hook = createHook({ init: (_id, type, _trigger, resource) => type === 'TickObject' && (tick ??= resource) }).enable();
  await new Promise<void>((resolve) => process.nextTick(resolve));
  hook.disable();
  const kept = Object.getOwnPropertySymbols(keepTickShape()!);
  expect(kept).toHaveLength(2);
  expect(Object.getOwnPropertySymbols(tick!).slice(0, 2)).toEqual(kept);
});

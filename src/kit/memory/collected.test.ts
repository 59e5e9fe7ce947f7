import { expect, test } from 'vitest';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { collectGarbageOfStart } from './collected.ts';

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

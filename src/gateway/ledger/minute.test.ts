import fc from 'fast-check';
import { expect, test } from 'vitest';
import { testClock } from '../../../test/fakes/clock.ts';
import { Minute } from './minute.ts';

test('no 60 seconds hold more requests than the plan allows, and none that fits is refused', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 40 }), (limit, pauses) => {
      const clock = testClock();
      const minute = new Minute(clock);
      const allowed: number[] = [];
      for (const pause of pauses) {
        clock.advance(pause);
        const recent = allowed.filter((at) => at > clock.monotonic() - 60_000).length;
        const { wait } = minute.take(limit);
        expect(wait === 0).toBe(recent < limit);
        if (wait === 0) allowed.push(clock.monotonic());
      }
    }),
  );
});

test('a refused request says how many seconds to wait, and is right', () => {
  const clock = testClock();
  const minute = new Minute(clock);
  minute.take(1);
  clock.advance(20_500);
  const { wait, allowance } = minute.take(1);
  expect(wait).toBe(40);
  expect(allowance).toEqual({ limit: 1, remaining: 0, reset: 40 });
  clock.advance(wait * 1000);
  expect(minute.take(1).wait).toBe(0);
});

test('a limit of nothing allows nothing', () => {
  expect(new Minute(testClock()).take(0).wait).toBeGreaterThan(0);
});

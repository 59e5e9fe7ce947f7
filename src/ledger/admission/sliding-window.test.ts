import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SlidingWindow } from './sliding-window.ts';

test('no 60 seconds hold more requests than are counted', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 30_000 }), { maxLength: 40 }), (pauses) => {
      const minute = new SlidingWindow();
      const times: number[] = [];
      let now = 0;
      for (const pause of pauses) {
        now += pause;
        expect(minute.used(now)).toBe(times.filter((at) => at > now - 60_000).length);
        minute.add(now);
        times.push(now);
      }
    }),
  );
});

test('the seconds to wait are right', () => {
  const minute = new SlidingWindow();
  minute.add(0);
  expect(minute.wait(1, 20_500)).toBe(40);
  expect(minute.used(59_999)).toBe(1);
  expect(minute.used(60_500)).toBe(0);
  expect(new SlidingWindow().wait(0, 0)).toBe(60);
  const drifting = new SlidingWindow();
  drifting.add(0.1 + 0.2);
  expect(drifting.wait(1, 0.3)).toBe(60);
});

test('what is told is told once, with ages that are never too great', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 0, max: 200 }), fc.boolean()), { maxLength: 60 }), (steps) => {
      const minute = new SlidingWindow();
      const times: number[] = [];
      let now = 0;
      for (const [pause, tells] of steps) {
        now += pause;
        minute.add(now);
        times.push(now);
        if (!tells) continue;
        const told = minute.unreported(now).flatMap(({ count, ageSeconds }) => Array.from({ length: count }, () => now - ageSeconds * 1000));
        expect(told).toHaveLength(times.length);
        for (const [place, at] of told.entries()) expect(at - times[place]!).toBeGreaterThanOrEqual(-1e-6);
        minute.acknowledge(minute.unreportedCount);
        times.length = 0;
      }
    }),
  );
});

test('a long queue is cut, and still right', () => {
  const minute = new SlidingWindow();
  for (let now = 0; now < 200_000; now += 10) {
    minute.add(now);
    if (now % 1000 === 0) minute.acknowledge(minute.unreportedCount);
    minute.used(now);
  }
  expect(minute.used(199_990)).toBe(6000);
  expect(minute.unreported(199_990).reduce((sum, { count }) => sum + count, 0)).toBe(minute.unreportedCount);
});

import { expect, test } from 'vitest';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { throttled } from './throttled.ts';

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('work that many ask for is done once for all of them, not again before its time, and never for a question that came after it began', async () => {
  const clock = testClock();
  let runs = 0;
  const running: PromiseWithResolvers<number>[] = [];
  const ask = throttled(clock, 100, () => {
    runs++;
    running.push(Promise.withResolvers());
    return running.at(-1)!.promise;
  });
  const first = [ask(), ask()];
  await settled();
  const second = [ask(), ask()]; // the first run has begun
  await settled();
  expect(runs).toBe(1);
  running[0]!.resolve(1);
  expect(await Promise.all(first)).toEqual([1, 1]);
  await settled();
  expect(runs).toBe(1);
  clock.advance(100);
  await settled();
  expect(runs).toBe(2);
  running[1]!.reject(new Error('It failed.'));
  expect(await Promise.allSettled(second)).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
  clock.advance(100);
  const third = ask();
  await settled();
  running[2]!.resolve(3);
  expect(await third).toBe(3);
});

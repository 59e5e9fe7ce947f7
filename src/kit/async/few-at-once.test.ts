import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { fewAtOnce } from './few-at-once.ts';

test('no more than so many run at a time, and the results are in the order of the items', async () => {
  let running = 0;
  let most = 0;
  const results = await fewAtOnce([5, 1, 4, 2, 3], 2, async (turns) => {
    most = Math.max(most, ++running);
    for (let at = 0; at < turns; at++) await turn();
    running--;
    return turns * 10;
  });
  expect([results, most]).toEqual([[50, 10, 40, 20, 30], 2]);
  expect(await fewAtOnce([], 2, () => Promise.reject(new Error('never')))).toEqual([]);
});

test('after a failure no further work is begun', async () => {
  const begun: number[] = [];
  const failing = fewAtOnce([1, 2, 3, 4, 5], 2, async (item) => {
    begun.push(item);
    await turn();
    if (item === 2) throw new Error('failed');
    await turn();
    await turn();
  });
  await expect(failing).rejects.toThrow('failed');
  await turn();
  await turn();
  expect(begun).toEqual([1, 2]);
});

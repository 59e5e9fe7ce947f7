import { expect, test } from 'vitest';
import { busyCores, embeddingThreads } from './cores.ts';

const gigabyte = 2 ** 30;

test.each([
  [2, 24, 1, 1],
  [8, 24, 1, 7],
  [64, 1, 1, 1],
  [64, 8, 1, 8],
  [64, 512, 1, 63],
  [64, 8, 4, 2],
  [64, 8, 32, 1],
  [1, 0.25, 1, 1],
])('on %i cores with %d GB of memory each of %i processes has %i threads of the embedding model', (cores, memory, workers, threads) => {
  const machine = { cores, memory: memory * gigabyte };
  expect(embeddingThreads({ workers }, machine)).toBe(threads);
  expect(embeddingThreads({ workers }, machine)).toBeLessThanOrEqual(busyCores({ workers }, machine));
});

test('this machine has at least one', () => {
  expect(embeddingThreads({ workers: 1 })).toBeGreaterThanOrEqual(1);
  expect(busyCores({ workers: 1 })).toBeGreaterThanOrEqual(1);
});

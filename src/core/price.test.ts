import { expect, test } from 'vitest';
import { costOf, costOfCounts, dearestOf, mostOf, tokensOfCounts } from './price.ts';

const price = { input: 2, output: 10, cached: 0.2, long: { above: 1000, input: 4, output: 15, cached: 0.4 } };

test('what the provider had read before costs less, and a long prompt makes all of the call dearer', () => {
  expect(costOf(price, { input: 1000, output: 100 }) * 1e6).toBeCloseTo(3000);
  expect(costOf(price, { input: 1000, output: 100, cached: 500 }) * 1e6).toBeCloseTo(500 * 2 + 500 * 0.2 + 1000);
  expect(costOf(price, { input: 1001, output: 100, cached: 1 }) * 1e6).toBeCloseTo(1000 * 4 + 0.4 + 1500);
});

test('without a price of its own it costs as the rest, and more than the prompt was not cached', () => {
  expect(costOf({ input: 2, output: 0 }, { input: 10, output: 5, cached: 5 }) * 1e6).toBeCloseTo(20);
  expect(costOf(price, { input: 10, output: 0, cached: 1000 }) * 1e6).toBeCloseTo(2);
});

test('what is written into the cache costs more: for minutes, and for an hour, which is as for minutes where nothing is said of it', () => {
  const writing = { input: 2, output: 10, cached: 0.2, cacheWrite: 2.5, cacheWrite1h: 4 };
  expect(costOf(writing, { input: 1000, output: 0, cached: 100, cacheWrite: 200, cacheWrite1h: 300 }) * 1e6).toBeCloseTo(400 * 2 + 20 + 500 + 1200);
  expect(costOf({ input: 2, output: 0, cacheWrite: 2.5 }, { input: 10, output: 0, cacheWrite1h: 10 }) * 1e6).toBeCloseTo(25);
  expect(costOf({ input: 2, output: 0 }, { input: 10, output: 0, cacheWrite: 5, cacheWrite1h: 5 }) * 1e6).toBeCloseTo(20);
  expect(costOf(writing, { input: 10, output: 0, cacheWrite1h: 1000 }) * 1e6).toBeCloseTo(40);
  expect(mostOf(writing, 100, 10) * 1e6).toBeCloseTo(100 * 4 + 100);
  expect(mostOf({ input: 2, output: 10, cacheWrite: 2.5 }, 100, 10) * 1e6).toBeCloseTo(350);
});

test('pictures, seconds and characters cost by their own rates, or by the tokens that stand for them', () => {
  const rates = { input: 1, output: 10, picture: 0.04, second: 0.0001, character: 0.00001 };
  expect(costOfCounts(rates, { pictures: 10 })).toBeCloseTo(0.4);
  expect(costOfCounts(rates, { heardSeconds: 60 })).toBeCloseTo(0.006);
  expect(costOfCounts(rates, { characters: 100, spokenSeconds: 10 })).toBeCloseTo(0.002);
  expect(costOfCounts({ input: 1, output: 10 }, { pictures: 10 })).toBeCloseTo(0.1);
  expect(tokensOfCounts({ pictures: 10, heardSeconds: 3, spokenSeconds: 1.5 })).toEqual({ input: 60, output: 10_030 });
});

test('the dearest of several prices is below none of them, in long prompts too', () => {
  const other = { input: 3, output: 5, cacheWrite: 6, picture: 1 };
  const dearest = dearestOf([price, other]);
  expect(dearest).toEqual({
    input: 3,
    output: 10,
    cached: 3,
    cacheWrite: 6,
    picture: 1,
    long: { above: 1000, input: 4, output: 15, cached: 3, cacheWrite: 6 },
  });
  for (const spent of [
    { input: 10, output: 10 },
    { input: 2000, output: 1, cached: 2000 },
    { input: 900, output: 0, cacheWrite: 900 },
  ])
    for (const one of [price, other]) expect(costOf(dearest, spent)).toBeGreaterThanOrEqual(costOf(one, spent));
});

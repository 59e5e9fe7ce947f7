import { expect, test } from 'vitest';
import { costOf } from './price.ts';

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

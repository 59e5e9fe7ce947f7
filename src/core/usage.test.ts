import { expect, test } from 'vitest';
import type { Usage } from './event.ts';
import { sumOf } from './usage.ts';

test('a sum of usages has every field that one of them has, and is as sure as the less sure of them', () => {
  const a: Usage = { input: 10, output: 5, cached: 4, cacheWrite: 1, source: 'estimated' };
  const b: Usage = { input: 3, output: 2, cached: 1, cacheWrite1h: 2, thought: 1, source: 'provider', extra: { wire: { odd: 1 } } };
  const sum = { input: 13, output: 7, cached: 5, cacheWrite: 1, cacheWrite1h: 2, thought: 1, source: 'estimated' };
  expect(sumOf(a, b)).toEqual({ ...sum, extra: { wire: { odd: 1 } } });
  expect(sumOf(b, a)).toEqual(sum);
});

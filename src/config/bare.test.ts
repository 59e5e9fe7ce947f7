import { expect, test } from 'vitest';
import { bareThroughout } from './bare.ts';

test('a copy from another process finds no names but its own, however deep', () => {
  const copy = bareThroughout(structuredClone({ plans: { free: { limits: [{ a: 1 }] } }, none: null, text: 'x', few: undefined }));
  expect(copy.plans).not.toHaveProperty('constructor');
  expect(copy.plans.free.limits[0]).not.toHaveProperty('toString');
  expect({ ...copy, plans: { free: { limits: [{ ...copy.plans.free.limits[0] }] } } }).toEqual({
    plans: { free: { limits: [{ a: 1 }] } },
    none: null,
    text: 'x',
  });
});

import { expect, test } from 'vitest';
import { DistinctIds } from './distinct-ids.ts';

test('an id that comes again has a number, and no other call has the same', () => {
  const ids = new DistinctIds();
  expect(['x', 'x_3', 'x', 'y', 'x', 'x', 'x_2'].map((id) => ids.take(id))).toEqual(['x', 'x_3', 'x_2', 'y', 'x_4', 'x_5', 'x_2_2']);
});

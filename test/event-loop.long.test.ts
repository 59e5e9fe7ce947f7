import { expect, test } from 'vitest';
import { attacks, unbearable } from './attacks.ts';

test('200 hostile schemas, answers and bodies hold the event loop for 50 ms at most, and no more than 512 MB', async () => {
  expect(attacks.length).toBeGreaterThan(200);
  expect(await unbearable(attacks)).toEqual([]);
});

import { expect, test } from 'vitest';
import { attacks } from './attacks.ts';
import { underAttack } from './under-attack.ts';

test('200 hostile schemas, answers and bodies hold the event loop for 50 ms at most, and no more than 512 MB', async () => {
  expect(attacks.length).toBeGreaterThan(500);
  const { unbearable, figures } = await underAttack(attacks);
  console.log(figures);
  expect(unbearable).toEqual([]);
});

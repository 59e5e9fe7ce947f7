import { expect, test } from 'vitest';
import { attacks, unbearable } from './attacks.ts';

const named = (...names: readonly string[]) => attacks.filter(({ name }) => names.some((one) => name.startsWith(one)));

test('a schema or an answer that is made to keep the server busy holds its event loop for 50 ms at most', { timeout: 300_000 }, async () => {
  const some = named('a pattern of 2,000 states', 'a chain that forks,', 'patterns of names,', 'choices beside many keywords', 'a code fence and');
  expect(some.length).toBeGreaterThan(10);
  expect(await unbearable(some)).toEqual([]);
});

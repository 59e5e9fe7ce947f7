import { expect, test } from 'vitest';
import { run } from './run.ts';
import { proves } from '../support/proves.ts';

test(proves('X-01', 'a seed is the same life each time, to the last point and row'), { timeout: 120_000 }, async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const { trace, problems, points } = await run(seed);
    expect(await run(seed)).toMatchObject({ trace, problems, points });
  }
});

/** Every this many points of each quiet life; one more would be another process's turn as often as not. */
const apart = 7;

test.each([1, 4, 6, 8, 9, 12])(
  proves('X-01', 'a process may die at any of its writes and waits, and the books are right, seed %i'),
  { timeout: 120_000 },
  async (seed) => {
    const { points } = await run(seed, { dieAt: 0 });
    expect(points).toBeGreaterThan(150);
    for (let dieAt = 1 + (seed % apart); dieAt <= points; dieAt += apart)
      expect({ dieAt, problems: (await run(seed, { dieAt })).problems }).toEqual({ dieAt, problems: [] });
  },
);

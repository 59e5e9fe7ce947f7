import { expect, test } from 'vitest';
import { grouped, judged } from './judged-calls.ts';

const seed = Number(process.env['SEED'] ?? 0);

test.each([
  ['at their own addresses', true, 200],
  ['at addresses that nobody knows', false, 100],
])('no call is refused by a vendor whose own clients would not be refused, %s', { timeout: 240_000 }, async (_, known, count) => {
  const seeds = seed > 0 ? [seed] : Array.from({ length: count }, (_one, at) => at + 1);
  const { wrong } = await judged(seeds, known);
  if (wrong.length > 0) expect.fail(`SEED=n repeats one:\n${grouped(wrong)}`);
});

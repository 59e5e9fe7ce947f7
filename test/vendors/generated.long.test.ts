import { expect, test } from 'vitest';
import { grouped, judged } from './judged-calls.ts';

test.each([
  ['at their own addresses', true, 10_000],
  ['at addresses that nobody knows', false, 3_000],
])('no call is refused by a vendor whose own clients would not be refused, %s', async (_, known, count) => {
  const { wrong } = await judged(
    Array.from({ length: count }, (_one, at) => at + 1000),
    known,
  );
  if (wrong.length > 0) expect.fail(`SEED=n npm test -- test/vendors/generated repeats one:\n${grouped(wrong)}`);
});

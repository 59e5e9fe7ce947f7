/* What is remembered of providers has a bound, whatever names clients and providers choose. */
import { expect, test } from 'vitest';
import { testClock } from '../../test/support/fakes/clock.ts';
import { knownQuirks } from './shared/known-quirks.ts';

test('what was learned of models is kept for a thousand names, and for none that is very long', () => {
  const odd = { odd: true };
  const quirks = knownQuirks<object>(testClock());
  for (let at = 0; at <= 1000; at++) quirks.keep(`model ${at}`, odd, []);
  quirks.keep('x'.repeat(10_000), odd, []);
  expect([quirks.of('model 0'), quirks.of('model 1'), quirks.of('model 1000'), quirks.of('x'.repeat(10_000))]).toEqual([undefined, odd, odd, undefined]);
});

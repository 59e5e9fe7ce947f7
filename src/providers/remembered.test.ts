/* What is remembered of providers has a bound, whatever names clients and providers choose. */
import { expect, test } from 'vitest';
import type { GenerateEvent } from '#core/event';
import { testClock } from '../../test/support/fakes/clock.ts';
import { knownQuirks } from './shared/known-quirks.ts';
import { openSignatures } from './google/signatures.ts';

const signed = (id: string, thoughtSignature: string) => [{ type: 'tool-call', id, extra: { gemini: { thoughtSignature } } } as unknown as GenerateEvent];

test('signatures are forgotten, the oldest first, also when only the ids of their calls are large or they are many and small', () => {
  const long = openSignatures('gemini');
  const idOf = (at: number) => `${at} ${'x'.repeat(500_000)}`;
  for (let at = 0; at < 40; at++) long.note(signed(idOf(at), 's'));
  expect([long.of(idOf(0)), long.of(idOf(39))]).toEqual([undefined, 's']);
  const many = openSignatures('gemini');
  for (let at = 0; at < 100_000; at++) many.note(signed(String(at), ''));
  expect([many.of('0'), many.of('99999')]).toEqual([undefined, '']);
});

test('what was learned of models is kept for a thousand names, and for none that is very long', () => {
  const odd = { odd: true };
  const quirks = knownQuirks<object>(testClock());
  for (let at = 0; at <= 1000; at++) quirks.keep(`model ${at}`, odd, []);
  quirks.keep('x'.repeat(10_000), odd, []);
  expect([quirks.of('model 0'), quirks.of('model 1'), quirks.of('model 1000'), quirks.of('x'.repeat(10_000))]).toEqual([undefined, odd, odd, undefined]);
});

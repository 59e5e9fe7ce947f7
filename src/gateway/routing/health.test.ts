import { expect, test } from 'vitest';
import { Fault } from '#core/fault';
import type { Target } from '#core/target';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { openHealth, type HealthChange } from './health.ts';

test('that a target begins to cool down is told once, however many calls fail, and once that it is back', () => {
  const clock = testClock();
  const told: unknown[] = [];
  const tell = (change: HealthChange) => told.push(change.type === 'cooling' ? [change.target.name, change.seconds, change.fault.code] : change.target.name);
  const health = openHealth(() => ({ cooldownSeconds: 5, cooldownMaxSeconds: 60 }), clock, Math.random, tell);
  const target = { name: 'p/r/m', provider: 'p', model: 'm' } as Target;
  const busy = new Fault('overloaded', 'The provider p is overloaded.', { elsewhere: true });
  const trials = [1, 2, 3].map(() => health.next([target], 1)!);
  for (const trial of trials) health.failed(trial, busy);
  clock.advance(5000);
  health.failed(health.next([target], 1)!, busy);
  expect(told).toEqual([['p/r/m', 5, 'overloaded']]);
  clock.advance(10_000);
  health.succeeded(health.next([target], 1)!, 20);
  health.succeeded(health.next([target], 1)!, 20);
  expect(told).toEqual([['p/r/m', 5, 'overloaded'], 'p/r/m']);
});

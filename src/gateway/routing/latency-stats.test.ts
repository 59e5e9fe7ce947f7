import { expect, test } from 'vitest';
import type { Target } from '#core/target';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { openLatencyStats } from './latency-stats.ts';

const target = (name: string) => ({ name }) as Target;

test('the quickest comes first, behind those of whom nothing was heard for a minute', () => {
  const clock = testClock();
  const latency = openLatencyStats(clock);
  const order = () => latency.sorted(['a', 'b', 'c'].map(target)).map(({ name }) => name);
  expect(order()).toEqual(['a', 'b', 'c']);
  latency.answered('a', 300);
  latency.answered('b', 100);
  expect(order()).toEqual(['c', 'b', 'a']);
  latency.failed('c');
  expect(order()).toEqual(['b', 'a', 'c']);
  clock.advance(61_000);
  latency.answered('b', 100);
  expect(order()).toEqual(['a', 'c', 'b']);
});

test('averages follow what came last, slowly', () => {
  const latency = openLatencyStats(testClock());
  latency.answered('a', 100);
  latency.answered('a', 200);
  latency.failed('a');
  expect(latency.of('a')).toEqual({ latencyMs: 120, successRate: 0.8 });
  expect(latency.of('b')).toEqual({});
});

test('of those that are about as quick as the quickest, each conversation has its own; the slow ones come behind', () => {
  const latency = openLatencyStats(testClock());
  for (const [name, milliseconds] of [
    ['a', 100],
    ['b', 110],
    ['c', 120],
    ['d', 400],
  ] as const)
    latency.answered(name, milliseconds);
  const targets = ['a', 'b', 'c', 'd'].map(target);
  const orders = Array.from({ length: 100 }, (_, affinity) => latency.sorted(targets, affinity).map(({ name }) => name));
  expect(new Set(orders.map(([first]) => first))).toEqual(new Set(['a', 'b', 'c']));
  for (const order of orders) expect(order[3]).toBe('d');
  expect(latency.sorted(targets, 7)).toEqual(latency.sorted(targets, 7));
  expect(latency.sorted(targets).map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd']);
});

test("one user's huge prompts and failures make a target neither slow nor poor for the others", () => {
  const latency = openLatencyStats(testClock());
  const targets = ['a', 'b'].map(target);
  for (let call = 0; call < 20; call++) {
    latency.answered('a', 60_000, 666);
    latency.failed('a', 666);
    for (const name of ['a', 'b']) latency.answered(name, 100, 1);
  }
  expect(latency.of('a')).toEqual({ latencyMs: 100, successRate: 1 });
  expect(latency.outliers(targets).size).toBe(0);
  for (let call = 0; call < 20; call++) for (const userId of [2, 3]) latency.answered('a', 60_000, userId);
  expect([...latency.outliers(targets)]).toEqual(['a']);
});

import { expect, test } from 'vitest';
import type { Target } from '#core/target';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { openSpeeds } from './latency-stats.ts';

const target = (name: string) => ({ name }) as Target;

test('the quickest comes first, behind those of whom nothing was heard for a minute', () => {
  const clock = testClock();
  const speeds = openSpeeds(clock);
  const order = () => speeds.sorted(['a', 'b', 'c'].map(target)).map(({ name }) => name);
  expect(order()).toEqual(['a', 'b', 'c']);
  speeds.answered('a', 300);
  speeds.answered('b', 100);
  expect(order()).toEqual(['c', 'b', 'a']);
  speeds.failed('c');
  expect(order()).toEqual(['b', 'a', 'c']);
  clock.advance(61_000);
  speeds.answered('b', 100);
  expect(order()).toEqual(['a', 'c', 'b']);
});

test('averages follow what came last, slowly', () => {
  const speeds = openSpeeds(testClock());
  speeds.answered('a', 100);
  speeds.answered('a', 200);
  speeds.failed('a');
  expect(speeds.of('a')).toEqual({ latencyMs: 120, successRate: 0.8 });
  expect(speeds.of('b')).toEqual({});
});

test('of those that are about as quick as the quickest, each conversation has its own; the slow ones come behind', () => {
  const speeds = openSpeeds(testClock());
  for (const [name, milliseconds] of [
    ['a', 100],
    ['b', 110],
    ['c', 120],
    ['d', 400],
  ] as const)
    speeds.answered(name, milliseconds);
  const targets = ['a', 'b', 'c', 'd'].map(target);
  const orders = Array.from({ length: 100 }, (_, affinity) => speeds.sorted(targets, affinity).map(({ name }) => name));
  expect(new Set(orders.map(([first]) => first))).toEqual(new Set(['a', 'b', 'c']));
  for (const order of orders) expect(order[3]).toBe('d');
  expect(speeds.sorted(targets, 7)).toEqual(speeds.sorted(targets, 7));
  expect(speeds.sorted(targets).map(({ name }) => name)).toEqual(['a', 'b', 'c', 'd']);
});

test("one user's huge prompts and failures make a target neither slow nor poor for the others", () => {
  const speeds = openSpeeds(testClock());
  const targets = ['a', 'b'].map(target);
  for (let call = 0; call < 20; call++) {
    speeds.answered('a', 60_000, 666);
    speeds.failed('a', 666);
    for (const name of ['a', 'b']) speeds.answered(name, 100, 1);
  }
  expect(speeds.of('a')).toEqual({ latencyMs: 100, successRate: 1 });
  expect(speeds.outliers(targets).size).toBe(0);
  for (let call = 0; call < 20; call++) for (const userId of [2, 3]) speeds.answered('a', 60_000, userId);
  expect([...speeds.outliers(targets)]).toEqual(['a']);
});

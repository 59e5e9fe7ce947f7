import { expect, test } from 'vitest';
import type { Target } from '#model/target';
import { testClock } from '../../test/fakes/clock.ts';
import { openSpeeds } from './speeds.ts';

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

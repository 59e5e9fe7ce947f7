import { expect, test } from 'vitest';
import type { Events } from '#core/event';
import { ResponseCache } from './response-cache.ts';

let now = 0;
const clock = { monotonic: () => now };
const answerOf = (text: string): readonly Events[] => [[{ type: 'text', candidate: 0, text }]];

test('what was not asked for longest goes first when there is no room', () => {
  const answers = new ResponseCache(clock, 3000);
  for (const name of ['a', 'b', 'c']) answers.keep(name, answerOf('x'.repeat(250)), 60);
  expect(answers.find('a', 60)).toEqual(answerOf('x'.repeat(250)));
  answers.keep('d', answerOf('x'.repeat(250)), 60);
  expect(['a', 'b', 'c', 'd'].filter((name) => answers.find(name, 60))).toEqual(['a', 'c', 'd']);
  expect(answers.bytes).toBeLessThanOrEqual(3000);
});

test('the room that an answer took is free again when it is replaced or too old', () => {
  const answers = new ResponseCache(clock, 100_000);
  answers.keep('a', answerOf('x'), 1);
  const one = answers.bytes;
  answers.keep('a', answerOf('y'), 1);
  expect(answers.bytes).toBe(one);
  now += 1000;
  expect(answers.find('a', 60)).toBeUndefined();
  expect(answers.bytes).toBe(0);
});

test('who wants a younger answer does not get an old one, and others still do', () => {
  const answers = new ResponseCache(clock);
  answers.keep('a', answerOf('x'), 60);
  now += 10_000;
  expect(answers.find('a', 5)).toBeUndefined();
  expect(answers.find('a', 20)).toEqual(answerOf('x'));
});

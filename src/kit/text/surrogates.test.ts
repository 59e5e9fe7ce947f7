import { expect, test } from 'vitest';
import { codePoints, withoutHalf } from './surrogates.ts';

test.each([
  ['', '', 0],
  ['ab', 'ab', 2],
  ['a🐉', 'a🐉', 2],
  ['a\ud83d', 'a', 2],
  ['\ud83d', '', 1],
  ['a\udc09', 'a\udc09', 2],
  ['\udc09\ud83d\udc09\ud83d', '\udc09🐉', 3],
])('%j without half a pair at its end is %j, and has %i code points', (text, whole, points) => {
  expect([withoutHalf(text), codePoints(text)]).toEqual([whole, points]);
});

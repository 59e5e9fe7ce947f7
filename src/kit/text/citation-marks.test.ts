import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CitationMarks, citationMarksIn } from './citation-marks.ts';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';

const texts = (text: string) => citationMarksIn(text).map(({ start, end }) => Array.from(text).slice(start, end).join(''));

test.each([
  ['Ada [1] and Bob [2, 3].', ['[1]', '[2, 3]']],
  ['[1][2] at the very end [12,13]', ['[1]', '[2]', '[12,13]']],
  ['😀 [1] 👩‍👩‍👧 [2]', ['[1]', '[2]']],
  ['a link [1](https://a) is none, [1] is', ['[1]']],
  ['code `list[1]` and ``a `[2]` b`` are none, [3] is', ['[3]']],
  ['an open ` tick is no code [1]\nnor is it here [2]', ['[1]', '[2]']],
  ['```js\na[1]\n``` \nb [2]', ['[2]']],
  ['  ~~~\na[1]\n```\nb[2]\n~~~\nc [3]', ['[3]']],
  ['[] [a] [1a] [12345] [1,] [,1] [1;2] [-1]', []],
  ['[ [1] ]', ['[1]']],
  ['[1', []],
])('%j has the marks %j', (text, marks) => {
  expect(texts(text)).toEqual(marks);
});

test('however a text is cut, its marks are the same', () => {
  const text = fc.array(fc.constantFrom('[1]', '[2,3]', '[', ']', '(', '`', '``', '```', '~~~', '\n', ' ', '😀', 'a', '4', ',', '[5](x)'), { maxLength: 40 });
  fc.assert(
    fc.property(
      text.map((pieces) => pieces.join('')),
      fc.array(fc.nat(60), { maxLength: 10 }),
      (whole, cuts) => {
        const marks = new CitationMarks();
        let from = 0;
        for (const cut of [...cuts.toSorted((a, b) => a - b), whole.length]) {
          marks.take(whole.slice(from, Math.max(from, cut)));
          from = Math.max(from, cut);
        }
        expect(marks.end()).toEqual(citationMarksIn(whole));
      },
    ),
    { numRuns: 2000 },
  );
});

test.each(['[', '[1', '[1,', '`', '```', '[1]'])('a text of many %j is read in no time, and has no more than 500 marks', (piece) => {
  let found: readonly unknown[] = [];
  const took = cpuMilliseconds(() => void (found = citationMarksIn(piece.repeat(300_000))));
  expect(found.length).toBeLessThanOrEqual(500);
  expect(took).toBeLessThan(1500);
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { citationMarksIn } from '#kit/text/citation-marks';
import { CitedText, renumbered } from './cited-text.ts';

const through = (pieces: readonly string[], most = 2) => {
  const text = new CitedText((number) => number >= 1 && number <= most);
  const out = pieces.map((piece) => text.take(piece)).join('') + text.end();
  return { out, dropped: text.dropped };
};

describe('a text that cites', () => {
  test.each([
    ['It is so [1].', 'It is so [1].', 0],
    ['It is so [9].', 'It is so .', 1],
    ['It is so [1, 9, 2].', 'It is so [1, 2].', 1],
    ['[0][3][1]', '[1]', 2],
    ['See [9](https://example.com) and [note] and [9x].', 'See [9](https://example.com) and [note] and [9x].', 0],
    ['`list[9]` and\n```\na[9]\n```\n[9]', '`list[9]` and\n```\na[9]\n```\n', 1],
    ['[', '[', 0],
    ['[9', '[9', 0],
    [`[${'1'.repeat(300)}]`, `[${'1'.repeat(300)}]`, 0],
    ['a [\n9]', 'a [\n9]', 0],
  ])('%j becomes %j', (text, out, dropped) => expect(through([text])).toEqual({ out, dropped }));

  test('is the same however it is cut, and cites nothing that there is not', () => {
    const pieces = fc.array(fc.constantFrom('[', ']', '1', '9', ', ', '`', '```', '\n', ' ', 'a', '(', '[1]', '[2, 7]', '𝄞'), { maxLength: 40 });
    fc.assert(
      fc.property(pieces, (all) => {
        const { out } = through(all);
        expect(through([all.join('')]).out).toBe(out);
        expect(through(Array.from(all.join(''))).out).toBe(out);
      }),
    );
    fc.assert(
      fc.property(
        pieces.map((all) => all.filter((one) => !one.includes('`'))),
        (all) => {
          for (const { numbers } of citationMarksIn(through(all).out)) expect(numbers.every((number) => number === 1 || number === 2)).toBe(true);
        },
      ),
    );
  });
});

test('marks are given other numbers, and those without one are taken out', () => {
  const text = '𝄞 one [1], two [2, 3], three [3] `[1]`.';
  expect(renumbered(text, citationMarksIn(text), (number) => ({ 1: 4, 2: 1 })[number])).toBe('𝄞 one [4], two [1], three  `[1]`.');
});

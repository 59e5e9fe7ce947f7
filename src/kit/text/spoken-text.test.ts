import { expect, test } from 'vitest';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';
import { spokenPieces } from './spoken-pieces.ts';
import { spokenText } from './spoken-text.ts';

test.each([
  ['# A heading #1', 'A heading #1'],
  ['**bold**, *slanted*, __both__, _one_ and ~~gone~~', 'bold, slanted, both, one and gone'],
  ['snake_case and 2 * 3 stay as words', 'snake_case and 2  3 stay as words'],
  ['- one\n* two\n3. three\n- [x] four', 'one\ntwo\nthree\nfour'],
  ['> quoted\n> > twice', 'quoted\ntwice'],
  ['see [the page](https://example.org/a?b "title") or ![a heron](x.png)', 'see the page or a heron'],
  ['at https://www.example.org/path?x=1 now', 'at example.org now'],
  ['as it says [1], [2, 3].', 'as it says,.'],
  ['```js\nlet a = 1;\n```', 'let a = 1;'],
  ['| a | b |\n|---|:-:|\n| 1 | 2 |', 'a, b.\n\n1, 2.'],
  ['a <b>bold</b> word, 1 < 2', 'a  bold  word, 1 < 2'],
  ['***\n---\n\\*kept\\*', '*kept*'],
])('%j is spoken as %j', (markdown, spoken) => expect(spokenText(markdown)).toBe(spoken));

test('pieces are the text again, end with sentences where they can, and are never too heavy', () => {
  const text = `One. Two is longer, and has a part behind a comma; and more. ${'word '.repeat(30)}${'x'.repeat(120)}\nLast`;
  const pieces = [...spokenPieces(text, { most: 40 })];
  expect(pieces.join('')).toBe(text);
  expect(pieces.every((piece) => piece.length <= 40)).toBe(true);
  expect(pieces.slice(0, 3)).toEqual(['One. ', 'Two is longer, ', 'and has a part behind a comma; ']);
  expect([...spokenPieces('One. Two. Three. Four.', { most: 12, joined: true })]).toEqual(['One. Two. ', 'Three. Four.']);
});

test.each(['[', '](', '<a', '_', '*', '`', '|', '\\', '> ', '[1', 'http://a', '![a](', '😀'])('100,000 characters of %j take little time', (unit) => {
  const text = unit.repeat(100_000 / unit.length);
  expect(cpuMilliseconds(() => spokenText(text))).toBeLessThan(50);
  expect(cpuMilliseconds(() => [...spokenPieces(text, { most: 240 })])).toBeLessThan(100);
});

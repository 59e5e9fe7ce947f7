import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { matrix, pageOf, placeOf, wrongIn } from './matrix.ts';

const cells = await matrix();

test('no feature is lost without a word, and none is refused that the client asked for in the words of another', () => {
  const wrong = wrongIn(cells);
  expect(wrong.map((cell) => `${cell.outcome}: ${placeOf(cell)}: ${cell.because}`)).toEqual([]);
});

test('docs/matrix.md is what npm run matrix writes', () => {
  expect(readFileSync(new URL('../../docs/matrix.md', import.meta.url), 'utf8')).toBe(pageOf(cells));
});

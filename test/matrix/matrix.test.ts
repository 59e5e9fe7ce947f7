import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Cell } from './cells.ts';
import { matrix, pageOf, placeOf, wrongIn } from './matrix.ts';

const cells = await matrix();
const wrong = (all: readonly Cell[]) => wrongIn(all).map((cell) => `${cell.outcome}: ${placeOf(cell)}: ${cell.because}`);

test('no feature is lost without a word, and none is refused that the client asked for in the words of another', () => {
  expect(wrong(cells)).toEqual([]);
});

test('nor is any at an address that nobody knows, where only refusals tell what a vendor accepts', { timeout: 120_000 }, async () => {
  expect(wrong(await matrix({ known: false }))).toEqual([]);
});

test('what is streamed has the same outcome', { timeout: 120_000 }, async () => {
  const outcomes = (all: readonly Cell[]) => all.map((cell) => `${placeOf(cell)}: ${cell.outcome}`);
  expect(outcomes(await matrix({ stream: true }))).toEqual(outcomes(cells));
});

test('docs/matrix.md is what npm run matrix writes', () => {
  expect(readFileSync(new URL('../../docs/matrix.md', import.meta.url), 'utf8')).toBe(pageOf(cells));
});

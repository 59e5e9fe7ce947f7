import { expect, test } from 'vitest';
import { Grounding } from './grounding.ts';

const cited = (start: number, end: number) => [{ url: 'https://a.example/', title: 'A', start, end }];
const supports = (grounding: Grounding) => grounding.metadata({}).groundingMetadata?.['groundingSupports'];

test('the text that citations quote is kept up to a bound, and what is behind it is counted', () => {
  const room = { left: 10 };
  const grounding = new Grounding(room);
  grounding.text('12345678', undefined);
  grounding.text('äöü', undefined); // there is no room for it
  grounding.text('x', undefined);
  grounding.text('', [...cited(2, 4), ...cited(8, 11)]);
  expect(room.left).toBe(10);
  grounding.text('abc', cited(0, 3));
  expect(supports(grounding)).toEqual([
    { segment: { startIndex: 2, endIndex: 4, text: '34' }, groundingChunkIndices: [0] },
    { segment: { startIndex: 15, endIndex: 18, text: 'abc' }, groundingChunkIndices: [0] },
  ]);
});

test('an answer that nothing cites has no metadata, and its text costs nothing', () => {
  const room = { left: 10 };
  const grounding = new Grounding(room);
  grounding.text('12345678', []);
  grounding.text('12345678', []);
  expect(room.left).toBe(10);
  expect(grounding.metadata({})).toEqual({});
});

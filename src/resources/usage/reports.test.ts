import { expect, test } from 'vitest';
import { Bytes } from '#http/noun-route';
import { itemsOf } from './reports.ts';

test('a short list is a value, and a long one goes out in pieces that are the same JSON', async () => {
  const items = Array.from({ length: 1201 }, (_, at) => ({ model: `"m${at}"`, requests: at, costUsd: null }));
  expect(itemsOf(items.slice(0, 500))).toEqual({ items: items.slice(0, 500) });
  const long = itemsOf(items);
  if (!(long instanceof Bytes)) throw new Error('A long list is sent whole.');
  expect(long.contentType).toBe('application/json; charset=utf-8');
  const pieces = await Array.fromAsync(long.content as AsyncIterable<string>);
  expect(pieces.join('')).toBe(JSON.stringify({ items }));
  expect(pieces).toHaveLength(4);
});

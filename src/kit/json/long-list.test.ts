import { expect, test } from 'vitest';
import fc from 'fast-check';
import { readLongList, writeLongList } from './long-list.ts';
import { BadJson } from './scan.ts';

const bytesOf = (text: string) => Buffer.from(text);
/** Without `__proto__`, which is refused outside the list. */
const members = fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue(), { maxKeys: 4 }).filter((one) => !JSON.stringify(one).includes('__proto__'));

test('an object with a long list is read and written as JSON.parse and JSON.stringify do', async () => {
  await fc.assert(
    fc.asyncProperty(members, fc.array(fc.jsonValue(), { maxLength: 6 }), members, fc.constantFrom(undefined, 1), async (before, list, after, space) => {
      const value = JSON.parse(JSON.stringify({ ...before, data: list, ...after })) as { data: unknown };
      const text = JSON.stringify(value, undefined, space);
      expect(await readLongList(bytesOf(text), 'data')).toEqual(JSON.parse(text));
      if (Array.isArray(value.data)) expect(await writeLongList(value, 'data')).toBe(JSON.stringify(value));
    }),
  );
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test('every cut and every strange character makes it what it is for JSON.parse: an error', async () => {
  const text = '{"a": "data", "data": [{"e": [1.5, -2e3]}, {"e": "\\"]"}], "usage": {"n": 1}}';
  for (let at = 0; at < text.length; at++) await expect(readLongList(bytesOf(text.slice(0, at)), 'data')).rejects.toThrow(BadJson);
  for (let at = 0; at < text.length; at++) {
    for (const odd of [',', ']', '}', '[', '{', '"', 'x', ':']) {
      const other = text.slice(0, at) + odd + text.slice(at + 1);
      const read = readLongList(bytesOf(other), 'data');
      if (isJson(other)) expect(await read).toEqual(JSON.parse(other));
      else await expect(read).rejects.toThrow(BadJson);
    }
  }
});

test.each([
  ['a list that is there twice', '{"data": [1], "data": [2]}'],
  ['nesting without an end', `{"data": [${'['.repeat(3_000_000)}`],
  ['nesting behind the list', `{"data": [1], "x": ${'['.repeat(900_000)}`],
  ['an element of over a megabyte', `{"data": [1, [${'1,'.repeat(600_000)}1]]}`],
  ['a string of over a megabyte', `{"data": ["${'\\"'.repeat(600_000)}"]}`],
  ['a string without an end', `{"data": ["${'x'.repeat(2_000_000)}`],
  ['a rest of over a megabyte', `{"data": [1], "x": "${'x'.repeat(1_100_000)}"}`],
  ['a million elements', `{"data": [${'1,'.repeat(1_000_000)}1]}`],
])('%s is refused', async (_, text) => {
  await expect(readLongList(bytesOf(text), 'data')).rejects.toThrow(BadJson);
});

test('five megabytes of numbers leave the event loop to others', async () => {
  const vector = Array.from({ length: 1536 }, (_, at) => Math.sin(at) / 30);
  const value = { object: 'list', data: Array.from({ length: 256 }, (_, index) => ({ object: 'embedding', index, embedding: vector })) };
  let turns = 0;
  const counting = setInterval(() => turns++, 0);
  const text = await writeLongList(value, 'data');
  expect(await readLongList(bytesOf(text), 'data')).toEqual(value);
  clearInterval(counting);
  expect(turns).toBeGreaterThan(5);
});

test('a hundred thousand short elements leave the event loop to others', async () => {
  const value = { data: Array.from({ length: 99_999 }, () => ({})) };
  let turns = 0;
  const counting = setInterval(() => turns++, 0);
  expect(await readLongList(bytesOf(await writeLongList(value, 'data')), 'data')).toEqual(value);
  clearInterval(counting);
  expect(turns).toBeGreaterThan(5);
});

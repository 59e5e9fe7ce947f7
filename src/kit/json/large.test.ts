import { expect, test } from 'vitest';
import { readJson } from './scan.ts';
import { readLargeJson, writeLargeJson } from './large.ts';

const bytesOf = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

test.each([
  ['pictures among texts', { a: 'x'.repeat(100_000), b: [{ c: `${'é'.repeat(50_000)}\n`, d: ['y'.repeat(20_000), '', 'z', null, 1] }] }],
  ['one long string', JSON.stringify('x'.repeat(200_000))],
  ['long strings with escapes', { a: '\\'.repeat(50_000), b: '"'.repeat(50_000) }],
  ['nothing long', { a: [1, 2, { b: 'c' }] }],
])('large JSON with %s is read as small JSON is', async (_, value) => {
  const bytes = bytesOf(value);
  expect(await readLargeJson(bytes)).toEqual(readJson(bytes));
});

test.each([
  ['a control character in a long string', `{"a":"${'x'.repeat(50_000)}\n"}`, 'The text is not valid JSON.'],
  [
    'more text than any model reads',
    { a: '語'.repeat(3_000_000) },
    /longer than 8388608 bytes, not counting strings of more than 16384 bytes that are ASCII without escapes/,
  ],
  ['half a million escapes', { a: '\n'.repeat(500_001) }, 'The text has more than 500000 escapes.'],
])('large JSON with %s is refused', async (_, value, message) => {
  const isTooLong = message !== 'The text is not valid JSON.';
  await expect(readLargeJson(bytesOf(value))).rejects.toMatchObject({ message: expect.stringMatching(message) as string, isTooLong });
});

test('what is wrong with a text is said of its member', async () => {
  const bytes = bytesOf(`{"model":"x","messages":[${'0,'.repeat(2000)}0]}`);
  await expect(readLargeJson(bytes, { maxTokens: 1000 })).rejects.toMatchObject({
    member: 'messages',
    message: 'The text has more than 1000 values.',
  });
});

test('a large value is written as JSON.stringify writes it', async () => {
  const value = { a: 'x'.repeat(9_000_000), b: [{ c: '😀"\n'.repeat(2_000_000) }, null, 1, 'y'], d: undefined };
  const written = Buffer.from(await writeLargeJson(value)).toString();
  expect(JSON.parse(written)).toEqual(JSON.parse(JSON.stringify(value)));
  expect(Buffer.from(await writeLargeJson([1, { a: 'b' }])).toString()).toBe('[1,{"a":"b"}]');
});

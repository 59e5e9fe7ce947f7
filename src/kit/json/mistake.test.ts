import { expect, test } from 'vitest';
import { mistakeIn } from './mistake.ts';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';

test.each([
  ['{"model": "m", messages: []}', 1, 16, 'a name in double quotes'],
  ['{\n  "a": 1\n  "b": 2\n}', 3, 3, 'a comma or }'],
  ['{"a": 1,}', 1, 9, 'a name in double quotes'],
  ["{'a':1}", 1, 2, 'a name in double quotes or }'],
  ['{"a": \'x\'}', 1, 7, 'a value'],
  ['{"a" 1}', 1, 6, 'a colon'],
  ['{"a": 1', 1, 8, 'a comma or }'],
  ['[1, 2', 1, 6, 'a comma or ]'],
  ['[1,]', 1, 4, 'a value'],
  ['[,]', 1, 2, 'a value or ]'],
  ['[1}', 1, 3, 'a comma or ]'],
  ['{"a": True}', 1, 7, 'a value'],
  ['{"a": nullify}', 1, 7, 'a value'],
  ['{"a": 01}', 1, 7, 'a value'],
  ['{"a": "line\nbreak"}', 1, 7, 'a value'],
  ['{"a": "\\x"}', 1, 7, 'a value'],
  ['{"a": "open}', 1, 7, 'a value'],
  ['{} {}', 1, 4, 'the end'],
  ['}', 1, 1, 'a value'],
  ['', 1, 1, 'a value'],
])('%j is wrong at line %i, column %i, where %s was expected', (text, line, column, expected) => {
  expect(() => JSON.parse(text) as unknown).toThrow();
  expect(mistakeIn(Buffer.from(text))).toEqual({ line, column, expected });
});

test.each(['{}', '[]', ' {"a": [1, -2.5e+3, "x\\u00e9\\n", true, false, null, {"b": {}}]} \n', '"text"', '0', '"\u007f"'])('%j has no mistake', (text) => {
  expect(() => JSON.parse(text) as unknown).not.toThrow();
  expect(mistakeIn(Buffer.from(text))).toBeUndefined();
});

test('a mistake far behind is not looked for, and a long text of any kind takes no time', () => {
  const long = 'x'.repeat(10_000_000);
  for (const text of [`{"a": "${long}", b}`, `{"a": "${long}`, `[${'1,'.repeat(5_000_000)}`, '['.repeat(10_000_000), `"${'\\'.repeat(10_000_000)}`]) {
    const bytes = Buffer.from(text);
    const times = Array.from({ length: 8 }, () => cpuMilliseconds(() => expect(mistakeIn(bytes)).toBeUndefined()));
    expect(Math.min(...times)).toBeLessThan(20); // the quickest: code that is not warm yet is none of it
  }
});

import { expect, test } from 'vitest';
import { withJsonTexts, withStrings } from './texts.ts';

const shout = (text: string) => (text.includes('x') ? text.toUpperCase() : text);

test('texts of JSON are replaced where they stand, names and numbers too, and the rest stays byte for byte', () => {
  const json = String.raw`{ "x":"ax\"\\", "b" : [1.50e3, -0, "\u0078", "é\n"], "big":12345678901234567890 }`;
  expect(withJsonTexts(json, shout)).toBe(String.raw`{ "X":"AX\"\\", "b" : [1.50e3, -0, "X", "é\n"], "big":12345678901234567890 }`);
  expect(withJsonTexts('{"n":411}', (text) => (text === '411' ? '[N]' : text))).toBe('{"n":"[N]"}');
  expect(withJsonTexts('"x', shout)).toBeUndefined();
  expect(withJsonTexts('', shout)).toBeUndefined();
});

test('a string of many megabytes is no matter', () => {
  const long = 'y\\"'.repeat(3_000_000);
  expect(withJsonTexts(`["${long}"]`, (text) => text)).toHaveLength(long.length + 4);
});

test('a value without anything to replace is the same value', () => {
  const value = { a: ['b', { c: 'd', n: 1, x: null }] };
  expect(withStrings(value, shout)).toBe(value);
  expect(withStrings({ ...value, e: ['ex'] }, shout)).toEqual({ ...value, e: ['EX'] });
});

test('signatures and pictures are left alone', () => {
  const value = { signature: `x${'Ab1+/='.repeat(20)}`, image: `data:image/png;base64,${'xxxx'.repeat(20)}` };
  expect(withStrings(value, shout)).toBe(value);
});

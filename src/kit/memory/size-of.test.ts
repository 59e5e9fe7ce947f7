import { expect, test } from 'vitest';
import { sizeOf } from './size-of.ts';

test('every text in a value counts, however deep it lies and whatever it is called', () => {
  const text = 'x'.repeat(1000);
  for (const value of [text, [text], { a: text }, { [text]: 1 }, { a: [{ b: { c: [text] } }] }]) {
    expect(sizeOf(value)).toBeGreaterThan(2000);
    expect(sizeOf(value)).toBeLessThan(2500);
  }
  expect(sizeOf(new Uint8Array(5000))).toBeGreaterThan(5000);
  expect(sizeOf(Array.from({ length: 1000 }, () => 1))).toBeGreaterThan(8000);
});

test('a value that is nested very deep is measured', () => {
  let value: unknown = 'x';
  for (let depth = 0; depth < 200_000; depth++) value = [value];
  expect(sizeOf(value)).toBeGreaterThan(200_000);
});

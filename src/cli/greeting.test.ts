import { expect, test } from 'vitest';
import { greeting } from './greeting.ts';

const modelsOf = (models: readonly string[]) => {
  const text = greeting({ version: '1', url: 'http://a', data: '/d', first: undefined, models, hasProvider: true });
  return /Models +(.*)/.exec(text)?.[1];
};

test('the start counts the models that are not named, and a model for every other name is none of them', () => {
  const eight = Array.from({ length: 8 }, (_, at) => `m${at}`);
  expect(modelsOf([...eight, 'any other name'])).toBe('m0, m1, m2, m3, m4, m5, m6, m7 and any other name');
  expect(modelsOf([...eight, 'm8'])).toBe('m0, m1, m2, m3, m4, m5, m6, m7 and 1 more');
  expect(modelsOf([...eight, 'm8', 'any other name'])).toBe('m0, m1, m2, m3, m4, m5, m6, m7 and 1 more and any other name');
  expect(modelsOf(['a'])).toBe('a');
});

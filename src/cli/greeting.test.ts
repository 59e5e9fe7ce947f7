import { expect, test } from 'vitest';
import { greeting } from './greeting.ts';

const modelsOf = (models: readonly string[]) => {
  const text = greeting({ version: '1', url: 'http://a', data: '/d', first: undefined, models, hasProvider: true });
  return /Models +(.*)/.exec(text)?.[1];
};

test('the start prints the base addresses that SDKs expect', () => {
  const text = greeting({
    version: '1',
    url: 'http://localhost:8080',
    data: '/d',
    first: { email: 'a@b', key: 'dgm_1', isGiven: false },
    models: ['m'],
    hasProvider: true,
  });
  const at = (sdk: string) => new RegExp(`^  ${sdk} +(.*)$`, 'm').exec(text)?.[1];
  expect([at('OpenAI'), at('Anthropic'), at('Gemini')]).toEqual(['http://localhost:8080/v1', 'http://localhost:8080', 'http://localhost:8080']);
  expect(text).toContain('curl http://localhost:8080/v1/chat/completions');
});

test.each([
  ['http://0.0.0.0:8080', 'http://127.0.0.1:8080'],
  ['http://[::]:8080', 'http://[::1]:8080'],
])('a server on all interfaces (%s) prints an address to connect to, and that others reach it without TLS', (url, here) => {
  const text = greeting({ version: '1', url, data: '/d', first: { email: 'a@b', key: 'dgm_1', isGiven: false }, models: ['m'], hasProvider: true });
  expect(text).not.toContain(url);
  expect(text).toContain(`curl ${here}/v1/chat/completions`);
  expect(text).toContain('every address of this machine, over plain HTTP');
  expect(greeting({ version: '1', url: here, data: '/d', first: undefined, models: ['m'], hasProvider: true })).not.toContain('plain HTTP');
});

test('the start counts the models that are not named, and a model for every other name is none of them', () => {
  const eight = Array.from({ length: 8 }, (_, at) => `m${at}`);
  expect(modelsOf([...eight, 'any other name'])).toBe('m0, m1, m2, m3, m4, m5, m6, m7 and any other name');
  expect(modelsOf([...eight, 'm8'])).toBe('m0, m1, m2, m3, m4, m5, m6, m7 and 1 more');
  expect(modelsOf([...eight, 'm8', 'any other name'])).toBe('m0, m1, m2, m3, m4, m5, m6, m7 and 1 more and any other name');
  expect(modelsOf(['a'])).toBe('a');
});

test('a key that the operator gave is named and not shown', () => {
  const textOf = (isGiven: boolean) =>
    greeting({ version: '1', url: 'http://a', data: '/d', first: { email: 'a@b', key: 'dgm_1', isGiven }, models: ['m'], hasProvider: true });
  expect(textOf(false).match(/dgm_1/g)).toHaveLength(2);
  expect(textOf(true)).not.toContain('dgm_1');
  expect(textOf(true)).toContain(`-H "Authorization: Bearer $DRAGOMAN_ADMIN_API_KEY"`);
});

import { expect, test } from 'vitest';
import type { Rule } from './form.ts';
import { settingsSchema } from './index.ts';
import { kinds, readFrom } from '../../test/support/settings-folder.ts';

test('names the settings of the file that are not yet in effect, and no others', () => {
  const { notInEffect } = readFrom(`
trustedProxies: [10.0.0.0/8]
limits: { bodyBytes: 1000, fileBytes: 1000 }
otel: { endpoint: 'http://127.0.0.1:4318' }
models: { vectors: { kind: embedding, targets: [{ provider: built-in }], dimensions: 512 } }
`);
  expect(notInEffect).toEqual(['otel', 'models.vectors.dimensions']);
});

test('names none where none is set', () => {
  expect(readFrom('publicUrl: https://ai.example\nlimits: { bodyBytes: 1000 }\n').notInEffect).toEqual([]);
  expect(readFrom().notInEffect).toEqual([]);
});

test('each has a note in the schema, with all that is in it, and no other setting has one', () => {
  const { properties } = settingsSchema(kinds) as { properties: Readonly<Record<string, Rule>> };
  const noted = (rule: Rule | undefined) => rule?.description?.endsWith('Not yet in effect.');
  expect(noted(properties['otel'])).toBe(true);
  expect(noted(properties['otel']?.properties?.['endpoint'])).toBe(true);
  expect(noted(properties['alerts'])).toBe(false);
  expect(noted(properties['auth'])).toBe(false);
  expect(noted(properties['auth']?.properties?.['oidc']?.properties?.['issuer'])).toBe(true);
  expect(noted(properties['auth']?.properties?.['keyInQuery'])).toBe(false);
  expect(noted((properties['models']!.additionalProperties as Rule).properties?.['dimensions'])).toBe(true);
});

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { kinds } from '../../test/support/settings-folder.ts';
import { settingsSchema } from './index.ts';
import type { Rule } from './form.ts';

const shipped: unknown = JSON.parse(readFileSync(new URL('../../dragoman.schema.json', import.meta.url), 'utf8'));

test('the schema that ships is the one of the settings; `npm run schema` writes it', () => {
  expect(shipped).toEqual(settingsSchema(kinds));
});

test('every setting has a description', () => {
  const bare: string[] = [];
  const walk = (rule: Rule, path: string) => {
    if (!rule.description && path && !path.endsWith('*')) bare.push(path);
    for (const [name, inner] of Object.entries(rule.properties ?? {})) walk(inner, `${path}.${name}`);
    if (typeof rule.additionalProperties === 'object') walk(rule.additionalProperties, `${path}.*`);
    for (const inner of rule.anyOf ?? []) walk(inner, `${path}.*`);
    if (rule.items) walk(rule.items, `${path}.*`);
  };
  walk(settingsSchema(kinds), '');
  expect(bare).toEqual([]);
});

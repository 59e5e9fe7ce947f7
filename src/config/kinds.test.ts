import { expect, test } from 'vitest';
import type { ProviderKind } from '#core/provider-kind';
import { complaint, folderWith } from '../../test/support/settings-folder.ts';
import { readSettings, settingsSchema } from './index.ts';

/** As the modules of a new wire would declare it. */
const kinds: readonly ProviderKind[] = [
  {
    dialect: 'novel',
    serves: 'any novel address',
    examples: { mine: { dialect: 'novel', baseUrl: 'https://novel.example' } },
    fromEnvironment: { name: 'novel', key: 'NOVEL_KEY', baseUrl: 'https://novel.example' },
  },
  { dialect: 'novel', kind: 'regional', serves: 'its cloud', takes: ['regions'], needs: ['regions'] },
];

const read = (yaml: string, env: Readonly<Record<string, string>> = {}) => readSettings({ kinds, cwd: folderWith(yaml), env }).settings;

test('the environment switches on a provider of a kind that is handed in', () => {
  const { providers, models } = read('', { NOVEL_KEY: 'k' });
  expect(providers['novel']).toMatchObject({ dialect: 'novel', baseUrl: 'https://novel.example', apiKeys: ['k'] });
  expect(models['*']?.targets).toEqual([{ provider: 'novel' }]);
});

test('the file may name the kinds that are handed in and no others, and their checks follow from what they take and need', () => {
  const provider = (members: string) => complaint(() => read(`providers: { mine: { ${members} } }`));
  expect(provider('dialect: novel, baseUrl: "https://a.example"')).toBeUndefined();
  expect(provider('dialect: novel, kind: regional, baseUrl: "https://{region}.example", regions: [north]')).toBeUndefined();
  expect(provider('dialect: novel, kind: regional, baseUrl: "https://a.example"')).toContain('providers.mine is of kind regional and needs regions.');
  expect(provider('dialect: novel, baseUrl: "https://a.example", regions: [north]')).toContain('providers.mine.regions is allowed only with kind regional.');
  expect(provider('dialect: openai-chat, baseUrl: "https://a.example"')).toContain('providers.mine.dialect');
});

test('the schema describes them', () => {
  const { properties } = settingsSchema(kinds) as {
    readonly properties: { readonly providers: { readonly description: string; readonly examples: readonly object[] } };
  };
  expect(properties.providers.description).toBe('Providers, by a name of your choice. Dialects: novel is any novel address or, with kind regional, its cloud.');
  expect(Object.keys(properties.providers.examples[0]!)).toEqual(['mine', 'local']);
});

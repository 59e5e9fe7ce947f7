import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { settingsSchema } from '#config/index';
import { settingsText, shortText, writeSettingsFile } from './init.ts';
import { folderWith, kinds, readFrom, readSettings } from '../../test/support/settings-folder.ts';

const text = settingsText('./dragoman.schema.json');
const uncommented = text.split('\n').slice(1).join('\n').replace(/^# /gm, '');
const env = { OPENAI_API_KEY: 'a', AZURE_KEY: 'b', ANTHROPIC_API_KEY: 'c', GEMINI_API_KEY: 'd', DATABASE_URL: 'postgres://me@host/db' };

test('the file as written changes no setting: all of them are the defaults', () => {
  expect(readFrom(text).sources).toEqual(readFrom('').sources);
});

test('the file without its comment signs is valid, and has every setting', () => {
  const { settings, sources } = readFrom(uncommented, { env });
  const { properties } = settingsSchema(kinds) as { properties: object };
  for (const name of Object.keys(properties).filter((one) => !['providers', 'models', 'databaseUrl'].includes(one)))
    expect(sources[name]).toMatch(/^dragoman\.yaml:/);
  expect(settings.databaseUrl).toBe(env.DATABASE_URL);
  expect(Object.keys(settings.providers)).toEqual(expect.arrayContaining(['openai', 'responses', 'azure', 'claude', 'platform', 'local']));
  expect(settings.models['gpt-5.2']).toMatchObject({ aliases: ['gpt-4o'], price: { input: 1.25, output: 10 }, limits: { context: 400000, output: 128000 } });
});

test('the values in the file are the defaults, except for examples', () => {
  const { settings } = readFrom(uncommented, { env });
  const plain = readFrom('').settings;
  for (const name of ['host', 'port', 'workers', 'logLevel', 'limits', 'routing', 'retention', 'bodies', 'charge', 'search', 'auth', 'compat', 'otel'] as const)
    expect(settings[name]).toEqual(plain[name]);
});

test('every line of the file is a comment and fits a screen', () => {
  for (const line of text.split('\n')) expect(line).toMatch(/^$|^#.{0,145}$/);
});

test('the first line of the file names the schema that ships with the package', () => {
  const folder = folderWith();
  const address = readFileSync(writeSettingsFile(folder, 'full'), 'utf8').match(/^# yaml-language-server: \$schema=(\S+)\n/)?.[1] ?? '';
  expect(existsSync(address.startsWith('file:') ? fileURLToPath(address) : resolve(folder, address))).toBe(true);
});

test('the file is readable by its owner alone', () => {
  expect(statSync(writeSettingsFile(folderWith(), 'full')).mode & 0o777).toBe(0o600);
});

test('an existing file is left unchanged', () => {
  const folder = folderWith('port: 1');
  expect(() => writeSettingsFile(folder, 'full')).toThrow('already exists and was left unchanged.');
  expect(readSettings({ cwd: folder, env: {} }).settings.port).toBe(1);
  writeFileSync(join(folder, 'dragoman.yaml'), '');
  expect(() => writeSettingsFile(folder, 'full')).toThrow('already exists');
});

test.each([[{}], [{ OPENAI_API_KEY: 'a' }], [{ ANTHROPIC_API_KEY: 'a' }], [{ GEMINI_API_KEY: 'a' }]])(
  'the short file is ten lines that work with %o',
  (some) => {
    const short = shortText('./dragoman.schema.json', some);
    expect(short.trimEnd().split('\n')).toHaveLength(10);
    const { settings } = readFrom(short, { env: some });
    expect(Object.keys(settings.providers)).toHaveLength(Object.keys(some).length);
    expect(settings.models['*'] === undefined).toBe(Object.keys(some).length === 0);
    expect(settings.newUsers.plan).toBe('free');
  },
);

test.each(['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'GEMINI_API_KEY'])(
  'the short file as written leaves every name to the provider of %s, set at the start',
  (name) => {
    const env = { [name]: 'a' };
    const { settings, unused } = readFrom(shortText('./dragoman.schema.json', {}), { env });
    expect([settings.models, settings.offeredBy, unused]).toEqual([readFrom('', { env }).settings.models, Object.keys(settings.providers)[0], []]);
  },
);

test('the short file with its provider uncommented is valid', () => {
  const short = shortText('./dragoman.schema.json', {}).replaceAll(/^ {2}# /gm, '  ');
  const { settings } = readFrom(short, { env: { OPENAI_API_KEY: 'a' } });
  expect([Object.keys(settings.providers), settings.models['*']?.targets]).toEqual([['openai'], [{ provider: 'openai' }]]);
});

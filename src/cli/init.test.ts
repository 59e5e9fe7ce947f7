import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { settingsSchema } from '#config/index';
import { settingsText, writeSettingsFile } from './init.ts';
import { folderWith, kinds, readFrom, readSettings } from '../../test/support/settings-folder.ts';

const text = settingsText('./dragoman.schema.json');
const uncommented = text.split('\n').slice(1).join('\n').replace(/^# /gm, '');
const env = { OPENAI_API_KEY: 'a', AZURE_KEY: 'b', ANTHROPIC_API_KEY: 'c', GEMINI_API_KEY: 'd', DATABASE_URL: 'postgres://me@host/db' };

test('as it is written the file says nothing: the settings are the defaults', () => {
  expect(readFrom(text).sources).toEqual(readFrom('').sources);
});

test('uncommented wholly the file is good, and every setting is in it', () => {
  const { settings, sources } = readFrom(uncommented, { env });
  const { properties } = settingsSchema(kinds) as { properties: object };
  for (const name of Object.keys(properties).filter((one) => !['providers', 'models', 'databaseUrl'].includes(one)))
    expect(sources[name]).toMatch(/^dragoman\.yaml:/);
  expect(settings.databaseUrl).toBe(env.DATABASE_URL);
  expect(Object.keys(settings.providers)).toEqual(expect.arrayContaining(['openai', 'responses', 'azure', 'claude', 'platform', 'local']));
  expect(settings.models['gpt-5.2']).toMatchObject({ aliases: ['gpt-4o'], price: { input: 1.25, output: 10 }, limits: { context: 400000, output: 128000 } });
});

test('what is shown and is no example is the default', () => {
  const { settings } = readFrom(uncommented, { env });
  const plain = readFrom('').settings;
  for (const name of ['host', 'port', 'workers', 'logLevel', 'limits', 'routing', 'retention', 'bodies', 'charge', 'search', 'auth', 'compat', 'otel'] as const)
    expect(settings[name]).toEqual(plain[name]);
});

test('every line of it is a comment and fits a screen', () => {
  for (const line of text.split('\n')) expect(line).toMatch(/^$|^#.{0,145}$/);
});

test('the first line leads editors to the schema that ships', () => {
  const folder = folderWith();
  const address = readFileSync(writeSettingsFile(folder), 'utf8').match(/^# yaml-language-server: \$schema=(\S+)\n/)?.[1] ?? '';
  expect(existsSync(address.startsWith('file:') ? fileURLToPath(address) : resolve(folder, address))).toBe(true);
});

test('the file is for its owner alone', () => {
  expect(statSync(writeSettingsFile(folderWith())).mode & 0o777).toBe(0o600);
});

test('a file that is there is left as it is', () => {
  const folder = folderWith('port: 1');
  expect(() => writeSettingsFile(folder)).toThrow('is there already; it was left as it is.');
  expect(readSettings({ cwd: folder, env: {} }).settings.port).toBe(1);
  writeFileSync(join(folder, 'dragoman.yaml'), '');
  expect(() => writeSettingsFile(folder)).toThrow('is there already');
});

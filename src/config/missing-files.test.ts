import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { folderWith, readFrom, readSettings } from '../../test/support/settings-folder.ts';

const provider = (more: string) => `providers: { v: { dialect: gemini, kind: vertex, baseUrl: "https://{region}.x", project: p, regions: [a]${more} } }\n`;
const key = (file: string) => provider(`, credentials: { serviceAccountFile: ${file} }`);

test.each([
  [key('/nonex/key.json'), 'providers.v.credentials.serviceAccountFile must name a file that can be read: there is none.'],
  [key('/usr'), 'providers.v.credentials.serviceAccountFile must name a file that can be read: it is a folder.'],
  ['mcp: { stdio: [{ name: a, command: /nonex/prog }] }', 'mcp.stdio[0].command must name a program that can be started: there is none.'],
  ['mcp: { stdio: [{ name: a, command: /usr }] }', 'mcp.stdio[0].command must name a program that can be started: it is a folder.'],
])('%s is told of', (yaml, said) => {
  expect(readFrom(yaml).missing).toEqual([said]);
});

test('so is the key file of the environment, where a provider uses it', () => {
  const env = { GOOGLE_APPLICATION_CREDENTIALS: '/nonex/key.json' };
  expect(readFrom(provider(''), { env }).missing).toEqual(['GOOGLE_APPLICATION_CREDENTIALS must name a file that can be read: there is none.']);
  expect(readFrom('', { env }).missing).toEqual([]);
});

test('what is there is not named', () => {
  const cwd = folderWith(`${key('k.json')}mcp: { stdio: [{ name: a, command: ${process.execPath} }] }`);
  writeFileSync(join(cwd, 'k.json'), '{}');
  expect(readSettings({ cwd, env: {} }).missing).toEqual([]);
});

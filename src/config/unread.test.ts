import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { folderWith, readFrom, readSettings } from '../../test/support/settings-folder.ts';
import { unreadSaid } from './index.ts';

const unread = (env: Readonly<Record<string, string>>, yaml?: string) => readFrom(yaml, { env }).unread.map(({ name }) => name);
const elsewhere = 'http://10.1.2.3/v1';

test.each([
  ['ANTHROPIC_BASE_URL', 'ANTHROPIC_BASE_URL is not read: use providers.anthropic.baseUrl in the settings file.'],
  ['GOOGLE_GEMINI_BASE_URL', 'GOOGLE_GEMINI_BASE_URL is not read: use providers.gemini.baseUrl in the settings file.'],
  ['OPENAI_API_BASE', 'OPENAI_API_BASE is not read: set OPENAI_BASE_URL instead.'],
  ['GOOGLE_API_KEY', 'GOOGLE_API_KEY is not read: set GEMINI_API_KEY instead.'],
])('%s, which SDKs read, is named with what to use in its place', (name, said) => {
  expect(readFrom(undefined, { env: { [name]: elsewhere } }).unread.map(unreadSaid)).toEqual([said]);
});

test('a variable that is read is not named, nor one whose substitute is set too', () => {
  expect(unread({ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: elsewhere, ANTHROPIC_API_KEY: 'k', GEMINI_API_KEY: 'k' })).toEqual([]);
  expect(unread({ GEMINI_API_KEY: 'k', GOOGLE_API_KEY: 'k', OPENAI_BASE_URL: elsewhere, OPENAI_API_BASE: elsewhere })).toEqual([]);
  expect(unread({ ANTHROPIC_BASE_URL: '', GOOGLE_API_KEY: '' })).toEqual([]);
});

test('with a provider of the vendor in the settings file nothing of the vendor is named', () => {
  const claude = 'providers: { claude: { dialect: anthropic-messages, baseUrl: "${ANTHROPIC_BASE_URL}" } }';
  expect(unread({ ANTHROPIC_BASE_URL: elsewhere, GOOGLE_API_KEY: 'k' }, claude)).toEqual(['GOOGLE_API_KEY']);
});

test('the address of this server itself is for programs beside it, with the key that goes there', () => {
  const own = { ANTHROPIC_BASE_URL: 'http://127.0.0.1:8080', ANTHROPIC_AUTH_TOKEN: 'dgm_x' };
  expect(unread(own)).toEqual([]);
  expect(unread({ ...own, PORT: '8081' })).toEqual(['ANTHROPIC_BASE_URL', 'ANTHROPIC_AUTH_TOKEN']);
});

test('lines of .env that set nothing are named, without what they say', () => {
  const folder = folderWith();
  const lines = [
    'GEMINI_API_KEY : y',
    'FOO',
    '# a comment',
    '',
    'A="b',
    ' c = d',
    'e"',
    "B='f' # g",
    'C="h',
    'export D=1',
    '=x',
    'GARBAGE LINE',
    'E= ',
    'F=2',
    'G=',
  ];
  writeFileSync(join(folder, '.env'), `\uFEFFPORT=81\r\n${lines.join('\n')}`);
  const { unreadLines, settings } = readSettings({ cwd: folder, env: {} });
  expect(unreadLines).toEqual([2, 3, 12, 13, 14].map((line) => `.env:${line} is not read: a line must be NAME=value.`));
  expect(settings.port).toBe(81);
});

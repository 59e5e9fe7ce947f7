/* Values that stand for nothing or for too much: as credentials, as limits of lists, and as secrets of the operator. */
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { person, visitorsOf } from '../api/native/visitors.ts';
import { connectRaw } from '../support/fakes/raw.ts';
import { proves } from '../support/proves.ts';
import { startTestServer } from '../support/server.ts';
import { readSettings } from '../support/settings-folder.ts';

const server = await startTestServer();
afterAll(() => server.close());
const all = visitorsOf(server);
const ada = await person(all);

const odd = [null, '', [], {}, 0, true, false, ' ', '%', '*', 'null', 'undefined', `' or '1'='1`, '\0', 'x'.repeat(65_536), [''], { $ne: '' }];

test(proves('K-14', 'null, nothing and odd values are no credential, in bodies and in headers'), async () => {
  for (const value of odd) {
    for (const body of [
      { email: value, api_key: ada.key },
      { email: ada.email, api_key: value },
      { email: value, api_key: value },
    ])
      expect([value, body, (await all.nobody('POST', '/user/get-token-with-api-key', body)).status]).toEqual([
        value,
        body,
        expect.toSatisfy((status: number) => [400, 401, 429].includes(status)),
      ]);
    for (const body of [
      { email: ada.email, password: value },
      { email: value, password: value },
    ])
      expect([value, body, (await all.nobody('POST', '/user/get-token', body)).status]).toEqual([
        value,
        body,
        expect.toSatisfy((status: number) => [400, 401, 429].includes(status)),
      ]);
  }
  for (const value of ['', ' ', 'null', 'undefined', '0', 'true', '{}', '[]', '%', `' or '1'='1`, 'x'.repeat(8000)])
    for (const headers of [
      { authorization: value },
      { authorization: `Bearer ${value}` },
      { authorization: `Basic ${value}` },
      { 'x-access-tokens': value },
      { 'x-api-key': value },
      { 'x-goog-api-key': value },
      { cookie: `__Host-session=${value}` },
    ])
      expect([headers, (await all.nobody('GET', '/server/mine', undefined, { headers })).status]).toEqual([headers, 401]);
});

test.each(['/user/get-token-with-api-key', '/user/get-token', '/server/session'])(
  proves('H-10', 'a body of more than 1 MiB is refused before it is read at %s, which takes no credential'),
  async (path) => {
    for (const type of ['application/json', ...(path.startsWith('/user/') ? ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'] : [])]) {
      const connection = await connectRaw(server.url);
      connection.send(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: ${type}\r\ncontent-length: 1048577\r\n\r\n`);
      expect([type, (await connection.answer()).status]).toEqual([type, 413]);
      await connection.ended();
    }
  },
);

interface Parameter {
  readonly in: string;
  readonly name: string;
}

test(proves('I-16', 'a limit of a list that is no number of items is refused or cut, and never a whole table'), async () => {
  for (let at = 0; at < 210; at++) await ada.ask('POST', '/server/mine/chats', { title: `chat ${at}` });
  const { paths } = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
    paths: Readonly<Record<string, { get?: { parameters?: readonly Parameter[] } }>>;
  };
  const lists = Object.entries(paths).filter(
    ([path, { get }]) => !path.includes('{') && path.startsWith('/server/') && get?.parameters?.some((one) => one.in === 'query' && one.name === 'limit'),
  );
  expect(lists.length).toBeGreaterThan(10);
  for (const [path] of lists)
    for (const limit of ['-1', '0', '1000000000', '5.5', 'five', '', '1e9', '99999999999999999999', '-0', 'NaN', '5&limit=6']) {
      const { status, body } = await all.admin('GET', `${path}?limit=${limit}`);
      const items = (body['items'] ?? body['data'] ?? []) as readonly unknown[];
      expect([path, limit, status, items.length <= 200]).toEqual([path, limit, expect.toSatisfy((status: number) => status === 400 || status === 200), true]);
      if (['-1', '0', '5.5', 'five'].includes(limit)) expect([path, limit, status]).toEqual([path, limit, 400]);
    }
  expect(((await ada.ask('GET', '/server/mine/chats?limit=200')).body['items'] as unknown[]).length).toBe(200);
  for (const [path, field] of [
    ['/user/get-user-logins', 'limit'],
    ['/user/get-user-logs', 'limit'],
    ['/server/query', 'limit_references'],
  ] as const)
    for (const limit of [-1, 5.5, 'five', [], {}, true]) {
      const { status, body } = await ada.ask('POST', path, { ...(path === '/server/query' ? { message: 'x', model: 'built-in' } : {}), [field]: limit });
      expect([path, limit, status, String(body['response']).startsWith(field)]).toEqual([path, limit, 400, true]);
    }
  for (const path of ['/user/get-user-logins', '/user/get-user-logs']) {
    const { status, body } = await ada.ask('POST', path, { limit: 1_000_000_000 });
    expect([path, status, ((body['response'] ?? body) as unknown[]).length <= 100]).toEqual([
      path,
      expect.toSatisfy((code: number) => code === 200 || code === 400),
      true,
    ]);
  }
});

test(proves('K-15', 'secrets of the operator that are short are refused by name, and where there is none a strong one is made'), async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'dragoman-odd-'));
  onTestFinished(() => rm(cwd, { recursive: true, force: true }));
  for (const [name, values] of Object.entries({
    DRAGOMAN_MASTER_KEY: ['x', 'changeme', 'c2VjcmV0', Buffer.alloc(31, 1).toString('base64'), 'k'.repeat(44)],
    DRAGOMAN_ADMIN_API_KEY: ['x', 'admin', 'k'.repeat(63), `${'k'.repeat(63)}!`],
  }))
    for (const value of values) {
      const read = () => readSettings({ args: {}, env: { [name]: value, DRAGOMAN_DATA: join(cwd, 'data') }, cwd });
      expect([name, value, read]).toEqual([name, value, expect.toSatisfy((act: () => unknown) => refusalOf(act).includes(name))]);
    }
  const strong = await startTestServer({ folder: cwd, env: { DRAGOMAN_MASTER_KEY: '' } });
  await strong.close();
  const file = join(cwd, 'data', 'master.key');
  expect(Buffer.from((await readFile(file, 'utf8')).trim(), 'base64')).toHaveLength(32);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});

function refusalOf(act: () => unknown): string {
  try {
    act();
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

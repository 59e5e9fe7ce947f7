import { readFile, stat } from 'node:fs/promises';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chat, startTestServer, type TestServer } from '../../support/server.ts';

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: object }[];
  readonly responses: Readonly<Record<string, unknown>>;
  readonly 'x-scope'?: string;
}

const folder = mkdtempSync(join(tmpdir(), 'dragoman-rights-'));
let server: TestServer;
/** Keys by what they are. */
const keys: Record<string, string> = {};
let routes: { readonly method: string; readonly path: string; readonly operation: Operation }[];

beforeAll(async () => {
  server = await startTestServer({ folder });
  const made = async (path: string, body: object) => (await (await server.ask(`/server/admin${path}`, body)).json()) as { id: number; key: string };
  const user = await made('/users', { email: 'user@example.org' });
  const admin = await made('/users', { email: 'admin@example.org', role: 'admin' });
  keys['user'] = (await made(`/users/${user.id}/keys`, { name: 'k' })).key;
  keys['user with admin'] = (await made(`/users/${user.id}/keys`, { name: 'k', scopes: ['admin'] })).key;
  keys['admin'] = (await made(`/users/${admin.id}/keys`, { name: 'k' })).key;
  keys['admin without admin'] = (await made(`/users/${admin.id}/keys`, { name: 'k', scopes: ['passthrough', 'query'] })).key;
  keys['admin with admin'] = (await made(`/users/${admin.id}/keys`, { name: 'k', scopes: ['admin'] })).key;
  const { paths } = (await (await server.ask('/openapi.json')).json()) as { paths: Record<string, Record<string, Operation>> };
  routes = Object.entries(paths).flatMap(([path, methods]) =>
    path.startsWith('/server/admin/') ? Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })) : [],
  );
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Asks with a key, or none, for ids that nobody has; says nothing that could do harm. */
async function asked({ method, path }: { method: string; path: string }, key: string | undefined) {
  const answer = await fetch(server.url + path.replaceAll(/\{\w+\}/g, '999999'), {
    method,
    headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
    ...(method === 'GET' || method === 'DELETE' ? {} : { body: '{"nothing":1}' }),
  });
  const { error_ref: _, ...body } = (await answer.json()) as Record<string, unknown>;
  return { status: answer.status, body };
}

test('the document names every address of administration, with its parameters and what it answers', () => {
  expect(routes.map(({ method, path }) => `${method} ${path.slice('/server/admin/'.length)}`).toSorted()).toEqual(
    [
      'GET logs, GET logs/{requestId}, GET usage, GET plans, PUT plans/{name}, DELETE plans/{name}, GET votes',
      'GET users, POST users, GET users/{id}, PATCH users/{id}, DELETE users/{id}',
      'GET users/{id}/keys, POST users/{id}/keys, DELETE users/{id}/keys/{key}, POST users/{id}/keys/{key}/rotate',
      'GET teams, POST teams, GET teams/{id}, PATCH teams/{id}, DELETE teams/{id}',
      'GET holders, POST holders/{id}/write-off, GET regions, POST regions/reset, GET audit, GET doctor',
      'GET lessons, DELETE lessons, DELETE lessons/{id}',
    ]
      .flatMap((line) => line.split(', '))
      .toSorted(),
  );
  for (const { method, path, operation } of routes) {
    expect(Object.keys(operation.responses)).toContain(method === 'POST' && /(users|teams|keys|rotate)$/.test(path) ? '201' : '200');
    const inPath = operation.parameters?.filter((one) => one.in === 'path').map(({ name }) => `{${name}}`) ?? [];
    expect(inPath).toEqual(path.match(/\{\w+\}/g) ?? []);
  }
  const users = routes.find(({ method, path }) => method === 'GET' && path === '/server/admin/users')!;
  expect(users.operation.parameters).toMatchObject([
    { name: 'query', in: 'query', required: false, schema: { type: 'string' } },
    { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 200 } },
    { name: 'cursor', in: 'query' },
  ]);
});

describe('at every address of administration', () => {
  test('no key and a bad key are 401', async () => {
    for (const route of routes)
      for (const key of [undefined, 'x'.repeat(64), 'dgl_', `dgl_${'x'.repeat(60)}`])
        expect([route.path, (await asked(route, key)).status]).toEqual([route.path, 401]);
  });

  test("a user's key finds nothing, as at an address that is not there", async () => {
    const nowhere = await asked({ method: 'GET', path: '/server/admin/nothing' }, keys['user']);
    expect(nowhere.status).toBe(404);
    for (const route of routes)
      for (const key of ['user', 'user with admin']) expect([route.path, await asked(route, keys[key])]).toEqual([route.path, nowhere]);
  });

  test("a user's key finds nothing there whatever body it sends", async () => {
    const answer = await server.ask('/server/admin/users', '{"broken', { headers: { authorization: `Bearer ${keys['user']}` } });
    expect(answer.status).toBe(404);
  });

  test('a scoped key of an administrator without admin is 403, with it it may enter, but makes no key', async () => {
    for (const route of routes) {
      expect([route.path, (await asked(route, keys['admin without admin'])).status]).toEqual([route.path, 403]);
      const makesKeys = route.operation['x-scope'] === 'unscoped';
      const { status } = await asked(route, keys['admin with admin']);
      expect([route.path, status]).toEqual([route.path, makesKeys ? 403 : expect.toBeOneOf([200, 400, 404])]);
    }
    const made = routes.filter(({ operation }) => operation['x-scope'] === 'unscoped');
    expect(made.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /server/admin/users/{id}/keys',
      'POST /server/admin/users/{id}/keys/{key}/rotate',
    ]);
  });

  test.each<[string, object]>([
    ['models', { models: ['built-in'] }],
    ['an expiry', { expiresAt: '2090-01-01T00:00:00Z' }],
    ['scopes', { scopes: ['admin'] }],
  ])('a key of an administrator that is narrowed by %s gives nobody more than it has: no key, no password, no role', async (_, narrow) => {
    const ask = async (path: string, body: object, key?: string, method = 'POST') => {
      const answer = await server.ask(`/server/admin${path}`, body, { method, ...(key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } }) });
      return { status: answer.status, body: (await answer.json()) as { id: number; key: string; error: string } };
    };
    const email = `${Object.keys(narrow)[0]!.toLowerCase()}@example.org`;
    const { body: own } = await ask('/users', { email, role: 'admin' });
    const { body: made } = await ask(`/users/${own.id}/keys`, { name: 'narrow', ...narrow });
    const { body: user } = await ask('/users', { email: `user-${email}` });

    for (const id of [own.id, user.id])
      for (const wanted of [{}, narrow]) {
        const refused = await ask(`/users/${id}/keys`, { name: 'wide', ...wanted }, made.key);
        expect(refused).toMatchObject({ status: 403, body: { error: expect.stringContaining('narrowed') as string } });
      }
    expect((await ask('/users', { email: `admin-${email}`, role: 'admin' }, made.key)).status).toBe(403);
    expect((await ask('/users', { email: `sign-in-${email}`, password: 'long enough' }, made.key)).status).toBe(403);
    expect((await ask(`/users/${user.id}`, { role: 'admin' }, made.key, 'PATCH')).status).toBe(403);
    expect((await ask(`/users/${user.id}`, { status: 'suspended' }, made.key, 'PATCH')).status).toBe(200);
    expect((await ask('/users', { email: `plain-${email}` }, made.key)).status).toBe(201);
  });

  test('an administrator may enter', async () => {
    for (const route of routes) expect([route.path, (await asked(route, keys['admin'])).status]).toEqual([route.path, expect.toBeOneOf([200, 400, 404])]);
  });

  test('another method is 405 and told which there are', async () => {
    const answer = await server.ask('/server/admin/users/1', {}, { method: 'PUT' });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD, PATCH, DELETE']);
  });
});

describe('the token of this machine', () => {
  const token = async () => (await readFile(join(folder, 'data/local'), 'utf8')).trim();
  const withToken = async (path: string, init: RequestInit = {}) =>
    server.ask(path, undefined, { ...init, headers: { authorization: `Bearer ${await token()}`, ...(init.headers as Record<string, string>) } });

  test('is for the operator alone, and an administrator who is no user', async () => {
    expect((await stat(join(folder, 'data/local'))).mode & 0o777).toBe(0o600);
    expect((await withToken('/server/admin/users')).status).toBe(200);
    const answer = await server.ask(
      chat,
      { model: 'built-in', messages: [{ role: 'user', content: 'hi' }] },
      { headers: { authorization: `Bearer ${await token()}` } },
    );
    expect(answer.status).toBe(401);
    expect((await withToken('/server/chatcompat/v1/models')).status).toBe(401);
  });

  test('is not good with a byte less, a byte more, or through a proxy', async () => {
    for (const bad of [(await token()).slice(0, -1), `${await token()}x`, (await token()).toUpperCase()])
      expect((await server.ask('/server/admin/users', undefined, { headers: { authorization: `Bearer ${bad}` } })).status).toBe(401);
    for (const name of ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via'])
      expect([name, (await withToken('/server/admin/users', { headers: { [name]: '127.0.0.1' } })).status]).toEqual([name, 401]);
  });

  test('is another one after every start, and gone with the server', async () => {
    const home = mkdtempSync(join(tmpdir(), 'dragoman-token-'));
    const read = () => readFile(join(home, 'data/local'), 'utf8');
    const tokens: string[] = [];
    for (let start = 0; start < 2; start++) {
      const open = await startTestServer({ folder: home });
      tokens.push(await read());
      await open.close();
      await expect(read()).rejects.toThrow('ENOENT');
    }
    expect(tokens[0]).not.toBe(tokens[1]);
    rmSync(home, { recursive: true, force: true });
  });
});

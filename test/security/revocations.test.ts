import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { expect, inject, onTestFinished, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { openStore } from '#store/open';
import { askFace, everyWay } from '../support/all-faces.ts';
import { onServer } from '../support/databases.ts';
import { hang, headersThenHang, ok } from '../support/fakes/upstream/index.ts';
import { connectRaw } from '../support/fakes/raw.ts';
import { startTestServer, type TestServer } from '../support/server.ts';
import { scriptedServer } from '../support/scripted-server.ts';

const responses = '/server/chatcompat/v1/responses';

const { upstream, server } = await scriptedServer();

const admin = async ({ ask }: TestServer, method: string, path: string, body?: object) =>
  (await (await ask(`/server/admin${path}`, body, { method })).json()) as { readonly id: number; readonly key: string };

let users = 0;

/** A user with a key, and what is done to them. */
async function somebody(at = server) {
  const { id } = await admin(at, 'POST', '/users', { email: `user-${++users}@example.org` });
  const made = await admin(at, 'POST', `/users/${id}/keys`, { name: 'one' });
  const other = await admin(at, 'POST', `/users/${id}/keys`, { name: 'other' });
  const asker = (key: string) => async (path: string, body?: object, init?: RequestInit) => {
    const answer = await at.ask(path, body, { ...init, headers: { authorization: `Bearer ${key}` } });
    return (await answer.json()) as { readonly id: string; readonly status: string; readonly error: { readonly code: string } | null };
  };
  return {
    id,
    served: { ...at, key: made.key },
    otherKey: other.key,
    ask: asker(made.key),
    askOther: asker(other.key),
    suspend: (by = at) => admin(by, 'PATCH', `/users/${id}`, { status: 'suspended' }),
    revoke: (by = at) => admin(by, 'DELETE', `/users/${id}/keys/${made.id}`),
  };
}

interface Row {
  readonly step: number;
  readonly end: string;
  readonly status: number;
}
const rowsOf = async (userId: number, at = server) =>
  ((await (await at.ask(`/server/admin/logs?userId=${userId}`)).json()) as { readonly items: readonly Row[] }).items.map(({ end, status }) => [end, status]);

const words = { chat: 'invalid_api_key', responses: 'invalid_api_key', messages: 'authentication_error', gencompat: 'UNAUTHENTICATED' };

test.each(everyWay)(
  'an answer of %s (stream: %s) ends with the error of its interface when the user is suspended, and is booked as cancelled',
  async (face, stream) => {
    const { id, served, suspend } = await somebody();
    upstream.script(headersThenHang({ afterEvents: 3 }));
    const asked = askFace(served, face, { model: 'gpt-4o-mini', content: 'one two three four', stream });
    await upstream.arrived(0);
    await suspend();
    const answer = await asked;
    expect(answer).toMatchObject({ complete: false, error: words[face] });
    if (!stream) expect(answer.status).toBe(401);
    await expect.poll(() => rowsOf(id), { timeout: 30_000 }).toEqual([['cancelled', 401]]);
  },
);

test.each(['text/plain', 'text/event-stream'])(
  'streams of the native interface (%s) end with the words that its clients know for a bad key',
  async (accept) => {
    const { served, ask, revoke } = await somebody();
    const { id: agent } = await ask('/server/mine/agents', { name: 'One', mode: 'single', instructions: 'Talk.', model: 'gpt-4o-mini' });
    const streams = {
      '/server/query': { message: 'one two three four', model: 'gpt-4o-mini', streaming: true },
      '/server/query_stream': { message: 'one two three four', model: 'gpt-4o-mini' },
      '/server/execute-agent': { agent_id: agent, message: 'one two three four', streaming: true },
    };
    upstream.script(...Object.keys(streams).map(() => headersThenHang({ afterEvents: 3 })));
    const headers = { authorization: `Bearer ${served.key}`, 'content-type': 'application/json', accept };
    const opened = Object.entries(streams).map(([path, body]) => fetch(served.url + path, { method: 'POST', headers, body: JSON.stringify(body) }));
    await upstream.arrived(2);
    const answers = await Promise.all(opened);
    await revoke();
    for (const answer of answers) {
      const last = (await answer.text())
        .trim()
        .split(/@\|@sep@\|@|\n\n/)
        .at(-1);
      expect(last).toContain('"Token is invalid [1]"');
      expect(last).not.toContain('no longer valid');
    }
  },
);

test('a partly received request is refused at once when its user is suspended', async () => {
  const { served, suspend } = await somebody();
  const connection = await connectRaw(served.url);
  onTestFinished(() => connection.close());
  const head = [`POST ${responses} HTTP/1.1`, 'host: x', `authorization: Bearer ${served.key}`, 'content-type: application/json', 'content-length: 1000'];
  connection.send([...head, 'expect: 100-continue', '', '{"model":'].join('\r\n'));
  await connection.until('100 Continue');
  await suspend();
  const { status, text } = await connection.answer();
  expect([status, text]).toEqual([401, expect.stringContaining('invalid_api_key')]);
});

test('revoking a key ends the requests made with it, and none made with another key of the user', async () => {
  const { served, otherKey, revoke } = await somebody();
  upstream.script(hang(), hang());
  const asking = { model: 'gpt-4o-mini', content: 'hello', stream: false };
  const other = askFace({ ...served, key: otherKey }, 'chat', asking);
  await upstream.arrived(0);
  const mine = askFace(served, 'chat', asking);
  await upstream.arrived(1);
  await revoke();
  expect((await mine).status).toBe(401);
  expect(await Promise.race([other, new Promise((resolve) => setTimeout(resolve, 300, 'still running'))])).toBe('still running');
  void other.catch(() => {});
});

test.each(['signing out', 'a new password'])('%s ends the requests made with a session; a key of the user goes on', async (what) => {
  const { id, served } = await somebody();
  const password = 'correct horse';
  await admin(server, 'PATCH', `/users/${id}`, { password });
  const headers = { 'content-type': 'application/json', origin: server.url };
  const signIn = await fetch(`${server.url}/server/session`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ email: `user-${users}@example.org`, password }),
  });
  const cookie = signIn.headers.getSetCookie()[0]!.split(';')[0]!;
  upstream.script(hang(), hang());
  const other = askFace(served, 'chat', { model: 'gpt-4o-mini', content: 'hello', stream: false });
  await upstream.arrived(0);
  const body = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hello' }] });
  const mine = fetch(`${server.url}/v1/chat/completions`, { method: 'POST', headers: { ...headers, cookie }, body });
  await upstream.arrived(1);
  if (what === 'signing out') await fetch(`${server.url}/server/session`, { method: 'DELETE', headers: { origin: server.url, cookie } });
  else await admin(server, 'PATCH', `/users/${id}`, { password: 'another horse' });
  const answer = await mine;
  expect([answer.status, await answer.text()]).toEqual([401, expect.stringContaining('The session is over')]);
  expect(await Promise.race([other, new Promise((resolve) => setTimeout(resolve, 300, 'still running'))])).toBe('still running');
  void other.catch(() => {});
});

test('a request that waits for another with the same Idempotency-Key is refused when its user is suspended', async () => {
  const { served, suspend } = await somebody();
  upstream.script(hang());
  const asking = { model: 'gpt-4o-mini', content: 'hello', stream: false, headers: { 'idempotency-key': 'once' } };
  const both = [askFace(served, 'chat', asking), askFace(served, 'chat', asking)];
  await upstream.arrived(0);
  await suspend();
  for (const { status } of await Promise.all(both)) expect(status).toBe(401);
  expect(upstream.requests).toHaveLength(1);
});

test('a running background response of a revoked key ends, and so do the streams that read it with that key', async () => {
  const { id, served, ask, askOther, revoke } = await somebody();
  upstream.script(headersThenHang({ afterEvents: 3 }));
  const queued = await ask(responses, { model: 'gpt-4o-mini', input: 'one two three four', background: true });
  await expect.poll(async () => (await ask(`${responses}/${queued.id}`)).status).toBe('in_progress');
  const reading = fetch(`${served.url}${responses}/${queued.id}?stream=true`, { headers: { authorization: `Bearer ${served.key}` } });
  const stream = await reading;
  await revoke();
  expect(await stream.text()).toContain('event: error\ndata: {"type":"error"');
  await expect.poll(async () => (await askOther(`${responses}/${queued.id}`)).status).toBe('failed');
  expect(await askOther(`${responses}/${queued.id}`)).toMatchObject({ error: { code: 'invalid_api_key' } });
  await expect.poll(() => rowsOf(id), { timeout: 30_000 }).toEqual([['cancelled', 401]]);
});

test('a stream that reads a response of another key ends with an error, and the response continues', async () => {
  const { served, ask, askOther, otherKey, revoke } = await somebody();
  upstream.script(headersThenHang({ afterEvents: 3 }));
  const queued = await askOther(responses, { model: 'gpt-4o-mini', input: 'one two three four', background: true });
  await expect.poll(async () => (await ask(`${responses}/${queued.id}`)).status).toBe('in_progress');
  const stream = await fetch(`${served.url}${responses}/${queued.id}?stream=true`, { headers: { authorization: `Bearer ${served.key}` } });
  await revoke();
  const text = await stream.text();
  expect(text).toMatch(/event: error\n.*"code":"invalid_api_key"/);
  expect(text).not.toContain('response.failed');
  expect((await askOther(`${responses}/${queued.id}`)).status).toBe('in_progress');
  await askOther(`${responses}/${queued.id}/cancel`, {});
  expect(otherKey).not.toBe(served.key);
});

test('waiting background responses end when their key is revoked, whoever occupies the slots', { timeout: 120_000 }, async () => {
  const { ask, askOther, revoke } = await somebody();
  upstream.script(...Array.from({ length: 64 }, () => hang()));
  const all = await Promise.all(Array.from({ length: 66 }, () => ask(responses, { model: 'gpt-4o-mini', input: 'hello', background: true })));
  await expect.poll(() => upstream.requests.length, { timeout: 30_000 }).toBeGreaterThanOrEqual(32);
  await revoke();
  const states = async () => new Set(await Promise.all(all.map(async (one) => (await askOther(`${responses}/${one.id}`)).status)));
  await expect.poll(states, { timeout: 30_000 }).toEqual(new Set(['failed']));
});

test('a run that is resumed after a restart does not begin for a user who was suspended in the meantime', { timeout: 120_000 }, async () => {
  const home = await mkdtemp(join(tmpdir(), 'dragoman-again-'));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const open = () => startTestServer({ folder: home, upstream: upstream.url });
  const before = await open();
  const { id, ask, served } = await somebody(before);
  upstream.script(hang(), ok());
  const queued = await ask(responses, { model: 'gpt-4o-mini', input: 'one', background: true });
  await upstream.arrived(0);
  await before.close();
  const change = async (status: string) => {
    const store = await openStore({ folder: join(home, 'data'), migrations: [], clock: systemClock });
    await sql`update users set status = ${status} where id = ${id}`.execute(store.db);
    await store.close();
  };
  await change('suspended');
  const between = await open();
  const others = await somebody(between); // whose run comes after it
  const next = await others.ask(responses, { model: 'built-in', input: 'hello', background: true });
  await expect.poll(async () => (await others.ask(`${responses}/${next.id}`)).status, { timeout: 30_000 }).toBe('completed');
  await between.close();
  await change('active');
  const after = await open();
  expect(await (await after.ask(`${responses}/${queued.id}`, undefined, { headers: { authorization: `Bearer ${served.key}` } })).json()).toMatchObject({
    status: 'failed',
    error: { code: 'invalid_api_key' },
  });
  expect(upstream.requests).toHaveLength(1);
  await after.close();
});

test.skipIf(!inject('postgres'))('a stream on one machine ends when another machine revokes its key', { timeout: 120_000 }, async () => {
  const { databaseUrl, folder } = await onServer(inject('postgres')!).place();
  const here = await startTestServer({ folder, upstream: upstream.url, databaseUrl: databaseUrl! });
  onTestFinished(here.close);
  await mkdir(join(folder, 'other', 'data'), { recursive: true });
  await copyFile(join(folder, 'data', 'master.key'), join(folder, 'other', 'data', 'master.key'));
  const there = await startTestServer({ folder: join(folder, 'other'), upstream: upstream.url, databaseUrl: databaseUrl! });
  onTestFinished(there.close);
  const { served, revoke } = await somebody(here);
  upstream.script(headersThenHang({ afterEvents: 3 }));
  const asked = askFace(served, 'chat', { model: 'gpt-4o-mini', content: 'one two three four', stream: true });
  await upstream.arrived(0);
  await revoke(there);
  expect(await asked).toMatchObject({ complete: false, error: 'invalid_api_key' });
});

test('what goes on ends when its key expires: streams, also one that began before the key was to expire, and background responses; another key goes on', async () => {
  const { id } = await somebody();
  const inSeconds = (seconds: number) => ({ expiresAt: new Date(Date.now() + seconds * 1000).toISOString() });
  const keyWith = (more: object = {}) => admin(server, 'POST', `/users/${id}/keys`, { name: 'one more', ...more });
  const [lasting, other, limited] = [await keyWith(), await keyWith(), await keyWith(inSeconds(8))];
  upstream.script(...Array.from({ length: 4 }, () => headersThenHang({ afterEvents: 3 })));
  const asking = { model: 'gpt-4o-mini', content: 'one two three four', stream: true };
  const answers = [lasting, limited].map(({ key }) => askFace({ ...server, key }, 'chat', asking));
  const goesOn = askFace({ ...server, key: other.key }, 'chat', asking);
  const as = ({ key }: { readonly key: string }) => ({ headers: { authorization: `Bearer ${key}` } });
  const queued = (await (await server.ask(responses, { model: 'gpt-4o-mini', input: 'one two', background: true }, as(limited))).json()) as { id: string };
  await upstream.arrived(3);
  const changed = await server.ask(`/server/mine/keys/${lasting.id}?owner=${id}`, inSeconds(2), { method: 'PATCH' });
  expect(changed.status).toBe(200);
  for (const answer of answers) expect(await answer).toMatchObject({ complete: false, error: 'invalid_api_key' });
  const found = async () => (await server.ask(`${responses}/${queued.id}`, undefined, as(other))).json();
  await expect.poll(found, { timeout: 30_000 }).toMatchObject({ status: 'failed', error: { code: 'invalid_api_key' } });
  expect(await Promise.race([goesOn, new Promise((resolve) => setTimeout(resolve, 300, 'still running'))])).toBe('still running');
  void goesOn.catch(() => {});
});

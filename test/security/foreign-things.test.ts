/* What belongs to one user is for another as if it were not there: at every address, in every body, and whatever a body says of its owner. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ConvertDocument } from '#core/document';
import { person, visitorsOf, type Answer, type Person } from '../api/native/visitors.ts';
import { proves } from '../support/proves.ts';
import { startTestServer } from '../support/server.ts';
import { addressed, canary, everythingOf, named, nobodys, readBy, type ThingRequest, type Things } from './things.ts';

const readText: ConvertDocument = async (content) => ({ type: 'text/plain', text: await content.text(), places: [] });
const server = await startTestServer({ convert: readText });
const all = visitorsOf(server);
let ada: Person;
let bob: Person;
let hers: Things;

beforeAll(async () => {
  ada = await person(all);
  bob = await person(all);
  hers = await everythingOf(all, ada);
}, 120_000);
afterAll(() => server.close());

const sent = ({ ask }: Person, { method, path, body }: ThingRequest): Promise<Answer> => ask(method, path, body);
const said = ({ status, body }: Answer, things: Things) => {
  const names = Object.values(things).map((name) => String(name).replaceAll('.', '\\.'));
  const text = JSON.stringify(body).replaceAll(new RegExp(`(?<![\\w-])(${names.join('|')})(?![\\w-])`, 'g'), 'NAME');
  return { status, text: text.replaceAll(/req_\w+/g, 'REQUEST') };
};

test(
  proves(['T-01', 'service.per-user'], 'every id of another is at every address and in every body as one that nobody has, and nothing is changed by it'),
  { timeout: 120_000 },
  async () => {
    const before = await readBy(ada, hers);
    expect(JSON.stringify(before)).toContain(canary(ada));
    const requests = [...(await addressed(server.url)), ...named];
    expect(requests.length).toBeGreaterThan(100);
    const wrong: unknown[] = [];
    for (const requestOf of requests) {
      const request = requestOf(hers);
      const answer = said(await sent(bob, request), hers);
      const nobody = said(await sent(bob, requestOf(nobodys)), nobodys);
      const line = `${request.method} ${request.path}`;
      if (answer.status !== 404 || JSON.stringify(answer) !== JSON.stringify(nobody) || answer.text.includes(canary(ada))) wrong.push([line, answer, nobody]);
    }
    expect(wrong).toEqual([]);
    // a chat that nobody has is made by it
    const put = { method: 'POST', path: '/user/update-chat-session-json', body: { session_id: hers.session, json_data: [{ user: 'me', message: 'stolen' }] } };
    expect((await sent(bob, put)).status).toBe(404);
    expect(await readBy(ada, hers)).toEqual(before);
  },
);

const meant = { user_id: 1, owner: 1, owner_id: 1, tenant_id: 1, organization_id: 1, role: 'admin', is_admin: true, plan: 'unlimited', quota: 1e9 };
const more = {
  ...meant,
  id: 424_242,
  created_at: '2001-01-01',
  createdAt: '2001-01-01',
  deleted_at: '2001-01-01',
  scope: 'admin',
  workspaceId: 1,
  right: 'owner',
};

test(
  proves('T-06', 'owner, role, plan, right, id and times in a body change nothing of them, and where fields are known they are 400'),
  { timeout: 120_000 },
  async () => {
    const cy = await person(all, { plan: 'unlimited' });
    const its = await everythingOf(all, cy);
    const columns = async () => {
      const lists = ['keys', 'datasets', 'personas', 'plugins', 'secrets', 'mcp-servers', 'agents', 'chats'].map(async (noun) => {
        const items = (await cy.ask('GET', `/server/mine/${noun}`)).body['items'] as readonly Record<string, unknown>[];
        return items
          .map(({ id, owner, right, createdAt, role, plan, scopes }) => JSON.stringify([noun, id, owner, right, createdAt, role, plan, scopes]))
          .toSorted();
      });
      const { body: user } = await all.admin('GET', `/server/admin/users/${cy.id}`);
      return [await Promise.all(lists), user['role'], user['plan'], (await cy.ask('GET', '/server/mine')).body['role']];
    };
    const before = await columns();
    const writes = (await addressed(server.url))
      .map((requestOf) => requestOf(its))
      .filter(({ method, path }) => method !== 'GET' && method !== 'DELETE' && !/grants$|rotate$|cancel$/.test(path));
    expect(writes.length).toBeGreaterThan(15);
    for (const { body = {}, ...write } of writes) {
      const { status } = await sent(cy, { ...write, body: { ...body, ...more } });
      expect([write.path, status === 500]).toEqual([write.path, false]);
    }
    for (const requestOf of named) {
      const { body = {}, ...write } = requestOf(its);
      if (/delete|deassign|user-api-key/.test(write.path)) continue;
      const { id: _, ...unnamed } = more;
      const { status } = await sent(cy, { ...write, body: { ...unnamed, ...body } });
      expect([write.path, status === 500]).toEqual([write.path, false]);
    }
    expect(await columns()).toEqual(before);
  },
);

test(proves('T-10', 'every answer to a credential is private and not stored, refusals too'), { timeout: 120_000 }, async () => {
  const requests = [...(await addressed(server.url)).map((requestOf) => requestOf(hers)), ...named.map((requestOf) => requestOf(hers))];
  for (const { key } of [ada, bob])
    for (const { path } of requests.filter(({ method }) => method === 'GET')) {
      const { status, headers, body } = await fetch(server.url + path, { headers: { 'x-access-tokens': key } });
      await body?.cancel();
      const vary = (headers.get('vary') ?? '').toLowerCase().split(', ');
      const said = [path, status, headers.get('cache-control'), vary.includes('authorization') && vary.includes('x-access-tokens')];
      expect(said).toEqual([path, status, 'private, no-store', true]);
    }
  const { headers } = await bob.ask('POST', '/server/execute-agent', { agent_id: hers.agent, message: 'x' });
  expect([headers.get('cache-control'), headers.get('etag')]).toEqual(['private, no-store', null]);
});

test(proves('T-12', 'five hundred requests of two users at once are each answered with what is their own'), { timeout: 120_000 }, async () => {
  const two = await Promise.all([person(all), person(all)]);
  const owned = await Promise.all(two.map((who) => everythingOf(all, who)));
  const reads = (await addressed(server.url))
    .map((requestOf) => owned.map((things) => requestOf(things)))
    .filter(([{ method, path } = { method: '', path: '' }]) => method === 'GET' && !path.endsWith('/tools'));
  const lists = ['get-datasets', 'get-personas', 'get-plugins', 'list-agents', 'list-mcp-servers', 'get-secrets', 'get-all-files-ingested'];
  const told: Promise<void>[] = [];
  for (let at = 0; told.length < 500; at++) {
    const own = at % 2;
    const who = two[own]!;
    const read = reads[Math.floor(at / 2) % reads.length]![own]!;
    const native = lists[Math.floor(at / 2) % lists.length]!;
    const word = `Say exactly: ${canary(who)}`;
    const asked = [
      sent(who, read),
      who.ask('POST', `/server/${native}`),
      who.ask('POST', '/server/chatcompat/v1/chat/completions', { model: 'built-in', messages: [{ role: 'user', content: word }] }),
      who.ask('POST', '/server/query', { message: word, model: 'built-in' }),
    ];
    for (const answer of asked)
      told.push(
        answer.then(({ status, body }) => {
          const text = JSON.stringify(body);
          expect([read.path, native, status, text.includes(canary(two[1 - own]!))]).toEqual([read.path, native, 200, false]);
        }),
      );
  }
  await Promise.all(told);
});

test(proves('T-14', 'ids that are not counted cannot be guessed, and what is counted is its owner’s'), async () => {
  const ids = async (make: () => Promise<string>) => Promise.all(Array.from({ length: 20 }, make));
  const completion = { model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: x' }] };
  const made = await Promise.all([
    ids(async () => String((await ada.ask('POST', '/user/create-chat-session', { title: 'x', json_data: [] })).body['session_id'])),
    ids(async () => String((await ada.ask('POST', '/server/chatcompat/v1/responses', { model: 'built-in', input: 'x' })).body['id'])),
    ids(async () => (await ada.ask('POST', '/server/chatcompat/v1/chat/completions', completion)).headers.get('x-request-id')!),
  ]);
  for (const some of made) {
    expect(new Set(some).size).toBe(20);
    // the last characters have nothing of time in them, nor of the id before
    expect(new Set(some.map((id) => id.slice(-12))).size).toBe(20);
    expect(some[0]!.length).toBeGreaterThan(24);
  }
  expect((await bob.ask('POST', '/server/execute-agent', { agent_id: hers.agent, message: 'x', streaming: false })).status).toBe(404);
});

/* Administrators of teams under /server/mine/teams, and auditors under /server/admin. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { administrate, newMember, type Member } from '../../support/members.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let lead: Member;
let member: Member;
let stranger: Member;
let team: { readonly id: number };
beforeAll(async () => {
  server = await startTestServer();
  [lead, member, stranger] = [await newMember(server), await newMember(server), await newMember(server)] as const;
  team = await administrate(server, 'POST', '/teams', { name: 'ops', plan: 'unlimited', members: [member.id], admins: [lead.id] });
});
afterAll(() => server.close());

async function asks(who: Member | string, method: string, path: string, body?: unknown) {
  const answer = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${typeof who === 'string' ? who : who.keys[0]}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const { error_ref: _, ...said } = (await answer.json()) as Record<string, unknown>;
  return { status: answer.status, body: said };
}

const mine = (rest = '') => `/server/mine/teams/${team.id}${rest}`;

test('an administrator of a team sees it and says who its members are, by id and by address', async () => {
  const about = { id: team.id, name: 'ops', plan: 'unlimited', admins: [lead.id] };
  expect(await asks(lead, 'GET', mine())).toEqual({ status: 200, body: { ...about, members: [member.id] } });
  const { email } = await administrate<{ email: string }>(server, 'GET', `/users/${stranger.id}`);
  const changed = await asks(lead, 'PATCH', mine(), { members: [member.id, email.toUpperCase()] });
  expect(changed).toEqual({ status: 200, body: { ...about, members: [member.id, stranger.id] } });
  expect(await asks(lead, 'PATCH', mine(), { members: [member.id] })).toMatchObject({ status: 200, body: { members: [member.id] } });
  const { items } = await administrate<{ items: { actor: { userId: number }; action: string }[] }>(server, 'GET', '/audit?action=team.change');
  expect(items[0]).toMatchObject({ action: 'team.change', actor: { userId: lead.id } });
});

test('an administrator of a team sees the keys of its members, and of nobody else', async () => {
  const { status, body } = await asks(lead, 'GET', mine('/keys'));
  expect(status).toBe(200);
  expect(body['items']).toEqual([expect.objectContaining({ userId: member.id, name: 'key 0', scopes: null, mcpTools: null, lastUsedAt: null })]);
  expect(JSON.stringify(body)).not.toContain(member.keys[0]);
});

test.each([
  ['a member whose id and address are unknown', [1, 'nobody@example.org'], /members\[1\]/],
  ['an id that is none', [0], /members\[0\]/],
  ['no list', 'all', /members/],
])('%s is 400 naming the field, and changes nothing', async (_what, members, says) => {
  const refused = await asks(lead, 'PATCH', mine(), { members });
  expect([refused.status, refused.body['message']]).toEqual([400, expect.stringMatching(says)]);
  expect(await asks(lead, 'GET', mine())).toMatchObject({ body: { members: [member.id] } });
});

test('to everybody else, a member too, a team under mine is not there; a key with scopes may not ask', async () => {
  const nowhere = await asks(lead, 'GET', '/server/mine/teams/999999');
  expect(nowhere.status).toBe(404);
  for (const who of [member, stranger, server.key])
    for (const [method, path, body] of [
      ['GET', mine()],
      ['PATCH', mine(), { members: [] }],
      ['GET', mine('/keys')],
    ] as const)
      expect(await asks(who, method, path, body)).toEqual(nowhere);
  const { key } = await administrate<{ key: string }>(server, 'POST', `/users/${lead.id}/keys`, { name: 'scoped', scopes: ['query'] });
  expect((await asks(key, 'GET', mine())).status).toBe(403);
});

test('an auditor sees what administrators see, and changes nothing', async () => {
  const { id } = await administrate<{ id: number }>(server, 'POST', '/users', { email: 'auditor@example.org', role: 'auditor' });
  const { key } = await administrate<{ key: string }>(server, 'POST', `/users/${id}/keys`, { name: 'k' });
  for (const path of ['/users', '/plans', '/teams', `/teams/${team.id}`, '/usage', '/logs', '/audit', '/regions', '/holders'])
    expect([path, (await asks(key, 'GET', `/server/admin${path}`)).status]).toEqual([path, 200]);
  const changes = [
    ['POST', '/users', { email: 'x@example.org' }],
    ['PATCH', `/users/${id}`, { role: 'admin' }],
    ['DELETE', `/users/${member.id}`],
    ['PUT', '/plans/p', {}],
    ['POST', `/users/${id}/keys`, { name: 'k' }],
    ['POST', '/regions/reset', {}],
    ['DELETE', `/teams/${team.id}`],
  ] as const;
  for (const [method, path, body] of changes) expect([path, (await asks(key, method, `/server/admin${path}`, body)).status]).toEqual([path, 403]);
  expect(await administrate(server, 'GET', `/users/${id}`)).toMatchObject({ role: 'auditor' });
  const { id: admin } = (await administrate<{ items: { id: number; role: string }[] }>(server, 'GET', '/users')).items.find(({ role }) => role === 'admin')!;
  expect((await asks(server.key, 'PATCH', `/server/admin/users/${admin}`, { role: 'auditor' })).status).toBe(409);
});

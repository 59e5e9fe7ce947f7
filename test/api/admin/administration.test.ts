import { copyFile, mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { onBothDatabases, onServer } from '../../support/databases.ts';
import { administer } from '../../support/postgres.ts';
import { chat, startTestServer, type TestServer } from '../../support/server.ts';
import { proves } from '../../support/proves.ts';

const say = { model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: hello' }], max_tokens: 5 };
const yaml = 'plans: { free: { monthlyTokens: 100000 }, team: { monthlyTokens: 500000 } }\n';

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown> & { readonly message?: string; readonly items?: Record<string, unknown>[]; readonly nextCursor?: string | null };
}

onBothDatabases('administration', ({ place }) => {
  async function server(): Promise<TestServer & { admin(method: string, path: string, body?: unknown): Promise<Answer> }> {
    const open = await startTestServer({ yaml, ...(await place()) });
    onTestFinished(open.close);
    return {
      ...open,
      async admin(method, path, body) {
        const answer = await open.ask(`/server/admin${path}`, body, { method });
        return { status: answer.status, body: (await answer.json()) as Answer['body'] };
      },
    };
  }

  /** A user with a key, and what a chat of theirs answers. */
  async function somebody({ admin, ask }: Awaited<ReturnType<typeof server>>, email = 'ada@example.org', key: object = {}) {
    const { body: user } = await admin('POST', '/users', { email });
    const { body: made } = await admin('POST', `/users/${String(user['id'])}/keys`, { name: 'laptop', ...key });
    const headers = { authorization: `Bearer ${String(made['key'])}` };
    return {
      id: Number(user['id']),
      keyId: Number(made['id']),
      key: String(made['key']),
      headers,
      chat: async (model = 'built-in') => (await ask(chat, { ...say, model }, { headers })).status,
    };
  }

  test('an address that takes no query parameters refuses them with 400 that names the first one', async () => {
    const { ask } = await server();
    for (const path of ['/server/admin/plans', '/server/admin/holders', '/server/admin/regions', '/server/admin/users/1', '/server/mine']) {
      const answer = await ask(`${path}?owners=2`);
      expect([path, answer.status, await answer.text()]).toEqual([path, 400, expect.stringContaining('owners is not known')]);
    }
    expect((await ask('/.well-known/jwks.json?v=2')).status).toBe(200);
  });

  test('a holder that lives is not written off; one that is silent is, once, and who did it is remembered', async () => {
    const where = await place();
    const open = await startTestServer({ yaml, ...where });
    onTestFinished(open.close);
    const ask = async (path: string, method = 'GET') => {
      const answer = await open.ask(`/server/admin/holders${path}`, undefined, { method });
      return { status: answer.status, body: (await answer.json()) as Answer['body'] };
    };
    const { body } = await ask('');
    expect(body.items).toHaveLength(1);
    const [own] = body.items!;
    expect(own).toMatchObject({ machine: hostname(), closedAt: null, how: null, by: null, accounts: 0 });
    expect(await ask(`/${String(own!['id'])}/write-off`, 'POST')).toMatchObject({ status: 409, body: { message: expect.stringContaining('alive') } });
    expect((await ask('/nobody/write-off', 'POST')).status).toBe(404);
    if (!where.databaseUrl) return; // nobody else can be in an embedded database
    await administer(where.databaseUrl, `insert into holders (id, machine, seen_at) values ('lost', 'burnt', now() - interval '2 minutes')`);
    await administer(
      where.databaseUrl,
      "insert into leases (holder, owner, kind, month, granted, turn, moved) values ('lost', 'user:7', 'inference', '2026-11', 500, 1, 0)",
    );
    const doctor = (await (await open.ask('/server/admin/doctor', undefined, { method: 'GET' })).json()) as Answer['body'];
    expect(doctor.items).toContainEqual(
      expect.objectContaining({
        name: 'holder lost',
        state: 'warning',
        says: expect.stringMatching(/^The server on burnt has been silent for 2 minutes and holds shares of 1 quota,/) as string,
      }),
    );
    const gone = await ask('/lost/write-off', 'POST');
    expect(gone).toMatchObject({ status: 200, body: { machine: 'burnt', how: 'written-off', by: 'admin@localhost' } });
    expect((await ask('/lost/write-off', 'POST')).status).toBe(409);
  });

  test('a user may be made with a password of 8 to 256 characters, which is never shown', async () => {
    const { admin } = await server();
    const password = 'correct horse';
    const made = await admin('POST', '/users', { email: 'ada@example.org', password });
    expect(made).toEqual({ status: 201, body: { id: 2, email: 'ada@example.org', plan: 'free', role: 'user', status: 'active' } });
    expect(JSON.stringify([await admin('GET', '/users'), await admin('GET', '/users/2')])).not.toMatch(/password|scrypt|correct/);
    for (const wrong of ['1234567', 'x'.repeat(257), '', 12345678]) {
      const refused = await admin('POST', '/users', { email: 'bob@example.org', password: wrong });
      expect(refused).toMatchObject({ status: 400, body: { message: expect.stringMatching(/^password must /) } });
      expect(JSON.stringify(refused.body)).not.toContain('12345678');
    }
  });

  test('a user is made, found, changed and deleted', async () => {
    const { admin } = await server();
    const made = await admin('POST', '/users', { email: 'Ada@Example.org', plan: 'team', role: 'admin' });
    expect(made).toEqual({ status: 201, body: { id: 2, email: 'ada@example.org', plan: 'team', role: 'admin', status: 'active' } });
    expect((await admin('POST', '/users', { email: 'bob@example.org' })).body).toMatchObject({ id: 3, plan: 'free', role: 'user' });
    expect((await admin('POST', '/users', { email: 'ADA@example.org' })).status).toBe(409);

    const changed = await admin('PATCH', '/users/2', { role: 'user', monthlyTokens: 5, monthlyUsd: 0.5, concurrentStreams: 0 });
    expect(changed).toEqual({
      status: 200,
      body: { ...made.body, role: 'user', monthlyTokens: 5, monthlyUsd: 0.5, concurrentStreams: 0 },
    });
    expect((await admin('PATCH', '/users/2', { monthlyTokens: null, plan: 'free' })).body).toEqual({
      ...made.body,
      role: 'user',
      plan: 'free',
      monthlyUsd: 0.5,
      concurrentStreams: 0,
    });
    expect((await admin('GET', '/users/2')).body).toMatchObject({ plan: 'free', monthlyUsd: 0.5 });
    expect((await admin('DELETE', '/users/2')).body).toMatchObject({ id: 2, email: 'ada@example.org' });
    expect((await admin('GET', '/users/2')).status).toBe(404);
    expect((await admin('POST', '/users', { email: 'ada@example.org' })).body).toMatchObject({ email: 'ada@example.org' });
  });

  test('users are listed in pages, and found by a part of their address, whose signs mean only themselves', async () => {
    const { admin } = await server();
    for (const email of ['a_1@x.org', 'a%2@x.org', 'b@y.org', "o'hara@y.org"]) expect((await admin('POST', '/users', { email })).status).toBe(201);
    const seen: unknown[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { body } = await admin('GET', `/users?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`);
      expect(body.items!.length).toBeLessThanOrEqual(2);
      seen.push(...body.items!.map(({ email }) => email));
      cursor = body.nextCursor ?? null;
    }
    expect(seen).toEqual(['admin@localhost', 'a_1@x.org', 'a%2@x.org', 'b@y.org', "o'hara@y.org"]);
    const found = async (query: string) => (await admin('GET', `/users?query=${encodeURIComponent(query)}`)).body.items!.map(({ email }) => email);
    expect(await found('_')).toEqual(['a_1@x.org']);
    expect(await found('%')).toEqual(['a%2@x.org']);
    expect(await found("O'H")).toEqual(["o'hara@y.org"]);
    expect(await found('\\')).toEqual([]);
  });

  test('what is wrong is named, and nothing is made', async () => {
    const { admin } = await server();
    const { body: user } = await admin('POST', '/users', { email: 'ada@example.org' });
    const path = `/users/${String(user['id'])}`;
    const long = 'x'.repeat(1_000_000);
    const wrong: [method: string, path: string, body: unknown, says: RegExp][] = [
      ['POST', '/users', undefined, /body is needed/],
      ['POST', '/users', [], /must be an object/],
      ['POST', '/users', {}, /^email is required/],
      ['POST', '/users', { email: null }, /^email must be a string/],
      ['POST', '/users', { email: `${long}@x.org` }, /^email must have at most 254/],
      ['POST', '/users', { email: 'no-address' }, /^email must be an e-mail address/],
      ['POST', '/users', { email: 'а@example.org' }, /^email must be an e-mail address/], // a Cyrillic letter
      ['POST', '/users', { email: 'ada＠example.org' }, /^email must be an e-mail address/],
      ['POST', '/users', { email: 'a\u0000@example.org' }, /^email must be an e-mail address/],
      ['POST', '/users', { email: 'a@b.org\r\nBcc: x@y.org' }, /^email must be an e-mail address/],
      ['POST', '/users', { email: 'b@x.org', plan: 'nothing' }, /^plan must name a plan/],
      ['POST', '/users', { email: 'b@x.org', plan: 'constructor' }, /^plan must name a plan/],
      ['POST', '/users', { email: 'b@x.org', plan: '__proto__' }, /^plan must name a plan/],
      ['POST', '/users', { email: 'b@x.org', role: 'root' }, /^role must be "user", "auditor" or "admin"/],
      ['POST', '/users', { email: 'b@x.org', id: 1 }, /^id is not known/],
      ['POST', '/users', { email: 'b@x.org', status: 'active' }, /^status is not known/],
      ['POST', '/users', { email: 'b@x.org', [long]: 1 }, /^x{100,300}/],
      ['PATCH', path, { monthlyTokens: -1 }, /^monthlyTokens must be at least 0/],
      ['PATCH', path, { monthlyTokens: 1.5 }, /^monthlyTokens must be an? /],
      ['PATCH', path, { monthlyTokens: '5' }, /^monthlyTokens must be an? /],
      ['PATCH', path, { monthlyTokens: 2 ** 60 }, /^monthlyTokens must be /],
      ['PATCH', path, '{"monthlyUsd":1e400}', /number/],
      ['PATCH', path, '{"monthlyUsd":NaN}', /JSON/],
      ['PATCH', path, { monthlyUsd: -0.01 }, /^monthlyUsd must be between 0 and/],
      ['PATCH', path, { status: 'gone' }, /^status must be "active" or "suspended"/],
      ['PATCH', path, { email: 'x@y.org' }, /^email is not known/],
      ['POST', `${path}/keys`, {}, /^name is required/],
      ['POST', `${path}/keys`, { name: '' }, /^name must not be empty/],
      ['POST', `${path}/keys`, { name: long }, /^name must have at most 100/],
      ['POST', `${path}/keys`, { name: 'a\u0000b' }, /^name must be a name, without control/],
      ['POST', `${path}/keys`, { name: 'k', scopes: [] }, /^scopes must not be empty/],
      ['POST', `${path}/keys`, { name: 'k', scopes: ['root'] }, /^scopes\[0\] must be "query"/],
      ['POST', `${path}/keys`, { name: 'k', scopes: 'admin' }, /^scopes must be an array/],
      ['POST', `${path}/keys`, { name: 'k', expiresAt: 'tomorrow' }, /^expiresAt must be a time in ISO 8601/],
      ['POST', `${path}/keys`, { name: 'k', expiresAt: '2020-01-01' }, /^expiresAt must be in the future/],
      ['POST', `${path}/keys`, { name: 'k', models: [] }, /^models must not be empty/],
      ['POST', `${path}/keys`, { name: 'k', models: ['\u0000'] }, /^models\[0\] must be the name of a model/],
      ['POST', `${path}/keys`, { name: 'k', key: 'k'.repeat(64) }, /^key is not known/],
      ['POST', '/teams', { name: 'ops' }, /^plan is required/],
      ['POST', '/teams', { name: 'ops', plan: 'nothing' }, /^plan must name a plan/],
      ['POST', '/teams', { name: long, plan: 'free' }, /^name must have at most 100/],
      ['POST', '/teams', { name: 'ops', plan: 'free', members: [1, 999] }, /^members\[1\] must be the id of a user/],
      ['POST', '/teams', { name: 'ops', plan: 'free', members: [-1] }, /^members\[0\] must be at least 1/],
      ['POST', '/teams', { name: 'ops', plan: 'free', members: ['1'] }, /^members\[0\] must be an integer/],
      ['POST', '/teams', `{"name":"ops","plan":"free","members":[${'1,'.repeat(300_000)}1]}`, /^members must have at most 10000/],
      ['PUT', '/plans/gold', { monthlyTokens: -1 }, /^monthlyTokens must be at least 0/],
      ['PUT', '/plans/gold', { monthly: 1 }, /^monthly is not known/],
      ['PUT', '/plans/..%2F..%2Fetc', {}, /^The name of a plan/],
      ['PUT', `/plans/${'x'.repeat(65)}`, {}, /^The name of a plan/],
      ['GET', '/users?limit=0', undefined, /^limit must be between 1 and 200/],
      ['GET', '/users?limit=201', undefined, /^limit must be between 1 and 200/],
      ['GET', '/users?limit=1e9', undefined, /^limit must be an integer/],
      ['GET', '/users?limit=5&limit=6', undefined, /^limit is given more than once/],
      ['GET', '/users?limits=5', undefined, /^limits is not known/],
      ['GET', '/users?cursor=x', undefined, /^cursor must be/],
      ['GET', `/users?cursor=${Buffer.from('["users","1 or 1=1"]').toString('base64url')}`, undefined, /^cursor must be/],
      ['GET', `/teams?cursor=${Buffer.from('["users",1]').toString('base64url')}`, undefined, /^cursor must be/],
      ['GET', '/logs?cursor=x', undefined, /^cursor must be/],
      ['GET', '/logs?status=7', undefined, /^status must be between 100 and 599/],
      ['GET', '/logs?model=%00', undefined, /./],
      ['GET', '/users?query=%00', undefined, /./],
      ['GET', '/usage?from=yesterday', undefined, /^from must be a time in ISO 8601/],
      ['GET', '/usage?from=2026-02-30', undefined, /^from must be a time in ISO 8601/],
      ['GET', '/usage?from=0000-01-01', undefined, /^from must be a time in ISO 8601/],
      ['GET', '/logs?to=0000-01-01', undefined, /^to must be a time in ISO 8601/],
      ['GET', '/logs?to=9999-12-31T23:59:59-12:00', undefined, /^to must be a time in ISO 8601/],
      ['GET', '/votes?from=0000-01-01', undefined, /^from must be a time in ISO 8601/],
      ['GET', '/votes?from=2026-02-30', undefined, /^from must be a time in ISO 8601/],
      ['GET', '/votes?to=2026-11-27T10:00:00', undefined, /^to must be a time in ISO 8601/],
      ['GET', '/usage?from=2026-02-02&to=2026-02-01', undefined, /^to must not be before from/],
      ['GET', '/usage?to=2026-02-01', undefined, /^from is needed/],
      ['GET', '/usage?groupBy=model,secrets', undefined, /^groupBy must be words out of/],
    ];
    for (const [method, address, body, says] of wrong) {
      const { status, body: answer } = await admin(method, address, body);
      expect({ method, address, status, message: answer.message }).toEqual({ method, address, status: 400, message: expect.stringMatching(says) as string });
      expect(answer.message!.length).toBeLessThan(400);
    }
    expect((await admin('GET', '/users')).body.items).toHaveLength(2);
    expect((await admin('GET', '/teams')).body.items).toHaveLength(0);
    expect((await admin('GET', `${path}/keys`)).body.items).toHaveLength(0);
  });

  test("an id that is nobody's, or no id, is 404 whatever is asked of it", async () => {
    const { admin } = await server();
    const ids = ['0', '999', '01', '1.0', '-1', '1%20', '9007199254740993', 'NaN', '..%2f1', '%00', 'x'.repeat(3000)];
    for (const path of ids.flatMap((id) => [`/users/${id}`, `/teams/${id}`])) {
      const bodies = { GET: undefined, PATCH: { plan: 'free' }, DELETE: undefined };
      for (const [method, body] of Object.entries(bodies)) expect([method, path, (await admin(method, path, body)).status]).toEqual([method, path, 404]);
    }
  });

  test('a key shows itself once, and in lists only its ends; another user does not have it', async () => {
    const open = await server();
    const { id, keyId, key } = await somebody(open, 'ada@example.org', { scopes: ['passthrough', 'passthrough'], expiresAt: '2099-01-01' });
    const bob = await somebody(open, 'bob@example.org');
    const { body } = await open.admin('GET', `/users/${id}/keys`);
    expect(body.items).toMatchObject([{ id: keyId, name: 'laptop', scopes: ['passthrough'], models: null, expiresAt: '2099-01-01T00:00:00.000Z' }]);
    expect(JSON.stringify(body)).not.toContain(key);
    expect((await open.admin('DELETE', `/users/${bob.id}/keys/${keyId}`)).status).toBe(404);
    expect(await Promise.all([open.admin('GET', '/users/999/keys'), open.admin('POST', '/users/999/keys', { name: 'k' })])).toMatchObject([
      { status: 404 },
      { status: 404 },
    ]);
    expect((await open.admin('DELETE', `/users/${id}/keys/${keyId}`)).status).toBe(200);
    expect((await open.admin('DELETE', `/users/${id}/keys/${keyId}`)).status).toBe(404);
    expect((await open.admin('GET', `/users/${id}/keys`)).body.items).toEqual([]);
  });

  test('what is changed holds for the next call: suspended, back again, limited, revoked, deleted', async () => {
    const open = await server();
    const { admin } = open;
    const ada = await somebody(open);
    expect(await ada.chat()).toBe(200);
    await admin('PATCH', `/users/${ada.id}`, { status: 'suspended' });
    expect(await ada.chat()).toBe(401);
    await admin('PATCH', `/users/${ada.id}`, { status: 'active' });
    expect(await ada.chat()).toBe(200);
    await admin('PATCH', `/users/${ada.id}`, { requestsPerMinute: 0 });
    expect(await ada.chat()).toBe(429);
    await admin('PATCH', `/users/${ada.id}`, { requestsPerMinute: null });
    expect(await ada.chat()).toBe(200);
    await admin('PUT', '/plans/none', { requestsPerMinute: 0 });
    await admin('PATCH', `/users/${ada.id}`, { plan: 'none' });
    expect(await ada.chat()).toBe(429);
    await admin('PUT', '/plans/none', {});
    expect(await ada.chat()).toBe(200);
    await admin('DELETE', `/users/${ada.id}/keys/${ada.keyId}`);
    expect(await ada.chat()).toBe(401);

    const bob = await somebody(open, 'bob@example.org');
    expect(await bob.chat()).toBe(200);
    expect((await admin('DELETE', `/users/${bob.id}`)).status).toBe(200);
    expect(await bob.chat()).toBe(401);
    await expect.poll(async () => (await admin('GET', `/logs?userId=${bob.id}`)).body.items!.length, { timeout: 30_000 }).toBe(1);
  });

  test('a key that is narrowed to models knows no other: 404, and not in the list', async () => {
    const open = await server();
    const ada = await somebody(open, 'ada@example.org', { models: ['other'] });
    const bob = await somebody(open, 'bob@example.org', { models: ['built-in'] });
    const models = async (headers: Record<string, string>, id = '') => {
      const answer = await open.ask(`/server/chatcompat/v1/models${id}`, undefined, { headers });
      return [answer.status, ((await answer.json()) as { data?: { id: string }[] }).data?.map((one) => one.id)];
    };
    expect(await models(ada.headers)).toEqual([200, []]);
    expect(await models(bob.headers)).toEqual([200, ['built-in']]);
    expect((await models(ada.headers, '/built-in'))[0]).toBe(404);
    expect((await models(bob.headers, '/built-in'))[0]).toBe(200);
    expect([await ada.chat(), await bob.chat()]).toEqual([404, 200]);
    const embed = await open.ask('/server/chatcompat/v1/embeddings', { input: 'a' }, { headers: bob.headers });
    expect(embed.status).toBe(404); // no falling back to a model that is not among them
    const refused = await open.ask(chat, say, { headers: ada.headers });
    expect(await refused.json()).toMatchObject({ error: { code: 'model_not_found', param: 'model' } });
  });

  test('teams have members and a plan; who is deleted leaves them', async () => {
    const open = await server();
    const { admin } = open;
    const [ada, bob] = [await somebody(open), await somebody(open, 'bob@example.org')];
    const made = await admin('POST', '/teams', { name: '../../etc', plan: 'team', members: [bob.id, ada.id, ada.id] });
    expect(made).toEqual({ status: 201, body: { id: made.body['id'], name: '../../etc', plan: 'team', members: [ada.id, bob.id], admins: [] } });
    const path = `/teams/${String(made.body['id'])}`;
    expect((await admin('POST', '/teams', { name: '../../ETC', plan: 'team' })).status).toBe(409);
    const other = await admin('POST', '/teams', { name: 'other', plan: 'team' });
    expect(other.body).toMatchObject({ members: [] });
    expect((await admin('PATCH', path, { name: 'other' })).status).toBe(409);
    expect((await admin('PATCH', path, { members: [ada.id], plan: 'free' })).body).toMatchObject({ name: '../../etc', plan: 'free', members: [ada.id] });
    expect(await ada.chat()).toBe(200);
    await admin('DELETE', `/users/${ada.id}`);
    expect((await admin('GET', path)).body).toMatchObject({ members: [] });
    const { body } = await admin('GET', '/teams?limit=1');
    expect(body.items).toHaveLength(1);
    expect((await admin('GET', `/teams?limit=1&cursor=${String(body['nextCursor'])}`)).body).toMatchObject({ items: [{ name: 'other' }], nextCursor: null });
    expect((await admin('DELETE', path)).status).toBe(200);
    expect((await admin('GET', path)).status).toBe(404);
  });

  test('a plan of the file stands above all and cannot be put; others can, as the file has them', async () => {
    const { admin } = await server();
    expect((await admin('PUT', '/plans/free', { monthlyTokens: 1 })).status).toBe(409);
    expect((await admin('PUT', '/plans/unlimited', { monthlyTokens: 1 })).status).toBe(409);
    expect(await admin('PUT', '/plans/gold', { monthlyTokens: 9_000_000, monthlyUsd: 12.5 })).toMatchObject({ status: 200, body: { name: 'gold' } });
    expect((await admin('PUT', '/plans/gold', { requestsPerMinute: 7 })).status).toBe(200);
    expect((await admin('GET', '/plans')).body.items).toEqual([
      { name: 'free', source: 'settings', monthlyTokens: 100_000 },
      { name: 'gold', source: 'database', requestsPerMinute: 7 },
      { name: 'team', source: 'settings', monthlyTokens: 500_000 },
      { name: 'unlimited', source: 'built-in' },
    ]);
  });

  test('a plan that nobody has is deleted; one in use, of the file or built in is not', async () => {
    const { admin } = await server();
    await admin('PUT', '/plans/gold', { requestsPerMinute: 7 });
    const { body: ada } = await admin('POST', '/users', { email: 'ada@example.org', plan: 'gold' });
    const { body: team } = await admin('POST', '/teams', { name: 'ops', plan: 'gold', members: [] });
    for (const name of ['free', 'unlimited', 'gold']) expect([name, (await admin('DELETE', `/plans/${name}`)).status]).toEqual([name, 409]);
    expect((await admin('DELETE', '/plans/nowhere')).status).toBe(404);
    await admin('PATCH', `/users/${String(ada.id)}`, { plan: 'free' });
    expect((await admin('DELETE', '/plans/gold')).body.error).toMatch(/users: 0, teams: 1/);
    await admin('PATCH', `/teams/${String(team.id)}`, { plan: 'free' });
    expect(await admin('DELETE', '/plans/gold')).toMatchObject({ status: 200, body: { name: 'gold', source: 'database', requestsPerMinute: 7 } });
    expect((await admin('POST', '/users', { email: 'bob@example.org', plan: 'gold' })).status).toBe(400);
  });

  test('the last active administrator stays', async () => {
    const { admin } = await server();
    for (const change of [{ role: 'user' }, { status: 'suspended' }]) expect((await admin('PATCH', '/users/1', change)).status).toBe(409);
    expect((await admin('DELETE', '/users/1')).status).toBe(409);
    expect((await admin('PATCH', '/users/1', { plan: 'free', status: 'active' })).status).toBe(200);
    await admin('POST', '/users', { email: 'second@example.org', role: 'admin' });
    await admin('PATCH', '/users/2', { status: 'suspended' });
    expect((await admin('DELETE', '/users/1')).status).toBe(409);
  });

  test('of two who demote the last two administrators at the same time one is told no', async () => {
    const { admin } = await server();
    await admin('POST', '/users', { email: 'second@example.org', role: 'admin' });
    const { body } = await admin('POST', '/users/2/keys', { name: 'k' });
    expect(body['key']).toBeDefined();
    const answers = await Promise.all([1, 2].map(async (id) => (await admin('PATCH', `/users/${id}`, { role: 'user' })).status));
    // who came second may have found its own key to be no administrator's any more
    expect(answers.filter((status) => status === 200)).toHaveLength(1);
    expect(answers.every((status) => [200, 409, 404].includes(status))).toBe(true);
  });

  test('of twenty who add the same address one does', async () => {
    const { admin } = await server();
    const answers = await Promise.all(
      Array.from({ length: 20 }, async (_, at) => (await admin('POST', '/users', { email: at % 2 ? 'ada@x.org' : 'Ada@X.org' })).status),
    );
    expect(answers.toSorted((a, b) => a - b)).toEqual([201, ...Array.from({ length: 19 }, () => 409)]);
  });

  test('what was used is summed by words, and logged newest first', async () => {
    const open = await server();
    const ada = await somebody(open);
    for (let n = 0; n < 3; n++) expect(await ada.chat()).toBe(200);
    await expect.poll(async () => (await open.admin('GET', `/logs?userId=${ada.id}`)).body.items!.length, { timeout: 30_000 }).toBe(3);
    const { body: logs } = await open.admin('GET', '/logs?limit=2&model=built-in&status=200');
    expect(logs.items).toHaveLength(2);
    const rest = await open.admin('GET', `/logs?limit=2&cursor=${String(logs['nextCursor'])}`);
    expect(rest.body).toMatchObject({ items: [{ userId: ada.id, keyId: ada.keyId, model: 'built-in', attempts: 1 }], nextCursor: null });
    const [first] = logs.items!;
    expect(first).toMatchObject({ step: 0, app: 'laptop', face: 'chatcompat', status: 200, end: 'completed', provenance: 'provider' });
    const detail = await open.admin('GET', `/logs/${String(first!['requestId'])}`);
    expect(detail.body).toMatchObject({ requestId: first!['requestId'], attempts: 1, tries: [{ provider: 'built-in', model: 'built-in' }] });
    expect((await open.admin('GET', '/logs/req_0000000000000000000000')).status).toBe(404);
    const usage = await open.admin('GET', '/usage?groupBy=user,key,model');
    const tokens = Number(first!['inputTokens']);
    expect(usage.body.items).toMatchObject([{ user: ada.id, key: ada.keyId, model: 'built-in', requests: 3, inputTokens: 3 * tokens, errors: 0 }]);
    expect((await open.admin('GET', '/usage')).body.items).toMatchObject([{ requests: 3 }]);
    expect((await open.admin('GET', '/usage?groupBy=day&from=2020-01-01&to=2020-02-01')).body.items).toEqual([]);
  });
});

// The embedded database does one thing after the other.
describe.skipIf(!inject('postgres'))('changes that wait for each other', () => {
  test('a plan that somebody is being given at the same time is in use', async () => {
    const where = await onServer(inject('postgres')!).place();
    const { ask, close } = await startTestServer({ yaml, ...where });
    onTestFinished(close);
    const admin = async (method: string, path: string, body?: unknown) => (await ask(`/server/admin${path}`, body, { method })).status;
    const database = new Client({ connectionString: where.databaseUrl });
    await database.connect();
    onTestFinished(() => database.end());
    const waiting = async () => {
      const { rowCount } = await database.query("select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'");
      return rowCount ?? 0;
    };
    await admin('POST', '/users', { email: 'ada@example.org' });
    await admin('POST', '/teams', { name: 'ops', plan: 'free' });
    for (const [path, table, id] of [
      ['/users/2', 'users', 2],
      ['/teams/1', 'teams', 1],
    ] as const) {
      await admin('PUT', '/plans/gold', { requestsPerMinute: 7 });
      await database.query(`begin; select from ${table} where id = ${id} for update`);
      const given = admin('PATCH', path, { plan: 'gold' });
      await expect.poll(waiting).toBe(1);
      const deleted = admin('DELETE', '/plans/gold');
      await expect.poll(async () => (await Promise.race([deleted, waiting()])) > 1).toBe(true);
      await database.query('commit');
      expect([path, await given, await deleted]).toEqual([path, 200, 409]);
      await admin('PATCH', path, { plan: 'free' });
    }
  });
});

describe.skipIf(!inject('postgres'))('two machines on one database', () => {
  test(proves('G-05', 'what is changed on one holds on the other within two seconds, within five where nobody could be notified'), async () => {
    const { folder, databaseUrl = '' } = await onServer(inject('postgres')!).place();
    const [first, second] = [join(folder, 'a'), join(folder, 'b')];
    await mkdir(join(second, 'data'), { recursive: true });
    await mkdir(first);
    const one = await startTestServer({ yaml, folder: first, databaseUrl });
    onTestFinished(one.close);
    await copyFile(join(first, 'data/master.key'), join(second, 'data/master.key'));
    const other = await startTestServer({ yaml, folder: second, databaseUrl });
    onTestFinished(other.close);
    const admin = async (method: string, path: string, body?: unknown) =>
      (await one.ask(`/server/admin${path}`, body, { method })).json() as Promise<{ key: string }>;
    await admin('POST', '/users', { email: 'ada@example.org' });
    const { key } = await admin('POST', '/users/2/keys', { name: 'laptop' });
    const there = async () => (await other.ask(chat, say, { headers: { authorization: `Bearer ${key}` } })).status;
    // without being told it would know the key for a minute
    const soon = async (status: number) => {
      await expect.poll(there, { timeout: 30_000 }).toBe(status);
    };

    expect(await there()).toBe(200);
    await admin('PATCH', '/users/2', { status: 'suspended' });
    await soon(401);
    await admin('PATCH', '/users/2', { status: 'active' });
    await soon(200);
    await admin('PUT', '/plans/none', { requestsPerMinute: 0 });
    await admin('PATCH', '/users/2', { plan: 'none' });
    await soon(429);
    await admin('PUT', '/plans/none', {});
    await soon(200);
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${new URL(databaseUrl).pathname.slice(1)}'`;
    await administer(inject('postgres')!, cut);
    await expect.poll(async () => (await one.ask('/server/admin/users/2/keys/2', undefined, { method: 'DELETE' })).status, { timeout: 30_000 }).toBe(200);
    await soon(401);
  });
});

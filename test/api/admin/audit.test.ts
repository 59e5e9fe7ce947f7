/* The audit trail through the public interface: who changed what, when and from where. */
import { join } from 'node:path';
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { onBothDatabases, type Place } from '../../support/databases.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

interface AuditItem {
  readonly id: number;
  readonly at: string;
  readonly actor: { readonly type: string; readonly userId: number | null; readonly keyId: number | null };
  readonly action: string;
  readonly target: { readonly kind: string; readonly id: string | null };
  readonly changed: Record<string, { from?: unknown; to?: unknown }>;
  readonly requestId: string | null;
  readonly address: string | null;
}

onBothDatabases('the audit trail', ({ place, open }) => {
  async function dragoman(where?: Place) {
    const server = await startTestServer(where ?? (await place()));
    onTestFinished(server.close);
    return { ...server, admin: asked(server) };
  }

  const asked = (server: TestServer) => async (method: string, path: string, body?: unknown) => {
    const answer = await server.ask(`/server/admin${path}`, body, { method });
    return { status: answer.status, id: answer.headers.get('x-request-id'), body: (await answer.json()) as Record<string, unknown> };
  };

  const trail = async (server: TestServer, query = '') =>
    (await asked(server)('GET', `/audit${query}`)).body as unknown as { items: AuditItem[]; nextCursor: string | null };

  /** Of a holder whose machine is gone, with two lessons; nobody else may be in the embedded database meanwhile. */
  async function withLostHolder(): Promise<Place> {
    const where = await place();
    await (await startTestServer(where)).close();
    const store = await open(where.databaseUrl ? { databaseUrl: where.databaseUrl } : { folder: join(where.folder, 'data') });
    await sql`insert into holders (id, machine, seen_at) values ('lost', 'burnt', now() - interval '2 minutes')`.execute(store.db);
    for (const model of ['m', 'n'])
      await sql`insert into lesson (place, provider, wire, model, fields, learned, quirks, until)
        values ('x', 'p', 'w', ${model}, '[]', '{}', '{}', now() + interval '1 hour')`.execute(store.db);
    await store.close();
    return where;
  }

  const long = 60_000; // the embedded database is opened three times
  test('each address of administration that changes something leaves one entry, with who, what and where from, and no secret', { timeout: long }, async () => {
    const server = await dragoman(await withLostHolder());
    const { admin } = server;
    const password = 'correct horse 91';
    const { body: ada } = await admin('POST', '/users', { email: 'ada@example.org', plan: 'unlimited' });
    const { body: key } = await admin('POST', `/users/${String(ada['id'])}/keys`, { name: 'old' });
    const { body: team } = await admin('POST', '/teams', { name: 'old', plan: 'unlimited', members: [1] });
    await admin('PUT', '/plans/silver', { monthlyTokens: 7 });
    const before = (await trail(server)).items.length;

    const user = `/users/${String(ada['id'])}`;
    const teamPath = `/teams/${String(team['id'])}`;
    /** What is sent, what the trail then says was done, to which kind of thing, and what changed. */
    const changes: Record<string, [path: string, body: object | undefined, action: string, changed: object]> = {
      'PUT /plans/{name}': ['/plans/gold', { monthlyTokens: 5 }, 'plan.put', { monthlyTokens: { to: 5 } }],
      'DELETE /plans/{name}': ['/plans/silver', undefined, 'plan.delete', { monthlyTokens: { from: 7 } }],
      'POST /users': [
        '/users',
        { email: 'bob@example.org', plan: 'gold', password },
        'user.add',
        { email: { to: 'bob@example.org' }, plan: { to: 'gold' }, role: { to: 'user' }, status: { to: 'active' }, hasPassword: { to: true } },
      ],
      'PATCH /users/{id}': [user, { plan: 'gold', monthlyUsd: 1.5 }, 'user.change', { plan: { from: 'unlimited', to: 'gold' }, monthlyUsd: { to: 1.5 } }],
      'POST /users/{id}/keys': [
        `${user}/keys`,
        { name: 'new', scopes: ['query'] },
        'key.create',
        { userId: { to: ada['id'] }, name: { to: 'new' }, scopes: { to: ['query'] }, models: { to: null }, expiresAt: { to: null } },
      ],
      'POST /users/{id}/keys/{key}/rotate': [
        `${user}/keys/${String(key['id'])}/rotate`,
        { graceSeconds: 0 },
        'key.rotate',
        { shown: { from: expect.any(String), to: expect.any(String) }, oldUntil: { to: expect.any(String) } },
      ],
      'DELETE /users/{id}/keys/{key}': [
        `${user}/keys/${String(key['id'])}`,
        undefined,
        'key.revoke',
        { userId: { from: ada['id'] }, name: { from: 'old' }, scopes: { from: null }, models: { from: null }, expiresAt: { from: null } },
      ],
      'POST /teams': [
        '/teams',
        { name: 'new', plan: 'gold' },
        'team.add',
        { name: { to: 'new' }, plan: { to: 'gold' }, members: { to: [] }, admins: { to: [] }, limits: { to: {} } },
      ],
      'PATCH /teams/{id}': [teamPath, { members: [ada['id']] }, 'team.change', { members: { from: [1], to: [ada['id']] } }],
      'DELETE /teams/{id}': [
        teamPath,
        undefined,
        'team.delete',
        { name: { from: 'old' }, plan: { from: 'unlimited' }, members: { from: [ada['id']] }, admins: { from: [] }, limits: { from: {} } },
      ],
      'DELETE /users/{id}': [
        user,
        undefined,
        'user.delete',
        {
          email: { from: 'ada@example.org' },
          plan: { from: 'gold' },
          role: { from: 'user' },
          status: { from: 'active' },
          monthlyUsd: { from: 1.5 },
        },
      ],
      'DELETE /lessons/{id}': ['/lessons/1', undefined, 'lesson.forget', { provider: { from: 'p' }, wire: { from: 'w' }, model: { from: 'm' } }],
      'DELETE /lessons': ['/lessons', undefined, 'lessons.forget', { count: { from: 1 } }],
      'POST /regions/reset': ['/regions/reset', undefined, 'regions.reset', {}],
      'POST /holders/{id}/write-off': [
        '/holders/lost/write-off',
        undefined,
        'holder.write-off',
        { how: { to: 'written-off' }, machine: { to: 'burnt' }, accounts: { to: 0 } },
      ],
    };
    const { paths } = (await (await server.ask('/openapi.json')).json()) as { paths: Record<string, Record<string, unknown>> };
    const addresses = Object.entries(paths).flatMap(([path, methods]) =>
      path.startsWith('/server/admin/') ? Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.slice('/server/admin'.length)}`) : [],
    );
    expect(Object.keys(changes).toSorted()).toEqual(addresses.filter((one) => !one.startsWith('GET ')).toSorted());

    const secrets: string[] = [password];
    let count = before;
    for (const [address, [path, body, action, changed]] of Object.entries(changes)) {
      const answer = await admin(address.split(' ')[0]!, path, body);
      expect([address, answer.status]).toEqual([address, expect.toBeOneOf([200, 201])]);
      if (typeof answer.body['key'] === 'string') secrets.push(answer.body['key']);
      const { items } = await trail(server);
      expect([address, items.length]).toEqual([address, ++count]);
      expect(items[0]).toEqual({
        id: expect.any(Number) as number,
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string,
        actor: { type: 'user', userId: 1, keyId: 1 },
        action,
        target: { kind: action.split('.')[0], id: action === 'regions.reset' || action === 'lessons.forget' ? null : (expect.any(String) as string) },
        changed,
        requestId: answer.id,
        address: '127.0.0.1',
      });
      expect(Math.abs(Date.now() - Date.parse(items[0]!.at))).toBeLessThan(30_000);
    }
    const text = JSON.stringify((await trail(server, '?limit=200')).items);
    expect(secrets).toHaveLength(3);
    for (const secret of [...secrets, server.key]) expect(text).not.toContain(secret);
    expect(text).not.toMatch(/dgm_\w{9}|scrypt/);
  });

  test('what was refused, or changed nothing, leaves no entry', { timeout: long }, async () => {
    const server = await dragoman();
    const { admin } = server;
    await admin('PUT', '/plans/gold', { monthlyTokens: 5 });
    const before = (await trail(server)).items;
    const nothing: [method: string, path: string, body: unknown, status: number][] = [
      ['POST', '/users', { email: 'admin@localhost' }, 409],
      ['POST', '/users', { email: 'nobody' }, 400],
      ['PATCH', '/users/1', { status: 'suspended' }, 409],
      ['PATCH', '/users/99', { plan: 'gold' }, 404],
      ['PATCH', '/users/1', {}, 200],
      ['PATCH', '/users/1', { role: 'admin' }, 200],
      ['DELETE', '/users/99', undefined, 404],
      ['POST', '/users/99/keys', { name: 'k' }, 404],
      ['DELETE', '/users/1/keys/99', undefined, 404],
      ['POST', '/teams', { name: 't', plan: 'gold', members: [1, 99] }, 400],
      ['DELETE', '/teams/99', undefined, 404],
      ['PUT', '/plans/gold', { monthlyTokens: 5 }, 200],
      ['PUT', '/plans/unlimited', {}, 409],
      ['POST', '/holders/nobody/write-off', undefined, 404],
    ];
    for (const [method, path, body, status] of nothing) expect([path, (await admin(method, path, body)).status]).toEqual([path, status]);
    expect((await trail(server)).items).toEqual(before);
  });

  test('it is read newest first, page by page, and by who, what and to which thing', { timeout: long }, async () => {
    const server = await dragoman();
    const { admin } = server;
    for (const plan of ['a', 'b', 'c']) await admin('PUT', `/plans/${plan}`, {});
    const { body: bob } = await admin('POST', '/users', { email: 'bob@example.org', plan: 'a', role: 'admin' });
    const { body: key } = await admin('POST', `/users/${String(bob['id'])}/keys`, { name: 'k' });
    const headers = { authorization: `Bearer ${String(key['key'])}` };
    expect((await server.ask('/server/admin/users/1', { plan: 'b' }, { method: 'PATCH', headers })).status).toBe(200);

    const seen: AuditItem[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const page = await trail(server, `?limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`);
      expect(page.items.length).toBeLessThanOrEqual(2);
      seen.push(...page.items);
      cursor = page.nextCursor;
    }
    expect(seen.map(({ action, target: { id } }) => `${action} ${id}`)).toEqual([
      'user.change 1',
      `key.create ${String(key['id'])}`,
      `user.add ${String(bob['id'])}`,
      'plan.put c',
      'plan.put b',
      'plan.put a',
      'key.create 1',
      'user.add 1',
    ]);
    const found = async (query: string) => (await trail(server, `?${query}`)).items.map(({ action }) => action);
    expect(await found(`userId=${String(bob['id'])}`)).toEqual(['user.change']);
    expect(seen[0]!.actor).toEqual({ type: 'user', userId: bob['id'], keyId: key['id'] });
    expect(await found('userId=0')).toEqual(['key.create', 'user.add']); // the first user's, by the start itself
    expect(seen.at(-1)).toMatchObject({ actor: { type: 'local', userId: null, keyId: null }, requestId: null, address: null });
    expect(await found('targetKind=user&targetId=1')).toEqual(['user.change', 'user.add']);
    expect(await found('action=plan.put&targetId=b')).toEqual(['plan.put']);
    expect(await found("action=%27%3B--&targetKind=user' or true--")).toEqual([]);
    for (const [query, says] of [
      ['limit=0', /^limit must/],
      ['limit=x', /^limit must/],
      ['userId=-1', /^userId must/],
      ['cursor=x', /^cursor must/],
      ['actor=1', /^actor is not known/],
    ] as const)
      expect((await admin('GET', `/audit?${query}`)).body).toMatchObject({ status: 400, message: expect.stringMatching(says) as string });
  });
});

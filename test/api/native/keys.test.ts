/* A user's own keys, in the words of the native interface and as plain REST. */
import { expect, test } from 'vitest';
import { chat } from '../../support/server.ts';
import { onBothDatabases } from '../../support/databases.ts';
import { proves } from '../../support/proves.ts';
import { chatBody, person, tokenOf, visitedTogether } from './visitors.ts';

const long = 120_000;

onBothDatabases('own keys', (database) => {
  const together = visitedTogether(database);

  test(
    proves(
      ['K-01', 'user.create-api-key', 'user.api-key-name', 'user.delete-api-key', 'user.get-user-api-keys'],
      'a key is made, listed masked and deleted with an access token, each in its envelope',
    ),
    { timeout: long },
    async () => {
      const all = together();
      const ada = await person(all);
      const ask = all.as(await tokenOf(all, ada));

      const made = await ask('POST', '/user/user-api-key', { name: 'Laptop <b>', token_scopes: ' query, passthrough ', colour: 'unknown fields are ignored' });
      expect(made).toMatchObject({ status: 200, body: { response: 'Success', status: 200, id: expect.any(Number) as number } });
      const key = made.body['key'] as string;
      expect(key).toMatch(/^dgm_[A-Za-z0-9]{60}$/);
      expect((await all.as(key)('POST', chat, chatBody)).status).toBe(200);

      const listed = await ask('POST', '/user/get-user-api-keys');
      expect(listed.body).toMatchObject({ status: '200' });
      expect(listed.body['response']).toEqual([
        expect.objectContaining({ id: ada.keyId, name: 'first', token_scopes: null }),
        {
          id: made.body['id'],
          date_time: expect.stringMatching(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/) as string,
          name: 'Laptop <b>',
          user_id: ada.id,
          key: `${key.slice(0, 7)}…${key.slice(-4)}`,
          token_scopes: 'query,passthrough',
          revoked_at: null,
          revoked_reason: null,
        },
      ]);
      expect((await ask('GET', '/user/get-user-api-keys')).body['response']).toEqual(listed.body['response']);
      expect((await ask('GET', '/user/user-api-key')).status).toBe(405);

      expect(await ask('DELETE', `/user/user-api-key?id=${String(made.body['id'])}`)).toMatchObject({ status: 200, body: { response: 'OK', status: '200' } });
      expect((await all.as(key)('POST', chat, chatBody)).status).toBe(401);
      expect((await ask('DELETE', `/user/user-api-key?id=${String(made.body['id'])}`)).status).toBe(404);
      const { body: trail } = await all.admin('GET', `/server/admin/audit?userId=${ada.id}`);
      expect((trail['items'] as { action: string }[]).map(({ action }) => action)).toEqual(['key.revoke', 'key.create']);
      expect(JSON.stringify(trail)).not.toContain(key);
    },
  );

  test('what is wrong with a key that is asked for is 400 or 404 and names the field; nothing is made or lost', { timeout: long }, async () => {
    const all = together();
    const [ada, bob] = [await person(all), await person(all)];
    const wrong: [method: string, body: unknown, status: number, field: RegExp][] = [
      ['POST', {}, 400, /name/],
      ['POST', { name: '' }, 400, /name/],
      ['POST', { name: 7 }, 400, /name/],
      ['POST', { name: 'a\u0000b' }, 400, /name/],
      ['POST', { name: 'x'.repeat(101) }, 400, /name/],
      ['POST', { name: 'n', token_scopes: 'query,everything' }, 400, /token_scopes.*everything/],
      ['POST', { name: 'n', token_scopes: ' , ' }, 400, /token_scopes/],
      ['POST', { name: 'n', token_scopes: ['query'] }, 400, /token_scopes/],
      ['POST', { name: 'n', scopes: 'query,everything' }, 400, /^scopes.*everything/],
      ['POST', { name: 'n', scopes: ['everything'] }, 400, /^scopes.*everything/],
      ['POST', { name: 'n', scopes: [] }, 400, /scopes/],
      ['POST', { name: 'n', scopes: [''] }, 400, /scopes/],
      ['POST', { name: 'n', scopes: { query: true } }, 400, /scopes/],
      ['POST', { name: 'n', scopes: ['query'], token_scopes: 'query,mcp' }, 400, /scopes and token_scopes/],
      ['POST', { name: 'n', scopes: ['query'], token_scopes: '' }, 400, /scopes and token_scopes/],
      ['POST', '[]', 400, /object/],
      ['POST', '{"name":', 400, /JSON/],
    ];
    for (const [method, body, status, field] of wrong) {
      const answer = await ada.ask(method, '/user/user-api-key', body);
      expect([body, answer.status, answer.body['response']]).toEqual([body, status, expect.stringMatching(field)]);
      expect(answer.body).toMatchObject({ status, message: answer.body['response'], error: answer.body['response'] });
    }
    for (const [id, status] of [
      ['five', 400],
      ['', 400],
      ['-1', 400],
      ['1.5', 400],
      ['9'.repeat(30), 400],
      ['999999', 404],
      [String(bob.keyId), 404],
    ] as const)
      expect([id, (await ada.ask('DELETE', `/user/user-api-key?id=${id}`)).status]).toEqual([id, status]);
    for (const expiresAt of ['2020-01-01T00:00:00Z', 'tomorrow', '2030-02-30', 5])
      expect((await ada.ask('POST', '/server/mine/keys', { name: 'n', expiresAt })).body['error']).toMatch(/expiresAt/);
    for (const body of [
      { name: 'n', scopes: ['all'] },
      { name: 'n', scopes: [] },
      { name: 'n', models: 'built-in' },
      { name: 'n', colour: 'red' },
      { name: 'n', monthlyTokens: -1 },
    ])
      expect((await ada.ask('POST', '/server/mine/keys', body)).status).toBe(400);
    expect((await ada.ask('GET', '/server/mine/keys')).body['items']).toHaveLength(1);
    expect((await bob.ask('GET', '/server/mine/keys')).body['items']).toHaveLength(1);
  });

  test('a token and a key are had, and a key is deleted, by JSON, form and multipart alike', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all);
    const send = async (method: string, path: string, body: NonNullable<RequestInit['body']>, headers: Record<string, string> = {}) => {
      const answer = await fetch(all.server.url + path, { method, body, headers: { 'x-access-tokens': ada.key, ...headers } });
      return { status: answer.status, body: (await answer.json()) as { id: number; response: { access_token: string } } };
    };
    const ways: ((fields: Record<string, string | number>) => [NonNullable<RequestInit['body']>, Record<string, string>?])[] = [
      (fields) => [JSON.stringify(fields), { 'content-type': 'application/json' }],
      (fields) => [new URLSearchParams(Object.entries(fields).map(([name, value]) => [name, String(value)]))],
      (fields) => {
        const form = new FormData();
        for (const [name, value] of Object.entries(fields)) form.set(name, String(value));
        return [form];
      },
    ];
    for (const way of ways) {
      const token = await send('POST', '/user/get-token-with-api-key', ...way({ email: ada.email, api_key: ada.key }));
      expect((await all.as(token.body.response.access_token)('POST', '/user/get-user-api-keys')).status).toBe(200);
      const made = await send('POST', '/user/user-api-key', ...way({ name: 'form', token_scopes: 'query' }));
      expect(made.status).toBe(200);
      expect((await send('DELETE', '/user/user-api-key', ...way({ id: made.body.id }))).status).toBe(200);
      expect((await send('DELETE', '/user/user-api-key', ...way({ id: made.body.id }))).status).toBe(404);
    }
    const { status } = await ada.ask('DELETE', '/user/user-api-key?id=1', { id: ada.keyId });
    expect(status).toBe(200); // the body's member stands before the address's
    expect((await ada.ask('GET', '/server/mine')).status).toBe(401);
  });

  test('a key has the scopes that are given as token_scopes, or as scopes', { timeout: long }, async () => {
    const ada = await person(together());
    for (const more of [
      { scopes: ['query', 'mcp'] },
      { scopes: 'query,mcp' },
      { scopes: ['mcp', 'query'], token_scopes: 'query,mcp' },
      { scopes: null, token_scopes: 'query,mcp' },
    ]) {
      const { body } = await ada.ask('POST', '/user/user-api-key', { name: 'n', ...more });
      const keys = (await ada.ask('GET', '/server/mine/keys')).body['items'] as readonly { readonly id: number; readonly scopes: readonly string[] }[];
      expect([more, keys.find(({ id }) => id === body['id'])?.scopes.toSorted()]).toEqual([more, ['mcp', 'query']]);
    }
  });

  test('scopes that come as a file make no key, least of all one that may do everything', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all);
    const form = new FormData();
    form.set('name', 'form');
    form.set('token_scopes', new File(['query'], 'scopes.txt'));
    const answer = await fetch(`${all.server.url}/user/user-api-key`, { method: 'POST', body: form, headers: { 'x-access-tokens': ada.key } });
    expect([answer.status, await answer.json()]).toMatchObject([400, { response: 'token_scopes must be text, not a file.' }]);
    expect((await ada.ask('GET', '/server/mine/keys')).body['items']).toHaveLength(1);
  });

  test("another's key is 404 wherever it is named, for administrators it is there", { timeout: long }, async () => {
    const all = together();
    const [ada, bob] = [await person(all), await person(all)];
    const its = `/server/mine/keys/${bob.keyId}`;
    const asked = (ask: typeof ada.ask, query = '') =>
      Promise.all([
        ask('GET', its + query),
        ask('PATCH', its + query, { name: 'mine' }),
        ask('POST', `${its}/rotate${query}`),
        ask('DELETE', its + query),
      ]).then((answers) => answers.map(({ status }) => status));
    expect(await asked(ada.ask)).toEqual([404, 404, 404, 404]);
    expect(await asked(ada.ask, `?owner=${bob.id}`)).toEqual([404, 404, 404, 404]);
    expect((await ada.ask('GET', `/server/mine/keys?owner=${bob.id}`)).status).toBe(404);
    expect((await ada.ask('GET', '/server/mine/keys?owner=ada')).body['error']).toMatch(/owner/);
    expect((await ada.ask('GET', `/server/mine/keys?owner=${ada.id}`)).status).toBe(200);
    expect((await bob.ask('GET', its)).body).toMatchObject({ name: 'first' });
    expect((await all.admin('GET', `/server/mine/keys?owner=${bob.id}`)).body['items']).toMatchObject([{ id: bob.keyId }]);
    expect((await all.admin('GET', '/server/mine/keys?owner=999999')).status).toBe(404);
    expect((await all.admin('DELETE', `${its}?owner=${bob.id}`)).status).toBe(200);
    expect((await bob.ask('GET', '/server/mine')).status).toBe(401);
  });

  test('a narrowed key is refused within a second, and a key that is narrowed does not widen itself', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all);
    const { body: made } = await ada.ask('POST', '/server/mine/keys', { name: 'second', models: ['built-in'], monthlyTokens: 1000 });
    expect(made).toEqual({ id: expect.any(Number) as number, name: 'second', key: expect.any(String) as string, scopes: null });
    const { body: limited } = await ada.ask('POST', '/server/mine/keys', { name: 'limited', dailyTokens: 1000 });
    const its = `/server/mine/keys/${String(made['id'])}`;
    const second = all.as(made['key'] as string);
    const third = all.as(limited['key'] as string);
    expect((await second('POST', chat, chatBody)).status).toBe(200);
    for (const [method, path, body] of [
      ['POST', '/server/mine/keys', { name: 'n' }],
      ['PATCH', its, { models: null }],
      ['POST', `${its}/rotate`],
      ['POST', '/user/user-api-key', { name: 'n' }],
    ] as const)
      for (const ask of [second, third]) expect([path, (await ask(method, path, body)).status]).toEqual([path, 403]);
    expect((await third('PATCH', `/server/mine/keys/${String(limited['id'])}`, { dailyTokens: null })).body['message']).toMatch(/limits/);
    expect((await third('PUT', '/server/mine/password', { new: 'a long and secret sentence' })).status).toBe(403);
    expect((await third('GET', '/server/mine/keys')).status).toBe(200);

    const changed = await ada.ask('PATCH', its, { name: 'narrow', scopes: ['query'], models: null, monthlyTokens: null, requestsPerMinute: 5 });
    expect(changed.body).toMatchObject({ name: 'narrow', scopes: ['query'], models: null, requestsPerMinute: 5 });
    expect(changed.body).not.toHaveProperty('monthlyTokens');
    await expect.poll(async () => (await second('POST', chat, chatBody)).status, { timeout: 30_000 }).toBe(403);
    expect((await ada.ask('PATCH', its, { scopes: null })).status).toBe(200);
    await expect.poll(async () => (await second('POST', chat, chatBody)).status, { timeout: 30_000 }).toBe(200);
    await expect.poll(async () => (await ada.ask('GET', its)).body['lastUsedAt'], { timeout: 30_000 }).toEqual(expect.any(String));
  });

  test('a rotated key has a new text under the same id, and the one before is good for as long as was said', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all);
    const rotate = (body?: object) => all.admin('POST', `/server/mine/keys/${ada.keyId}/rotate?owner=${ada.id}`, body);
    const works = async (key: string) => (await all.as(key)('POST', chat, chatBody)).status === 200;

    const { status, body: first } = await rotate();
    expect(status).toBe(201);
    expect(first).toMatchObject({ id: ada.keyId, name: 'first', scopes: null });
    expect(Date.parse(first['oldUntil'] as string) - Date.now()).toBeGreaterThan(86_000_000);
    expect([await works(ada.key), await works(first['key'] as string)]).toEqual([true, true]);

    const oldToken = await tokenOf(all, ada);
    const { body: second } = await rotate({ graceSeconds: 0 });
    const texts = [ada.key, first['key'] as string, second['key'] as string, oldToken];
    await expect.poll(() => Promise.all(texts.map(works)), { timeout: 30_000 }).toEqual([false, false, true, false]);
    for (const graceSeconds of [-1, 2_592_001, 1.5, '10']) expect((await rotate({ graceSeconds })).body['error']).toMatch(/graceSeconds/);
    const { body: third } = await rotate({ graceSeconds: 1 });
    expect(await works(second['key'] as string)).toBe(true);
    await expect.poll(() => works(second['key'] as string), { timeout: 30_000 }).toBe(false);
    expect(await works(third['key'] as string)).toBe(true);
    expect((await all.admin('GET', `/server/admin/users/${ada.id}/keys`)).body['items']).toHaveLength(1);
  });

  test('a user has at most 100 keys, also when the last two are asked for at once', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all);
    const make = async (count: number) =>
      (await Promise.all(Array.from({ length: count }, () => ada.ask('POST', '/user/user-api-key', { name: 'n' })))).map(({ status }) => status);
    for (let n = 0; n < 12; n++) expect(new Set(await make(8))).toEqual(new Set([200])); // all at once would wait for the database longer than requests do
    expect((await make(9)).toSorted((one, other) => one - other)).toEqual([...Array.from({ length: 3 }, () => 200), ...Array.from({ length: 6 }, () => 409)]);
    expect((await all.admin('POST', `/server/admin/users/${ada.id}/keys`, { name: 'n' })).status).toBe(409);
    expect((await ada.ask('POST', '/user/get-user-api-keys')).body['response']).toHaveLength(100);
  });
});

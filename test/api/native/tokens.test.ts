/* Access tokens: how they are had, where they are good, and when they end. */
import { createHmac } from 'node:crypto';
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify, SignJWT, generateKeyPair, type JSONWebKeySet } from 'jose';
import { expect, test, vi } from 'vitest';
import { chat } from '../../support/server.ts';
import { onBothDatabases } from '../../support/databases.ts';
import { proves } from '../../support/proves.ts';
import { chatBody, person, tokenOf, visited, visitedTogether, type Answer } from './visitors.ts';

vi.mock('node:crypto', async (original) => (await import('../../support/cheap-scrypt.ts')).cheapScrypt(await original()));

const long = 120_000;
const getToken = '/user/get-token-with-api-key';
const badToken = 'Token is invalid [1]';

onBothDatabases('access tokens', (database) => {
  const { place } = database;
  const together = visitedTogether(database);

  test(
    proves(
      [
        'user.get-token-with-api-key',
        'user.get-token-email',
        'user.get-token-api-key',
        'user.get-token-open',
        'user.access-header',
        'auth.native-header',
        'service.user-root',
      ],
      'an e-mail address and a key give a token that is good for a day, names the key, and opens the native interface',
    ),
    { timeout: long },
    async () => {
      const all = await visited(await place(), { yaml: 'publicUrl: https://gateway.example.org' });
      const ada = await person(all);
      const answer = await all.nobody('POST', getToken, { email: ada.email.toUpperCase(), api_key: ada.key, more: 1 });
      expect(answer).toMatchObject({ status: 200, body: { response: { access_token: expect.any(String) as string }, status: '200' } });
      const token = (answer.body['response'] as { access_token: string }).access_token;

      const { body: keys } = await all.nobody('GET', '/.well-known/jwks.json');
      expect(JSON.stringify(keys)).not.toContain('"d"');
      const issuer = 'https://gateway.example.org';
      const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet(keys as unknown as JSONWebKeySet), { issuer, audience: issuer });
      expect(protectedHeader).toMatchObject({ alg: 'EdDSA', kid: expect.any(String) as string });
      expect(payload).toEqual({
        iss: issuer,
        aud: issuer,
        sub: String(ada.id),
        key: ada.keyId,
        jti: expect.any(String) as string,
        iat: expect.any(Number) as number,
        exp: payload.iat! + 86_400,
      });
      expect((await all.as(token)('POST', '/user/get-user-api-keys')).status).toBe(200);
      for (const path of ['/user/get-user-api-keys', '/user/get-user-logins', '/user/validate_token_with_full_user'])
        expect(await all.nobody('POST', path)).toMatchObject({ status: 401, body: { response: badToken, status: 401 } });
    },
  );

  test(
    proves('auth.chatcompat-bearer', 'a token is good wherever a key is, in every header; each refusal of a bad one is 401'),
    { timeout: long },
    async () => {
      const all = together();
      const ada = await person(all);
      const token = await tokenOf(all, ada);
      const gemini = '/server/gencompat/v1beta/models/flash:generateContent';
      const calls: [path: string, body: object][] = [
        [chat, chatBody],
        [gemini, { contents: [{ role: 'user', parts: [{ text: 'hello' }] }] }],
        ['/user/get-user-logins', {}],
      ];
      const headersWith = (credential: string): Record<string, string>[] => [
        { 'x-access-tokens': credential },
        { authorization: `Bearer ${credential}` },
        { 'x-api-key': credential },
        { 'x-goog-api-key': credential },
        { 'x-access-tokens': credential, authorization: 'Bearer useless' },
      ];
      for (const [path, body] of calls)
        for (const headers of headersWith(token))
          expect([path, headers, (await all.nobody('POST', path, body, { headers })).status]).toEqual([path, headers, 200]);
      const bad = `${token.slice(0, -4)}AAAA`;
      for (const [path, body] of calls) for (const headers of headersWith(bad)) expect((await all.nobody('POST', path, body, { headers })).status).toBe(401);
      expect((await all.nobody('POST', chat, chatBody, { headers: { 'x-access-tokens': 'useless', authorization: `Bearer ${token}` } })).status).toBe(401);
    },
  );

  test('an address and a key that were pasted with white space around them give a token, and a password is taken as it is', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all, { password: ' with a space before' });
    for (const pasted of [` ${ada.email}\n`, `\t${ada.email} `, `\u{a0}${ada.email}`])
      for (const key of [`${ada.key}\r\n`, ` \u{a0}${ada.key}\t`])
        expect([pasted, key, (await all.nobody('POST', getToken, { email: pasted, api_key: key })).status]).toEqual([pasted, key, 200]);
    const inside = `${ada.key.slice(0, 9)} ${ada.key.slice(9)}`;
    expect((await all.nobody('POST', getToken, { email: ada.email, api_key: inside })).status).toBe(400);
    expect((await all.nobody('POST', getToken, { email: ada.email.replace('@', ' @'), api_key: ada.key })).status).toBe(400);
    const byPassword = async (password: string) => (await all.nobody('POST', '/user/get-token', { email: `${ada.email} `, password })).status;
    expect([await byPassword(' with a space before'), await byPassword('with a space before')]).toEqual([200, 401]);
  });

  test("a token has its key's scopes at the moment, and rights that stand in it are not read", { timeout: long }, async () => {
    const all = together();
    const ada = await person(all, {}, { scopes: ['passthrough'] });
    const ask = all.as(await tokenOf(all, ada));
    expect([(await ask('POST', chat, chatBody)).status, (await ask('POST', '/user/get-user-logins')).status]).toEqual([200, 403]);
    const change = (scopes: string[] | null) => all.admin('PATCH', `/server/mine/keys/${ada.keyId}?owner=${ada.id}`, { scopes });
    expect((await change(['query'])).status).toBe(200);
    await expect.poll(async () => (await ask('POST', chat, chatBody)).status, { timeout: 30_000 }).toBe(403);
    await change(null);
    await expect.poll(async () => (await ask('POST', '/user/get-user-logins')).status, { timeout: 30_000 }).toBe(200);
  });

  test(
    proves('K-06', 'a token that another made, or that was changed, is refused: by algorithm, key, issuer, audience, and form'),
    { timeout: long },
    async () => {
      const all = together();
      const ada = await person(all);
      const token = await tokenOf(all, ada);
      const claims = decodeJwt(token);
      const { kid = '' } = decodeProtectedHeader(token);
      const { privateKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519' });
      const [head, body, signature] = token.split('.') as [string, string, string];
      const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const { body: jwks } = await all.nobody('GET', '/.well-known/jwks.json');
      const publicKey = (jwks['keys'] as { x: string }[])[0]!.x;
      const hmac = (secret: string) => {
        const start = `${encoded({ alg: 'HS256', typ: 'JWT', kid })}.${body}`;
        return `${start}.${createHmac('sha256', secret).update(start).digest('base64url')}`;
      };
      const forged: Record<string, string> = {
        'of another key': await new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', typ: 'JWT', kid }).sign(privateKey),
        'without algorithm': `${encoded({ alg: 'none', kid })}.${body}.`,
        'without signature': `${head}.${body}.`,
        'of the public key as a secret': hmac(publicKey),
        'of an unknown key': `${encoded({ alg: 'EdDSA', typ: 'JWT', kid: 'nobody' })}.${body}.${signature}`,
        'of a key without name': `${encoded({ alg: 'EdDSA', typ: 'JWT' })}.${body}.${signature}`,
        'with a key of its own': `${encoded({ alg: 'EdDSA', typ: 'JWT', jwk: { kty: 'OKP' } })}.${body}.${signature}`,
        'of another user': `${head}.${encoded({ ...claims, sub: '1', key: 1 })}.${signature}`,
        'with another last letter': `${token.slice(0, -1)}${String.fromCharCode(token.charCodeAt(token.length - 1) + 1)}`,
        'with a letter of padding': `${token}=`,
        'of no JSON': `eyJub25lIjox.${body}.${signature}`,
        'of huge parts': `eyJ${'a'.repeat(3000)}.${'b'.repeat(900)}.${'c'.repeat(100)}`,
      };
      for (const [what, text] of Object.entries(forged)) expect([what, (await all.as(text)('POST', chat, chatBody)).status]).toEqual([what, 401]);
      expect((await all.as(token)('POST', chat, chatBody)).status).toBe(200);
    },
  );

  test(
    proves('service.own-instance-only', 'a token is good at the service that gave it alone, and no more when its address is another one'),
    { timeout: long },
    async () => {
      const [here, there] = [await visited(await place(), { yaml: 'publicUrl: https://here.example.org' }), await visited(await place())];
      const ada = await person(here);
      const token = await tokenOf(here, ada);
      expect((await here.as(token)('GET', '/server/mine')).status).toBe(200);
      expect((await there.as(token)('GET', '/server/mine')).status).toBe(401);
      await here.server.change('publicUrl: https://elsewhere.example.org');
      expect((await here.as(token)('GET', '/server/mine')).status).toBe(401);
    },
  );

  test(proves(['K-03', 'K-04'], 'a token ends with itself, with its key, and with its user, within a second'), { timeout: long }, async () => {
    const all = together();
    const ada = await person(all);
    const tokens = [await tokenOf(all, ada), await tokenOf(all, ada)];
    const asked = () => Promise.all(tokens.map(async (token) => (await all.as(token)('POST', chat, chatBody)).status));
    const [first, other] = tokens.map(all.as);
    expect(await asked()).toEqual([200, 200]);
    const { body: session } = await first!('GET', '/server/session');
    expect(session).toMatchObject({ id: ada.id, scopes: null });
    expect(Date.parse(session['expiresAt'] as string) - Date.now()).toBeGreaterThan(86_000_000);
    expect(await first!('DELETE', '/server/session')).toMatchObject({ status: 200, body: session });
    await expect.poll(asked, { timeout: 30_000 }).toEqual([401, 200]);
    expect((await ada.ask('DELETE', '/server/session')).status).toBe(400);
    expect((await ada.ask('GET', '/server/session')).body).toMatchObject({ expiresAt: null });

    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { status: 'suspended' });
    await expect.poll(asked, { timeout: 30_000 }).toEqual([401, 401]);
    await all.admin('PATCH', `/server/admin/users/${ada.id}`, { status: 'active' });
    await expect.poll(asked, { timeout: 30_000 }).toEqual([401, 200]);
    expect((await other!('DELETE', `/user/user-api-key?id=${ada.keyId}`)).status).toBe(200);
    await expect.poll(asked, { timeout: 30_000 }).toEqual([401, 401]);
  });

  test(
    proves('K-05', 'an unknown address, a wrong key, the key of another and a suspended user are one answer; what is malformed is 400'),
    { timeout: long },
    async () => {
      const all = await visited(await place());
      const [ada, bob] = [await person(all), await person(all)];
      const { body: expired } = await ada.ask('POST', '/server/mine/keys', { name: 'n', expiresAt: new Date(Date.now() + 1500).toISOString() });
      const { body: revoked } = await ada.ask('POST', '/server/mine/keys', { name: 'n' });
      await ada.ask('DELETE', `/server/mine/keys/${String(revoked['id'])}`);
      await all.admin('PATCH', `/server/admin/users/${bob.id}`, { status: 'suspended' });
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, 1600)));
      const pairs: Record<string, object> = {
        'an unknown address': { email: 'nobody@example.org', api_key: ada.key },
        'a wrong key': { email: ada.email, api_key: 'x'.repeat(64) },
        'a key with a typing error': { email: ada.email, api_key: `${ada.key.slice(0, 63)}${ada.key.endsWith('x') ? 'y' : 'x'}` },
        'the key of another': { email: ada.email, api_key: all.server.key },
        'an expired key': { email: ada.email, api_key: expired['key'] },
        'a revoked key': { email: ada.email, api_key: revoked['key'] },
        'a suspended user': { email: bob.email, api_key: bob.key },
      };
      const answers = new Set<string>();
      for (const [what, pair] of Object.entries(pairs)) {
        const { status, body, headers } = await all.nobody('POST', getToken, pair);
        expect([what, status]).toEqual([what, 401]);
        answers.add(JSON.stringify({ ...body, error_ref: '' }) + [...headers.keys()].toString());
      }
      expect([...answers]).toEqual([expect.stringContaining(badToken)]);
      const malformed: [body: unknown, field: RegExp][] = [
        [{}, /email/],
        [{ email: ada.email }, /api_key/],
        [{ api_key: ada.key }, /email/],
        [{ email: 'no address', api_key: ada.key }, /email/],
        [{ email: ['a@b.c'], api_key: ada.key }, /email/],
        [{ email: ada.email, api_key: 5 }, /api_key/],
        [{ email: ada.email, api_key: '' }, /api_key/],
        [{ email: ada.email, api_key: 'x'.repeat(9000) }, /api_key/],
        [{ email: ada.email, api_key: 'nonsense' }, /api_key/],
        [{ email: ada.email, api_key: `${ada.key.slice(0, 63)}é` }, /api_key/],
        ...Array.from({ length: 12 }, (): [body: unknown, field: RegExp] => [{ email: ada.email, api_key: ada.key.slice(1) }, /api_key/]), // no guesses: they are not counted
        ['[1]', /object/],
      ];
      for (const [body, field] of malformed)
        expect(await all.nobody('POST', getToken, body)).toMatchObject({ status: 400, body: { response: expect.stringMatching(field) as string } });
      expect((await all.nobody('POST', getToken, { email: ada.email, api_key: ada.key })).status).toBe(200);
      for (const method of ['GET', 'PUT']) expect((await all.nobody(method, getToken)).status).toBe(405);
    },
  );

  test('a password gives a token that ends with it, of which the key is 0', { timeout: long }, async () => {
    const all = together();
    const { email, id } = await person(all, { password: 'correct horse' });
    const had = (password: string) => all.nobody('POST', '/user/get-token', { email, password });
    const token = async (password: string) => ((await had(password)).body['response'] as { access_token: string }).access_token;
    const [mine, other] = [await token('correct horse'), await token('correct horse')];
    expect(decodeJwt(mine)).toMatchObject({ sub: String(id), key: 0 });
    const works = (text: string) =>
      all
        .as(text)('POST', chat, chatBody)
        .then(({ status }) => status);
    expect([await works(mine), await works(other)]).toEqual([200, 200]);
    expect((await had('wrong horse')).body).toMatchObject({ response: badToken, status: 401 });
    expect((await all.nobody('POST', '/user/get-token', { email: all.server.key.slice(0, 9) + '@example.org', password: 'correct horse' })).status).toBe(401);

    const change = (old: string, changed: string) => all.as(mine)('PUT', '/server/mine/password', { old, new: changed });
    expect((await change('wrong horse', 'another horse')).status).toBe(403);
    expect((await change('correct horse', 'short')).body['error']).toMatch(/new/);
    expect(await change('correct horse', 'another horse')).toMatchObject({ status: 200, body: {} });
    await expect.poll(() => works(other), { timeout: 30_000 }).toBe(401);
    expect(await works(mine)).toBe(200);
    expect([(await had('correct horse')).status, (await had('another horse')).status]).toEqual([401, 200]);
    await all.admin('PATCH', `/server/admin/users/${id}`, { password: 'a third horse' });
    await expect.poll(() => works(mine), { timeout: 30_000 }).toBe(401);
    expect((await had('a third horse')).status).toBe(200);
  });

  test('ten failures in a minute are 429 for that account from that address; another account, and another address, get in', { timeout: long }, async () => {
    const all = await visited(await place());
    const [ada, bob] = [await person(all), await person(all)];
    const wrong = await Promise.all(Array.from({ length: 14 }, () => all.nobody('POST', getToken, { email: ada.email, api_key: 'x'.repeat(64) })));
    expect(wrong.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      ...Array.from({ length: 10 }, () => 401),
      ...Array.from({ length: 4 }, () => 429),
    ]);
    const right = await all.nobody('POST', getToken, { email: ada.email, api_key: ada.key });
    expect(right.status).toBe(429);
    expect(Number(right.headers.get('retry-after'))).toBeGreaterThan(30);
    expect(right.body).toMatchObject({ status: 429, response: expect.stringContaining('failed attempts') as string });
    const unknown: Answer[] = [];
    for (let n = 0; n < 11; n++) unknown.push(await all.nobody('POST', getToken, { email: 'nobody@example.org', api_key: ada.key }));
    expect(unknown.map(({ status }) => status)).toEqual([...Array.from({ length: 10 }, () => 401), 429]);
    expect((await all.nobody('POST', getToken, { email: bob.email, api_key: bob.key })).status).toBe(200);
    expect(await fromElsewhere(all.server.url, { email: ada.email, api_key: ada.key })).toContain('HTTP/1.1 200');
    expect((await ada.ask('POST', chat, chatBody)).status).toBe(200);
  });

  test(
    'a hundred failures in a minute from an address are 429 there for every account, by key, by password and for a session; another address gets in',
    { timeout: long },
    async () => {
      const all = await visited(await place());
      const ada = await person(all);
      const pair = { email: ada.email, api_key: ada.key };
      for (let n = 0; n < 10; n++) {
        const wrong = Array.from({ length: 10 }, (_, at) => all.nobody('POST', getToken, { email: `person-${n}-${at}@example.org`, api_key: ada.key }));
        expect(new Set((await Promise.all(wrong)).map(({ status }) => status))).toEqual(new Set([401]));
      }
      const tried = [await all.nobody('POST', getToken, pair)];
      for (const path of ['/user/get-token', '/server/session']) tried.push(await all.nobody('POST', path, { email: ada.email, password: 'a password' }));
      for (const { status, headers, body } of tried) {
        expect([status, body]).toMatchObject([429, { error: 'Too many failed attempts from this address: try again in a minute.' }]);
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(1);
      }
      expect(await fromElsewhere(all.server.url, pair)).toContain('HTTP/1.1 200');
      expect((await ada.ask('POST', chat, chatBody)).status).toBe(200);
    },
  );

  test('thirty right pairs at once all get in', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all);
    const answers = await Promise.all(Array.from({ length: 30 }, () => all.nobody('POST', getToken, { email: ada.email, api_key: ada.key })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test(
    proves(
      ['user.get-user-logins', 'user.logins-limit', 'user.logins-default'],
      'the last five logins are given, or as many as asked for, newest first, with failures and why',
    ),
    { timeout: long },
    async () => {
      const all = together();
      const [ada, bob] = [await person(all), await person(all)];
      await all.nobody('POST', getToken, { email: bob.email, api_key: bob.key });
      for (let n = 0; n < 4; n++) await tokenOf(all, ada);
      await all.nobody('POST', getToken, { email: ada.email, api_key: 'x'.repeat(64) });
      await tokenOf(all, ada);
      const logins = (body?: unknown) => ada.ask('POST', '/user/get-user-logins', body).then(({ body: answer }) => answer);
      const usual = await logins();
      expect(usual).toMatchObject({ status: '200' });
      const rows = usual['response'] as { id: number; status: string }[];
      expect(rows.map(({ status }) => status)).toEqual(['Success', 'Failure', 'Success', 'Success', 'Success']);
      expect(rows[0]).toEqual({
        id: expect.any(Number) as number,
        date_time: expect.stringMatching(/ GMT$/) as string,
        ip: '127.0.0.1',
        type: 'login',
        status: 'Success',
        comment: 'api key',
      });
      expect(rows[1]).toMatchObject({ comment: 'api key: the key is not valid' });
      expect((await logins({ limit: 2 }))['response']).toHaveLength(2);
      expect((await logins({ limit: 100 }))['response']).toHaveLength(6);
      expect((await logins({ limit: 101 }))['response']).toHaveLength(5);
      expect((await ada.ask('GET', '/user/get-user-logins?limit=3')).body['response']).toHaveLength(3);
      expect((await logins({ limit: 1e300 }))['response']).toHaveLength(5);
      expect((await logins({ limit: null }))['response']).toHaveLength(5);
      for (const limit of [0, -1, 1.5, '5', []]) expect([limit, (await ada.ask('POST', '/user/get-user-logins', { limit })).status]).toEqual([limit, 400]);
      expect((await bob.ask('POST', '/user/get-user-logins')).body['response']).toHaveLength(1);
    },
  );
});

/** The raw answer to a request for a token from another address of this machine. */
async function fromElsewhere(url: string, pair: object): Promise<string> {
  const { connect } = await import('node:net');
  const { hostname, port } = new URL(url);
  const body = JSON.stringify(pair);
  const socket = connect({ host: hostname, port: Number(port), localAddress: '127.0.0.9' });
  socket.write(
    `POST ${getToken} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  let text = '';
  for await (const piece of socket) text += String(piece);
  return text;
}

/* Sessions of people in browsers: how they begin, what their cookie opens and from where, and when they end. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { openStore } from '#store/open';
import { openLog } from '#telemetry/log';
import { chat } from '../../support/server.ts';
import { anyPlace, onBothDatabases } from '../../support/databases.ts';
import { connectRaw } from '../../support/fakes/raw.ts';
import { proves } from '../../support/proves.ts';
import { browser, cookieIn, type Browser } from './browsers.ts';
import { chatBody, person, tokenOf, visited, visitedTogether } from './visitors.ts';

vi.mock('node:crypto', async (original) => (await import('../../support/cheap-scrypt.ts')).cheapScrypt(await original()));

const long = 120_000;
const session = '/server/session';
const password = 'correct horse';
const mine = async ({ ask }: Pick<Browser, 'ask'>) => (await ask('GET', '/server/mine')).status;
const keysOf = async (one: Pick<Browser, 'ask'>) => ((await one.ask('GET', '/server/mine/keys')).body['items'] as object[]).length;

onBothDatabases('sessions', (database) => {
  const { place } = database;
  const together = visitedTogether(database);

  test('an e-mail address and a password begin a session, whose cookie stands for the whole user until it is ended', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all, { password });
    const here = await browser(all, ` ${ada.email.toUpperCase()} `, password);
    expect(here.answer).toMatchObject({ status: 200, body: { id: ada.id, email: ada.email, role: 'user', status: 'active', scopes: null, teams: [] } });
    const ends = Date.parse(here.answer.body['expiresAt'] as string) - Date.now();
    expect(Math.round(ends / 3_600_000)).toBe(12);
    const { pair, words } = cookieIn(here.answer);
    expect(pair).toMatch(/^dragoman=dgs_[A-Za-z0-9]{43}$/);
    expect(words.toSorted()).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Strict']);

    expect((await here.ask('GET', session)).body).toMatchObject({ id: ada.id, expiresAt: expect.any(String) as string });
    expect((await here.ask('POST', chat, chatBody)).status).toBe(200);
    expect((await here.ask('POST', '/server/mine/keys', { name: 'by hand' })).status).toBe(201);
    expect((await here.ask('POST', '/user/get-user-logins')).body['response']).toMatchObject([{ status: 'Success', comment: 'password' }]);

    const elsewhere = await browser(all, ada.email, password);
    expect(elsewhere.cookie).not.toBe(here.cookie);
    const out = await here.ask('DELETE', session);
    expect(out).toMatchObject({ status: 200, body: { id: ada.id, email: ada.email, expiresAt: expect.any(String) as string } });
    expect(cookieIn(out)).toMatchObject({ pair: 'dragoman=', words: expect.arrayContaining(['Max-Age=0', 'Path=/']) as string[] });
    await expect.poll(() => mine(here), { timeout: 30_000 }).toBe(401);
    expect((await here.ask('GET', session)).body['error']).toBe('The session is over: sign in again.');
    expect(await mine(elsewhere)).toBe(200);
  });

  test(
    'over https, by the public address or by a trusted proxy, the cookie is bound to the host and to https, and the other one does not count',
    { timeout: long },
    async () => {
      const all = await visited(await place(), { yaml: 'trustedProxies: [127.0.0.0/8]' });
      const ada = await person(all, { password });
      const secure = { 'x-forwarded-proto': 'https' };
      const over = await all.nobody('POST', session, { email: ada.email, password }, { headers: secure });
      const { pair, words } = cookieIn(over);
      expect(pair).toMatch(/^__Host-dragoman=dgs_/);
      expect(words.toSorted()).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Strict', 'Secure']);
      const plain = pair.replace('__Host-', '');
      const asked = async (cookie: string, headers: Record<string, string>) =>
        (await all.nobody('GET', '/server/mine', undefined, { headers: { cookie, ...headers } })).status;
      expect([await asked(pair, secure), await asked(plain, secure), await asked(plain, {}), await asked(pair, {})]).toEqual([200, 401, 200, 401]);
      // Over https a page of the same name without it is another origin.
      const change = async (origin: string) =>
        (await all.nobody('POST', '/server/mine/keys', { name: 'k' }, { headers: { cookie: pair, origin, ...secure } })).status;
      expect([await change(all.server.url), await change(all.server.url.replace('http:', 'https:'))]).toEqual([403, 201]);

      await all.server.change('publicUrl: https://gateway.example.org');
      const known = await all.nobody('POST', session, { email: ada.email, password }, { headers: { origin: 'https://gateway.example.org' } });
      expect([known.status, cookieIn(known).pair.split('=')[0]]).toEqual([200, '__Host-dragoman']);
    },
  );

  test(
    proves('K-12', 'the cookie comes last: a key that is there decides, good or bad; a session is good in its cookie alone'),
    { timeout: long },
    async () => {
      const all = together();
      const [ada, bob] = [await person(all, { password }), await person(all)];
      const { cookie } = await browser(all, ada.email, password);
      const text = cookie.split('=')[1]!;
      const whose = async (headers: Record<string, string>) => {
        const { status, body } = await all.nobody('GET', '/server/mine', undefined, { headers });
        return status === 200 ? body['id'] : status;
      };
      for (const name of ['x-access-tokens', 'x-api-key', 'x-goog-api-key']) {
        expect(await whose({ cookie, [name]: bob.key })).toBe(bob.id);
        expect(await whose({ cookie, [name]: 'nonsense' })).toBe(401);
        expect(await whose({ [name]: text })).toBe(401);
      }
      expect(await whose({ cookie, authorization: `Bearer ${bob.key}` })).toBe(bob.id);
      expect(await whose({ cookie, authorization: 'Basic YTpi' })).toBe(401);
      expect(await whose({ authorization: `Bearer ${text}` })).toBe(401);
      expect(await whose({ cookie: `dragoman=${bob.key}` })).toBe(401);
      expect(await whose({ cookie: `dragoman=${await tokenOf(all, bob)}` })).toBe(401);
      expect(await whose({ cookie: `theme=dark; ${cookie}; lang=en` })).toBe(ada.id);
      // With a key nothing is asked of the page: it changes things whatever cookie is there.
      const foreign = { cookie, 'x-access-tokens': ada.key, origin: 'https://evil.example' };
      expect((await all.nobody('POST', '/server/mine/keys', { name: 'k' }, { headers: foreign })).status).toBe(201);
    },
  );

  test('a page elsewhere changes nothing with the cookie, nor does a form; reading takes no origin', { timeout: long }, async () => {
    const all = await visited(await place(), { yaml: 'cors: { origins: ["https://app.example.org", "*"] }' });
    const ada = await person(all, { password });
    const here = await browser(all, ada.email, password);
    const before = await keysOf(here);
    const json = { 'content-type': 'application/json' };
    const post = (headers: Record<string, string>, body: string) =>
      all.nobody('POST', '/server/mine/keys', body, { headers: { cookie: here.cookie, ...json, ...headers } });
    const { host } = new URL(all.server.url);
    const pages: Record<string, string>[] = [
      {},
      { origin: 'null' },
      { origin: '' },
      { origin: 'https://evil.example' },
      { origin: 'https://app.example.org' },
      { origin: `http://evil.${host}` },
      { origin: `http://${host}.evil.example` },
      { origin: `http://${host.replace(/:.*/, '')}` },
      { origin: `${all.server.url}, ${all.server.url}` },
      { origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' },
      { origin: `https://${host}`, 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'none' },
    ];
    for (const page of pages) expect([page, (await post(page, '{"name":"k"}')).status]).toEqual([page, 403]);
    const own = { origin: all.server.url };
    const types = ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain', 'text/plain; a=application/json', ''];
    for (const type of types) expect([type, (await post({ ...own, 'content-type': type }, '{"name":"k"}')).status]).toEqual([type, 403]);
    expect((await all.nobody('DELETE', `/server/mine/keys/${ada.keyId}`, undefined, { headers: { cookie: here.cookie } })).status).toBe(403);
    expect(await keysOf(here)).toBe(before);

    const { status, headers } = await all.nobody('GET', '/server/mine', undefined, { headers: { cookie: here.cookie, origin: 'https://app.example.org' } });
    expect([status, headers.get('access-control-allow-credentials')]).toEqual([200, null]);
    expect((await post(own, '{"name":"one"}')).status).toBe(201);
    expect((await post({ 'sec-fetch-site': 'same-origin', 'content-type': 'application/json; charset=utf-8' }, '{"name":"two"}')).status).toBe(201);
    expect(await keysOf(here)).toBe(before + 2);
    const made = await here.ask('POST', '/server/mine/datasets', { name: 'notes' });
    const file = { headers: { 'content-type': 'application/octet-stream' } };
    expect((await here.ask('POST', `/server/mine/datasets/${String(made.body['id'])}/files?filename=a.txt`, 'one line', file)).status).toBe(202);
  });

  test('a page elsewhere signs nobody in', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all, { password });
    const from = async (headers: Record<string, string>) => {
      const { status, headers: answered } = await all.nobody('POST', session, { email: ada.email, password }, { headers });
      return [status, answered.getSetCookie().length];
    };
    expect(await from({ origin: 'https://evil.example' })).toEqual([403, 0]);
    expect(await from({ origin: 'https://evil.example', 'content-type': 'text/plain' })).toEqual([415, 0]);
    expect(await from({ 'sec-fetch-site': 'cross-site' })).toEqual([403, 0]);
    expect(await from({ origin: all.server.url })).toEqual([200, 1]);
    expect(await from({ 'sec-fetch-site': 'same-origin' })).toEqual([200, 1]);
  });

  test(
    proves('K-04', 'a session ends for good with a suspension, a deletion and a new password, but for the one that changed it'),
    { timeout: long },
    async () => {
      const all = together();
      const [ada, bob, eve] = [await person(all, { password }), await person(all, { password }), await person(all, { password })];
      const [here, there] = [await browser(all, ada.email, password), await browser(all, ada.email, password)];
      const others = [await browser(all, bob.email, password), await browser(all, eve.email, password)] as const;
      const states = () => Promise.all([here, there, ...others].map(mine));
      expect(await states()).toEqual([200, 200, 200, 200]);
      const changed = await here.ask('PUT', '/server/mine/password', { old: password, new: 'another horse' });
      expect(changed.status).toBe(200);
      await expect.poll(states, { timeout: 30_000 }).toEqual([200, 401, 200, 200]);
      expect([(await browser(all, ada.email, password)).answer.status, (await browser(all, ada.email, 'another horse')).answer.status]).toEqual([401, 200]);
      await all.admin('PATCH', `/server/admin/users/${ada.id}`, { password: 'a third horse' });
      await all.admin('PATCH', `/server/admin/users/${bob.id}`, { status: 'suspended' });
      await all.admin('DELETE', `/server/admin/users/${eve.id}`);
      await expect.poll(states, { timeout: 30_000 }).toEqual([401, 401, 401, 401]);
      expect((await browser(all, bob.email, password)).answer.status).toBe(401);
      await all.admin('PATCH', `/server/admin/users/${bob.id}`, { status: 'active' });
      expect((await browser(all, bob.email, password)).answer.status).toBe(200);
      expect(await states()).toEqual([401, 401, 401, 401]);
    },
  );

  test('a session is over that was not used for 12 hours, or began 30 days ago, by the clock of the database', { timeout: long }, async () => {
    const where = await place();
    let ahead = 0;
    const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + ahead };
    const before = await visited(where, { clock });
    const ada = await person(before, { password });
    const browsers = [await browser(before, ada.email, password), await browser(before, ada.email, password), await browser(before, ada.email, password)];
    ahead = 13 * 3_600_000; // the clock of the machine ends none
    expect(await Promise.all(browsers.map(mine))).toEqual([200, 200, 200]);
    await before.server.close();

    const { databaseUrl } = where;
    const store = await openStore({ folder: join(where.folder, 'data'), ...(databaseUrl ? { databaseUrl } : {}), migrations: [], clock: systemClock });
    await sql`update session set used_at = used_at - interval '12 hours 1 second' where id = 1`.execute(store.db);
    await sql`update session set made_at = made_at - interval '30 days 1 second' where id = 2`.execute(store.db);
    await sql`update session set made_at = made_at - interval '29 days', used_at = used_at - interval '11 hours' where id = 3`.execute(store.db);
    await store.close();
    const after = await visited(where);
    const asked = async (path: string) =>
      Promise.all(browsers.map(async ({ cookie }) => (await after.nobody('GET', path, undefined, { headers: { cookie } })).status));
    expect(await asked(session)).toEqual([401, 401, 200]);
    expect(await asked('/server/mine/keys')).toEqual([401, 401, 200]);
  });

  test('of two who change a password at once by the same old one, one does', { timeout: long }, async () => {
    const all = together();
    const ada = await person(all, { password });
    const browsers = [await browser(all, ada.email, password), await browser(all, ada.email, password)];
    const changes = browsers.map(({ ask }, at) => ask('PUT', '/server/mine/password', { old: password, new: `${at} more horses` }));
    const statuses = (await Promise.all(changes)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    const good = async (given: string) => (await all.nobody('POST', session, { email: ada.email, password: given })).status === 200;
    expect([await good('0 more horses'), await good('1 more horses')]).toEqual(statuses.map((status) => status === 200));
  });

  test(
    proves('K-05', 'an unknown address, a wrong password, a user without one and a suspended one are one answer; ten of them in a minute are 429'),
    { timeout: long },
    async () => {
      const all = await visited(await place());
      const [ada, bob, eve] = [await person(all, { password }), await person(all), await person(all, { password })];
      await all.admin('PATCH', `/server/admin/users/${eve.id}`, { status: 'suspended' });
      const answers = new Set<string>();
      for (const [email, given] of [
        ['nobody@example.org', password],
        [ada.email, 'wrong horse'],
        [ada.email, ` ${password}`],
        [bob.email, password],
        [eve.email, password],
        [ada.email, 'x'.repeat(8192)],
      ] as const) {
        const { status, body, headers } = await all.nobody('POST', session, { email, password: given });
        expect([email, status, headers.getSetCookie()]).toEqual([email, 401, []]);
        answers.add(JSON.stringify({ ...body, error_ref: '' }));
      }
      expect(answers.size).toBe(1);
      for (let n = 3; n < 10; n++) expect((await all.nobody('POST', '/user/get-token', { email: ada.email, password: 'wrong horse' })).status).toBe(401);
      const refused = await all.nobody('POST', session, { email: ada.email, password });
      expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
      expect((await all.nobody('POST', session, { email: 'else@example.org', password })).status).toBe(401);
    },
  );

  test('what is malformed is 400 and names the field', { timeout: long }, async () => {
    const all = together();
    const refused: [body: unknown, field: RegExp][] = [
      [{}, /email/],
      [{ email: 'a@example.org' }, /password/],
      [{ email: 'a@example.org', password: '' }, /password/],
      [{ email: 'a@example.org', password: 7 }, /password/],
      [{ email: 'a@example.org', password: null }, /password/],
      [{ email: 'a@example.org', password: 'x'.repeat(300_000) }, /password/],
      [{ email: 'a\u0000@example.org', password }, /email/],
      [{ email: 'a\r\nset-cookie: x@example.org', password }, /email/],
      [{ email: ['a@example.org'], password }, /email/],
      [{ email: `${'a'.repeat(300)}@example.org`, password }, /email/],
      [{ link: 'x'.repeat(60) }, /email/],
      [{ email: 'a@example.org', password, link: 'x'.repeat(60) }, /link/],
      [{ email: 'a@example.org', password, role: 'admin' }, /role/],
      ['[]', /object/],
    ];
    for (const [body, field] of refused) {
      const { status, body: answer } = await all.nobody('POST', session, body);
      expect([body, status, answer['error']]).toEqual([body, 400, expect.stringMatching(field)]);
    }
    for (const method of ['PUT', 'PATCH']) expect((await all.nobody(method, session, {})).status).toBe(405);
  });

  test(proves(['K-13', 'K-14'], 'hostile cookies are 401 at once, and no trouble for the database'), { timeout: long }, async () => {
    const problems: string[] = [];
    const note = (_: object, problem: string) => void problems.push(problem);
    const all = await visited(await place(), { log: { ...openLog('silent'), level: () => {}, warn: note, error: note, fatal: note } });
    const ada = await person(all, { password });
    const { cookie } = await browser(all, ada.email, password);
    const other = (await browser(all, ada.email, password)).cookie;
    const cookies = [
      '',
      ';;;',
      '=',
      'dragoman',
      'dragoman=',
      'dragoman=""',
      'Dragoman=x',
      'dragoman=null',
      "dragoman=' OR '1'='1",
      `dragoman="${cookie.split('=')[1]!}"`,
      `dragoman=dgs_${'a'.repeat(43)}`,
      `dragoman=dgs_${randomBytes(5000).toString('hex')}`,
      `${'a=b; '.repeat(2500)}dragoman=x`,
      `${cookie}x`,
      `${cookie}; ${other}`,
      `${cookie}; dragoman=`,
      cookie.replace('dragoman', '__Host-dragoman'),
      `x${cookie}`,
    ];
    for (const one of cookies) {
      const began = performance.now();
      const { status } = await all.nobody('GET', '/server/mine', undefined, { headers: { cookie: one } });
      expect([one.slice(0, 60), status, performance.now() - began < 10_000]).toEqual([one.slice(0, 60), 401, true]);
    }
    expect((await all.nobody('GET', '/server/mine', undefined, { headers: { cookie: `${cookie}; ${cookie}` } })).status).toBe(200);
    const raw = await connectRaw(all.server.url);
    raw.send(`GET /server/mine HTTP/1.1\r\nhost: x\r\ncookie: ${cookie}\r\ncookie: ${other}\r\n\r\n`);
    expect((await raw.answer()).status).toBe(401);
    raw.close();
    expect(problems.filter((problem) => !problem.includes('not yet in effect'))).toEqual([]);
  });
});

test('failed passwords of one account from all addresses of an IPv6 network count together', { timeout: long }, async () => {
  const all = await visited(await anyPlace(), { yaml: 'trustedProxies: [127.0.0.0/8]' });
  const ada = await person(all, { password });
  const from = async (address: string, given: string) =>
    (await all.nobody('POST', session, { email: ada.email, password: given }, { headers: { 'x-forwarded-for': address } })).status;
  const wrong: number[] = [];
  for (let n = 0; n < 10; n++) wrong.push(await from(`2001:db8:0:7::${n.toString(16)}`, 'wrong horse'));
  expect(wrong).toEqual(Array.from({ length: 10 }, () => 401));
  expect([await from('2001:db8:0:7:ffff::1', password), await from('2001:db8:0:8::1', password)]).toEqual([429, 200]);
});

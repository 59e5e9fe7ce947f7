/* People who make themselves users. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { openLog } from '../../../src/telemetry/log.ts';
import { onBothDatabases } from '../../support/databases.ts';
import { cookieIn, withCookie } from './browsers.ts';
import { startTestServer } from '../../support/server.ts';
import { person, visited } from './visitors.ts';

vi.mock('node:crypto', async (original) => (await import('../../support/cheap-scrypt.ts')).cheapScrypt(await original()));

const long = 120_000;
const signup = '/server/session/signup';
const password = 'correct horse';
const yaml = 'plans: { starter: { monthlyTokens: 1000 } }\nnewUsers: { signup: true, plan: starter }';

interface User {
  readonly id: number;
  readonly email: string;
}

onBothDatabases('signing up', ({ place }) => {
  test('makes a user with the plan of new users, who is signed in; it stands in the audit trail and among the logins', { timeout: long }, async () => {
    const all = await visited(await place(), { yaml });
    const answer = await all.nobody('POST', signup, { email: 'Ada@Example.org', password });
    expect(answer).toMatchObject({
      status: 201,
      body: { email: 'ada@example.org', role: 'user', plan: 'starter', status: 'active', scopes: null, teams: [], expiresAt: expect.any(String) as string },
    });
    expect(answer.body['balances']).toMatchObject([{ limit: 'monthlyTokens', of: 1000, left: 1000 }]);
    expect(cookieIn(answer).pair).toMatch(/^dragoman=dgs_/);
    expect(JSON.stringify(answer.body)).not.toContain(password);
    const ada = withCookie(all, answer);
    expect((await ada.ask('GET', '/server/mine')).body).toMatchObject({ email: 'ada@example.org' });
    expect((await ada.ask('GET', '/server/admin/users')).status).toBe(404);
    expect((await ada.ask('POST', '/user/get-user-logins')).body['response']).toMatchObject([{ status: 'Success', comment: 'sign-up' }]);
    expect((await all.nobody('POST', '/server/session', { email: 'ada@example.org', password })).status).toBe(200);

    const id = answer.body['id'] as number;
    const { body: trail } = await all.admin('GET', `/server/admin/audit?targetKind=user&targetId=${id}`);
    expect(trail['items']).toMatchObject([{ actor: { type: 'user', userId: id }, action: 'user.sign-up', address: '127.0.0.1' }]);
    expect(JSON.stringify(trail)).not.toMatch(/correct horse|scrypt/);
  });

  test('there is nothing at the address unless it is switched on, whatever is sent', { timeout: long }, async () => {
    const all = await visited(await place());
    for (const body of [{ email: 'ada@example.org', password }, {}, { role: 'admin' }, undefined, '{', '[1,', '"\\ud800"']) {
      const { status, headers } = await all.nobody('POST', signup, body);
      expect([body, status, headers.getSetCookie()]).toEqual([body, 404, []]);
    }
    await all.server.change(yaml);
    expect((await all.nobody('POST', signup, { email: 'ada@example.org', password })).status).toBe(201);
    await all.server.change('');
    expect((await all.nobody('POST', signup, { email: 'bob@example.org', password })).status).toBe(404);
  });

  test('takes the domains that the settings name, exactly, and what is malformed is 400', { timeout: long }, async () => {
    const all = await visited(await place(), { yaml: 'newUsers: { signup: true, domains: [example.org, Example.com] }' });
    const refused = ['ada@example.net', 'ada@sub.example.org', 'ada@notexample.org', 'ada@example.org.evil.net', 'ada@org'];
    for (const email of refused) {
      const { status, body } = await all.nobody('POST', signup, { email, password });
      expect([email, status, body['error']]).toEqual([email, 403, expect.stringContaining('email')]);
    }
    for (const email of ['ada@EXAMPLE.org', 'ada@example.com'])
      expect([email, (await all.nobody('POST', signup, { email, password })).status]).toEqual([email, 201]);
    const malformed: [body: unknown, field: RegExp][] = [
      [{ password }, /email/],
      [{ email: 'eve@example.org' }, /password/],
      [{ email: 'eve@example.org', password: 'short' }, /password/],
      [{ email: 'eve@example.org', password: 'x'.repeat(257) }, /password/],
      [{ email: 'eve@example.org', password: 'x'.repeat(1_000_000) }, /password/],
      [{ email: 'eve@example.org\n', password }, /email/],
      [{ email: 'eve\u0007@example.org', password }, /email/],
      [{ email: 'eve\u0000@example.org', password }, /email/],
      [{ email: 'еve@example.org', password }, /email/],
      [{ email: 'ada@example.net@example.org', password }, /email/],
      [{ email: 'eve@example.org', password, role: 'admin' }, /role/],
      [{ email: 'eve@example.org', password, plan: 'unlimited' }, /plan/],
      [{ email: 'eve@example.org', password, id: 1 }, /id/],
    ];
    for (const [body, field] of malformed) {
      const { status, body: answer } = await all.nobody('POST', signup, body);
      expect([JSON.stringify(body).slice(0, 80), status, answer['error']]).toEqual([JSON.stringify(body).slice(0, 80), 400, expect.stringMatching(field)]);
    }
    const { body } = await all.admin('GET', '/server/admin/users?query=eve');
    expect(body['items']).toEqual([]);
  });

  test('changes nothing of a user who is there, and says of each no more than that the address is taken', { timeout: long }, async () => {
    const all = await visited(await place(), { yaml });
    const [ada, bob, eve, joe] = [await person(all, { password }), await person(all), await person(all, { password }), await person(all)];
    await all.admin('PATCH', `/server/admin/users/${eve.id}`, { status: 'suspended' });
    const answers = new Set<string>();
    for (const email of [ada.email.toUpperCase(), bob.email, eve.email]) {
      for (const given of [password, 'my own password']) {
        const { status, body, headers } = await all.nobody('POST', signup, { email, password: given });
        expect([email, status, headers.getSetCookie()]).toEqual([email, 409, []]);
        answers.add(JSON.stringify({ ...body, error_ref: '' }));
      }
    }
    expect(answers.size).toBe(1);
    const signIn = async (email: string, given: string) => (await all.nobody('POST', '/server/session', { email, password: given })).status;
    expect([await signIn(ada.email, password), await signIn(ada.email, 'my own password'), await signIn(bob.email, 'my own password')]).toEqual([
      200, 401, 401,
    ]);
    expect((await ada.ask('POST', '/user/get-user-logins')).body['response']).toEqual(
      expect.arrayContaining([expect.objectContaining({ status: 'Failure', comment: 'sign-up: the address is in use' })]),
    );
    await all.admin('DELETE', `/server/admin/users/${joe.id}`);
    const again = await all.nobody('POST', signup, { email: joe.email, password });
    expect([again.status, again.body['id'] === joe.id]).toEqual([201, false]);
  });

  test('twenty at once with one address make one user', { timeout: long }, async () => {
    const all = await visited(await place(), { yaml });
    const answers = await Promise.all(Array.from({ length: 20 }, () => all.nobody('POST', signup, { email: 'ada@example.org', password })));
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([201, ...Array.from({ length: 19 }, () => 409)]);
    const { body } = await all.admin('GET', '/server/admin/users?query=ada');
    expect((body['items'] as User[]).map(({ email }) => email)).toEqual(['ada@example.org']);
    expect(answers.filter(({ headers }) => headers.getSetCookie().length > 0)).toHaveLength(1);
  });

  test('a page elsewhere signs nobody up', { timeout: long }, async () => {
    const all = await visited(await place(), { yaml: `${yaml}\ncors: { origins: ["https://app.example.org"] }` });
    const from = async (origin: string) => (await all.nobody('POST', signup, { email: 'ada@example.org', password }, { headers: { origin } })).status;
    expect([await from('https://app.example.org'), await from('null'), await from(all.server.url)]).toEqual([403, 403, 201]);
  });
});

test('a server where anybody may sign up, and new users have no limits, says so when it starts', { timeout: long }, async () => {
  const started = async (more: string): Promise<readonly string[]> => {
    const warnings: string[] = [];
    const log = { ...openLog('silent'), level: () => {}, warn: (_: object, text: string) => void warnings.push(text) };
    const server = await startTestServer({ log, yaml: `newUsers: { signup: true }\n${more}` });
    onTestFinished(() => server.close());
    return warnings.filter((text) => text.includes('sign up'));
  };
  expect(await started('')).toEqual([expect.stringContaining('newUsers.plan')]);
  expect(await started('plans: { free: { monthlyTokens: 1000 } }')).toEqual([]);
});

/* Who asks, administrators' calls, and the manners of the whole interface. */
import { expect, test } from 'vitest';
import { native } from '../../../src/faces/native/index.ts';
import { chat } from '../../support/server.ts';
import { onBothDatabases } from '../../support/databases.ts';
import { proves } from '../../support/proves.ts';
import { systemClock } from '#kit/async/clock';
import type { Exchange } from '#http/exchange';
import type { NounRoute } from '#http/noun-route';
import type { Asked } from '#http/route';
import { chatBody, person, visited } from './visitors.ts';

const long = 120_000;
const largest = Number.MAX_SAFE_INTEGER;

onBothDatabases('the native interface', ({ place }) => {
  test('whoever has a good credential, of any scope, is told who they are, with what is left of each monthly limit', { timeout: long }, async () => {
    const all = await visited(await place(), { yaml: 'plans: { small: { monthlyTokens: 1000, monthlyUsd: 5 }, group: { monthlyTrainTokens: 70 } }' });
    const ada = await person(all, { plan: 'small' }, { scopes: ['passthrough', 'mcp'] });
    await all.admin('POST', '/server/admin/teams', { name: 'group', plan: 'group', members: [ada.id] });
    const spent = ((await ada.ask('POST', chat, chatBody)).body['usage'] as { total_tokens: number }).total_tokens;
    const next = new Date();
    const resetsAt = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1)).toISOString();
    const user = { owner: `user:${ada.id}`, model: null, resetsAt };
    const expected = {
      id: ada.id,
      email: ada.email,
      role: 'user',
      plan: 'small',
      status: 'active',
      teams: [{ id: 1, name: 'group', admin: false }],
      balances: [
        { ...user, limit: 'monthlyTokens', of: 1000, used: spent, left: 1000 - spent },
        { ...user, limit: 'monthlyUsd', of: 5, used: 0, left: 5 },
        { owner: 'team:1', limit: 'monthlyTrainTokens', model: null, of: 70, used: 0, left: 70, resetsAt },
      ],
    };
    await expect.poll(async () => (await ada.ask('GET', '/server/mine')).body, { timeout: 30_000 }).toEqual({ ...expected, scopes: ['passthrough', 'mcp'] });
    expect((await all.admin('GET', `/server/mine?owner=${ada.id}`)).body).toEqual({ ...expected, scopes: null });
    expect((await ada.ask('GET', '/server/mine?owner=1')).status).toBe(404);
    expect((await ada.ask('GET', '/server/mine?owner=1&owner=2')).body['error']).toMatch(/owner/);
    for (const path of ['/server/mine', '/server/mine/personas', '/server/mine/usage', '/server/mine/keys/1']) {
      expect([path, (await all.admin('GET', `${path}?owner=9007199254740991`)).status]).toEqual([path, 404]);
      const beyond = await all.admin('GET', `${path}?owner=99999999999999999999`);
      expect([path, beyond.status, beyond.body['error']]).toEqual([path, 400, 'owner must be at most 9007199254740991.']);
    }
    expect((await all.nobody('GET', '/server/mine')).status).toBe(401);

    const full = await ada.ask('POST', '/user/validate_token_with_full_user');
    expect(full.body).toEqual({
      status: 200,
      response: {
        id: ada.id,
        email: ada.email,
        max_tokens: 1000,
        max_train_tokens: largest,
        force_models: [],
        enabled_models: expect.arrayContaining(['built-in']) as string[],
        token_scopes: 'passthrough,mcp',
        plan_type: 'small',
        paid: true,
        role: 'user',
        type: 'user',
        datasets_with_permissions: [],
        persona_source_list: [],
        plugin_source_list: [],
        custom_intro_prompt: '',
      },
    });
    const narrow = await person(all, {}, { models: ['built-in'] });
    expect((await narrow.ask('POST', '/user/validate_token_with_full_user')).body['response']).toMatchObject({
      enabled_models: ['built-in'],
      token_scopes: null,
    });
  });

  test('what is left of limits of a minute, of a model by its alias, and of storage is told too', { timeout: long }, async () => {
    const modelLimits = { nick: { monthlyTokens: 500, requestsPerMinute: 9 } };
    const all = await visited(await place(), {
      yaml: `{ models: { named: { targets: [{ provider: built-in, model: built-in }], aliases: [nick] } }, plans: { small: ${JSON.stringify({ requestsPerMinute: 30, tokensPerMinute: 4000, storageBytes: 1000, modelLimits })} } }`,
    });
    const ada = await person(all, { plan: 'small' });
    const spent = ((await ada.ask('POST', chat, { ...chatBody, model: 'named' })).body['usage'] as { total_tokens: number }).total_tokens;
    await ada.ask('POST', chat, chatBody);
    const left = async () =>
      ((await ada.ask('GET', '/server/mine')).body['balances'] as { limit: string; model: string | null }[]).map(({ limit, model, ...rest }) => [
        limit,
        model,
        rest,
      ]);
    const is = (limit: string, model: string | null, of: number, used: number, resetsAt: unknown = null) => [
      limit,
      model,
      { owner: `user:${ada.id}`, of, used, left: of - used, resetsAt },
    ];
    await expect
      .poll(left, { timeout: 30_000 })
      .toEqual([
        is('monthlyTokens', 'nick', 500, spent, expect.any(String)),
        is('requestsPerMinute', null, 30, 2),
        is('tokensPerMinute', null, 4000, 2 * spent),
        is('requestsPerMinute', 'nick', 9, 1),
        is('storageBytes', null, 1000, 0),
      ]);
  });

  test(
    proves(
      ['server.count-monthly-tokens', 'server.count-monthly-tokens-app', 'server.count-monthly-teach-tokens'],
      'what was used this month is counted, by application too, and what user and teams have left, under /user too',
    ),
    { timeout: long },
    async () => {
      const all = await visited(await place(), { yaml: 'plans: { small: { monthlyTokens: 1000 }, group: { monthlyTokens: 500 } }' });
      const ada = await person(all, { plan: 'small' });
      await all.admin('POST', '/server/admin/teams', { name: 'group', plan: 'group', members: [ada.id] });
      const call = await ada.ask('POST', chat, chatBody, { headers: { 'x-app-name': 'laptop' } });
      const spent = (call.body['usage'] as { total_tokens: number }).total_tokens;
      const count = async (method: string, path: string, body?: unknown) => (await ada.ask(method, path, body)).body;
      await expect.poll(() => count('GET', '/server/count-monthly-tokens'), { timeout: 30_000 }).toEqual({ response: spent, status: 200 });
      for (const [app_name, tokens] of [
        ['laptop', spent],
        ['phone', 0],
        ['asksage', spent],
        ['', spent],
      ] as const)
        expect([app_name, (await count('POST', '/user/count-monthly-tokens', { app_name }))['response']]).toEqual([app_name, tokens]);
      expect((await ada.ask('POST', '/server/count-monthly-tokens', { app_name: ['x'] })).body['response']).toMatch(/app_name/);
      expect(await count('GET', '/server/count-monthly-teach-tokens')).toEqual({ response: 0, status: 200 });
      expect(await count('POST', '/user/count-monthly-tokens-left-with-org', {})).toEqual({ response: 500 - spent, status: 200 });
    },
  );

  test("administrators list users with their tokens and set a user's own limits; nobody else does", { timeout: long }, async () => {
    const all = await visited(await place());
    const [ada, bob] = [await person(all), await person(all)];
    const list = (body?: unknown) => all.admin('POST', '/user/admin-get-all-users-with-tokens', body);
    expect((await list()).body).toMatchObject({ count: 3, total: 3, status: 200, response: [{ id: 1 }, { id: ada.id }, { id: bob.id }] });
    const update = (body: unknown, path = 'admin-update-user-tokens', ask = all.admin) => ask('POST', `/user/${path}`, body);
    expect((await update({ id: String(ada.id), tokens: 500 })).body).toEqual({ response: 'OK', status: 200 });
    expect((await update({ id: ada.id, tokens: 0 }, 'admin-update-user-train-tokens')).status).toBe(200);
    expect((await list({ email: ada.email.toUpperCase() })).body).toEqual({
      response: [{ id: ada.id, email: ada.email, max_tokens: 500, max_train_tokens: 0, tokens_used: 0, train_tokens_used: 0 }],
      count: 1,
      total: 1,
      status: 200,
    });
    expect((await list({ start: 1, limit: 1 })).body).toMatchObject({ response: [{ id: ada.id }], count: 1, total: 3 });
    expect((await all.admin('GET', '/server/admin/audit?action=user.change')).body['items']).toHaveLength(2);

    for (const [body, field] of [
      [{ id: ada.id }, /tokens/],
      [{ tokens: 5 }, /id/],
      [{ id: 'ada', tokens: 5 }, /id/],
      [{ id: [ada.id], tokens: 5 }, /id/],
      [{ id: ada.id, tokens: -1 }, /tokens/],
      [{ id: ada.id, tokens: 1e300 }, /tokens/],
      [{ id: 1e300, tokens: 5 }, /id/],
    ] as const)
      expect(await update(body)).toMatchObject({ status: 400, body: { response: expect.stringMatching(field) as string } });
    for (const [body, field] of [
      [{ start: -1 }, /start/],
      [{ limit: 0 }, /limit/],
      [{ limit: 1001 }, /limit/],
      [{ email: 5 }, /email/],
    ] as const)
      expect(await list(body)).toMatchObject({ status: 400, body: { response: expect.stringMatching(field) as string } });
    expect((await update({ id: 999_999, tokens: 5 })).status).toBe(404);
    for (const path of ['admin-get-all-users-with-tokens', 'admin-update-user-tokens', 'admin-update-user-train-tokens'])
      expect([path, (await update({ nonsense: true }, path, ada.ask)).status]).toEqual([path, 403]);
  });

  test(
    proves('auth.keys-need-user', 'no key is made, listed or deleted without a credential, with a bad one, or with a scoped one'),
    { timeout: long },
    async () => {
      const all = await visited(await place());
      const scoped = await person(all, {}, { scopes: ['query', 'admin'] });
      for (const [method, path, body] of [
        ['POST', '/user/user-api-key', { name: 'n' }],
        ['POST', '/user/get-user-api-keys', {}],
        ['DELETE', '/user/user-api-key?id=1', undefined],
        ['GET', '/server/mine/keys', undefined],
        ['POST', '/server/mine/keys', { name: 'n' }],
      ] as const) {
        const statuses = [all.nobody, all.as('x'.repeat(64)), all.as('x'.repeat(9000)), scoped.ask].map(async (ask) => (await ask(method, path, body)).status);
        expect([path, await Promise.all(statuses)]).toEqual([path, [401, 401, 401, 403]]);
      }
    },
  );

  test('refusals have the real status, or 200 where the settings say so, and the same body', { timeout: long }, async () => {
    const all = await visited(await place(), { yaml: 'compat: { nativeErrors: envelope }' });
    const ada = await person(all);
    const bad = all.as('x'.repeat(64));
    const body = (status: number, message: unknown) => ({
      response: message,
      status,
      message,
      error: message,
      error_ref: expect.stringMatching(/^req_/) as string,
    });
    const badToken = 'Token is invalid [1]';
    expect(await bad('POST', '/user/get-user-logins')).toMatchObject({ status: 200, body: body(401, badToken) });
    expect(await ada.ask('POST', '/user/user-api-key', {})).toMatchObject({ status: 200, body: { status: 400 } });
    expect(await ada.ask('POST', '/user/no-such-thing')).toMatchObject({ status: 200, body: { status: 404 } });
    expect((await bad('GET', '/server/mine')).status).toBe(401);
    expect((await bad('POST', chat, chatBody)).status).toBe(401);
    await all.server.change('');
    expect(await bad('POST', '/user/get-user-logins')).toMatchObject({ status: 401, body: body(401, badToken) });
    expect(await ada.ask('POST', '/user/no-such-thing')).toMatchObject({ status: 404, body: { status: 404 } });
    expect((await ada.ask('DELETE', '/user/get-user-logins')).status).toBe(405);
  });
});

test.each([
  [true, { model_tokens: 3, plan_tokens: 4, asksage_tokens: 4 }, { convert_to_asksage: true, convert_to_plan_tokens: true }],
  [false, { model_tokens: 3, plan_tokens: 4 }, { app_name: 'asksage', convert_to_asksage: true }],
])('with vendor names (%s) a field has both names or ours alone, and an application that is the vendor stands for none', async (vendorNames, usage, fields) => {
  let asked: unknown;
  const route: NounRoute = {
    method: 'POST',
    path: '/user/get-token',
    scope: 'any',
    owner: 'caller',
    summary: '',
    answer: ({ json }) => void (asked = json),
  };
  const answering = { ...route, answer: (one: Parameters<NounRoute['answer']>[0]) => (route.answer(one), 'text') };
  const compat = () => ({ nativeErrors: 'http' as const, vendorNames });
  const limits = () => ({ holdHeadersSeconds: 10, requestSeconds: 600, streamSeconds: 3600 });
  const face = native([answering], { compat, clock: systemClock, limits });
  const exchange = { method: 'POST', id: 'req_1', address: null, params: {}, query: new URLSearchParams(), header: () => undefined } as unknown as Exchange;
  const json = { app_name: 'asksage', convert_to_asksage: true };
  await face.routes[0]!.answer({ exchange, caller: { userId: 1, keyId: 1 }, json } as unknown as Asked);
  expect(asked).toEqual(fields);
  const { withVendorNames } = await import('../../../src/faces/native/vendor-names.ts');
  const answer = { response: 'text', usage: { model_tokens: 3, plan_tokens: 4 } };
  expect((vendorNames ? withVendorNames(answer) : answer).usage).toEqual(usage);
});

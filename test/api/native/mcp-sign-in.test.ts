/* Signing in at MCP servers: OAuth 2.1 with an authorization server that keeps to it, and with hostile ones. */
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { anyPlace, onBothDatabases, onServer, type Place } from '../../support/databases.ts';
import { startScriptedMcp, toolNamed } from '../../support/fakes/mcp.ts';
import { startOAuthMcp, type OAuthMcp } from '../../support/fakes/oauth-mcp.ts';
import { proves } from '../../support/proves.ts';
import { runs } from './run-events.ts';
import { person, visited, visitorsOf, type Asker, type Person, type Visited } from './visitors.ts';

const long = 120_000;
const root = '/server/mine/mcp-servers';

async function signedUp(place: Place, mcp: Pick<OAuthMcp, 'origin' | 'url'>, yaml = '') {
  const all = await visited(place, { yaml: `outbound: { allow: ["${mcp.origin}"] }\n${yaml}` });
  const ada = await person(all);
  const id = (await ada.ask('POST', root, { name: 'guarded', url: mcp.url })).body['id'] as number;
  return { all, ada, id };
}

const begun = (who: Pick<Person, 'ask'>, id: number) => who.ask('POST', `${root}/${id}/oauth`);
const tested = async (ask: Asker, id: number, body: object = { tool: 'one' }) => (await ask('POST', `${root}/${id}/test`, body)).body;
const shown = async (who: Pick<Person, 'ask'>, id: number) => (await who.ask('GET', `${root}/${id}`)).body;

/** As the browser of the user does. */
async function signIn(who: Pick<Person, 'ask'>, mcp: OAuthMcp, id: number): Promise<Response> {
  return fetch(await mcp.visit((await begun(who, id)).body['url'] as string));
}

onBothDatabases('signing in at an MCP server', ({ place, name }) => {
  test('with PKCE, state, issuer and a registration of our own; its tokens are renewed, sealed, and forgotten', { timeout: long }, async () => {
    const mcp = await startOAuthMcp();
    const where = await place();
    const { all, ada, id } = await signedUp(where, mcp);
    const bob = await person(all);
    expect(await shown(ada, id)).toMatchObject({ state: 'unreachable', lastError: expect.stringContaining('not been asked yet') as string, oauth: 'none' });
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'sign-in', error: expect.stringContaining('sign in') as string });
    expect(await shown(ada, id)).toMatchObject({ state: 'sign-in', oauth: 'needed' });
    expect((await begun(bob, id)).status).toBe(404);

    const { status, body } = await begun(ada, id);
    expect([status, Object.keys(body)]).toEqual([200, ['url']]);
    const url = new URL(body['url'] as string);
    expect([url.origin, url.searchParams.get('scope'), url.searchParams.get('resource')]).toEqual([mcp.origin, 'mcp:use', mcp.url]);
    const back = await mcp.visit(url.href);
    expect(back).toMatch(`${all.server.url}/server/mcp/oauth/callback?`);
    const page = await fetch(back);
    expect([page.status, page.headers.get('content-type'), page.headers.get('cache-control')]).toEqual([200, 'text/html; charset=utf-8', 'private, no-store']);
    const html = await page.text();
    expect(html).toContain('Signed in');
    expect(html).not.toMatch(/<script|guarded|person-/);
    expect((await fetch(back)).status).toBe(400); // once
    expect(await shown(ada, id)).toMatchObject({ state: 'ok', oauth: 'connected' });
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'ok', result: { text: 'done' } });
    expect(mcp.credentials.every((one) => one === undefined || one.startsWith('Bearer '))).toBe(true);

    const [before] = mcp.credentials.slice(-1);
    mcp.expire(); // a token that was good is refused
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'ok' });
    expect(mcp.credentials.at(-1)).not.toBe(before);
    expect(mcp.asked.token.map((one) => one.get('grant_type'))).toEqual(['authorization_code', 'refresh_token']);

    const trail = (await all.admin('GET', `/server/admin/audit?targetKind=mcp-server`)).body['items'] as { action: string }[];
    expect(trail.filter(({ action }) => action === 'mcp-server.sign-in')).toMatchObject([{ actor: { userId: ada.id } }]);
    expect((await ada.ask('DELETE', `${root}/${id}/oauth`)).body).toMatchObject({ oauth: 'none' });
    expect((await ada.ask('DELETE', `${root}/${id}/oauth`)).status).toBe(404);
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'sign-in' });
    expect(mcp.asked.register).toHaveLength(1);
    await all.server.close();
    if (name === 'embedded') expect(await inFiles(where.folder, before!.slice(7))).toBe(false);
  });

  test('is over with another address, another credential, and the server', { timeout: long }, async () => {
    const [mcp, other] = [await startOAuthMcp(), await startScriptedMcp([toolNamed('one')])];
    const { ada, id } = await signedUp(await place(), mcp, '').then(({ all, ...rest }) => ({ ...rest, all }));
    await signIn(ada, mcp, id);
    const late = (await begun(ada, id)).body['url'] as string;
    // an address elsewhere gets nothing
    expect((await ada.ask('PUT', `${root}/${id}`, { name: 'guarded', url: `${mcp.origin}/mcp?other` })).body).toMatchObject({ oauth: 'none' });
    expect((await fetch(await mcp.visit(late))).status).toBe(400);
    mcp.credentials.length = 0;
    await tested(ada.ask, id);
    expect(new Set(mcp.credentials)).toEqual(new Set([undefined]));
    expect(other.asked).toEqual([]);

    await ada.ask('PUT', `${root}/${id}`, { name: 'guarded', url: mcp.url });
    await signIn(ada, mcp, id);
    expect((await ada.ask('PUT', `${root}/${id}`, { name: 'guarded', url: mcp.url, headers: { Authorization: 'Bearer mine' } })).body).toMatchObject({
      oauth: 'none',
    });
    expect(await begun(ada, id)).toMatchObject({ status: 409, body: { error: expect.stringContaining('authorization') as string } });
    mcp.credentials.length = 0;
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'sign-in' });
    expect(new Set(mcp.credentials)).toEqual(new Set(['Bearer mine']));
    expect(await shown(ada, id)).toMatchObject({ state: 'sign-in', oauth: 'none' });
    await ada.ask('DELETE', `${root}/${id}`);
    expect((await begun(ada, id)).status).toBe(404);
  });
});

describe('a sign-in', () => {
  test('asks for more rights when the server does, and is renewed before its end', { timeout: long }, async () => {
    const mcp = await startOAuthMcp();
    const { ada, id } = await signedUp(await anyPlace(), mcp);
    mcp.how.seconds = 0; // is over at once
    await signIn(ada, mcp, id);
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'ok' });
    expect(mcp.asked.token.length).toBeGreaterThan(1);
    mcp.how.seconds = 3600;
    mcp.how.scope = 'mcp:more';
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'sign-in', error: expect.stringContaining('more rights') as string });
    await signIn(ada, mcp, id);
    expect(mcp.asked.authorize.at(-1)!.get('scope')!.split(' ')).toContain('mcp:more');
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'ok' });
  });

  test(
    proves('P-06', 'that leads to a wrong address, or comes back from another authorization server, is refused, at once and in words'),
    { timeout: long },
    async () => {
      const mcp = await startOAuthMcp();
      const { all, ada, id } = await signedUp(await anyPlace(), mcp);
      const http = 'http://auth.example/authorize';
      for (const [what, wrong] of [
        ['metadata', { authorization_endpoint: 'javascript:alert(1)' }],
        ['metadata', { authorization_endpoint: 'file:///etc/passwd' }],
        ['metadata', { authorization_endpoint: 'data:text/html,x' }],
        ['metadata', { authorization_endpoint: http }],
        ['metadata', { token_endpoint: http }],
        ['metadata', { registration_endpoint: 'http://127.0.0.1:1/register' }],
        ['metadata', { issuer: 'https://other.example' }],
        ['metadata', { code_challenge_methods_supported: ['plain'] }],
        // without an issuer in the answer, a code could be taken elsewhere than where it is from
        ['metadata', { authorization_response_iss_parameter_supported: undefined, authorization_endpoint: 'https://other.example/authorize' }],
        ['metadata', { authorization_response_iss_parameter_supported: false, token_endpoint: 'https://other.example/token' }],
        ['metadata', { code_challenge_methods_supported: undefined }],
        ['metadata', { registration_endpoint: undefined }],
        ['metadata', { scopes_supported: 'x'.repeat(100_000) }],
        ['resource', { resource: 'https://other.example/mcp' }],
        ['resource', { scopes_supported: 'x'.repeat(100_000) }],
        ['resource', { authorization_servers: ['javascript:alert(1)'] }],
        ['resource', { authorization_servers: ['http://169.254.169.254/'] }],
      ] as const) {
        mcp.how[what] = wrong;
        const from = performance.now();
        const { status, body } = await begun(ada, id);
        expect([wrong, status, typeof body['error']]).toEqual([wrong, 502, 'string']);
        expect(performance.now() - from).toBeLessThan(10_000);
        Object.assign(mcp.how, { metadata: {}, resource: {} });
      }
      for (const [back, status] of [
        [{ iss: 'https://evil.example' }, 502],
        [{ error: 'access_denied' }, 400],
        [{ state: 'x' }, 400],
      ] as const) {
        mcp.how.back = back;
        expect([back, (await signIn(ada, mcp, id)).status]).toEqual([back, status]);
        expect(await shown(ada, id)).toMatchObject({ oauth: expect.stringMatching(/failed|none/) as string });
      }
      expect(mcp.asked.token).toEqual([]);
      mcp.how.back = {};
      mcp.how.sendsIssuer = false; // which it said it would
      expect((await signIn(ada, mcp, id)).status).toBe(502);
      expect(mcp.asked.token).toEqual([]);
      const callback = `${all.server.url}/server/mcp/oauth/callback`;
      for (const query of ['', '?state=', '?state=%00&code=x', `?state=${'x'.repeat(3000)}`, '?state=%3Cscript%3E&error=%3Cscript%3E'])
        expect([query, (await fetch(callback + query)).status]).toEqual([query, 400]);
    },
  );

  test('is good where the issuer is written with its slash in one place alone, and where members that say nothing are null', { timeout: long }, async () => {
    const mcp = await startOAuthMcp();
    const { ada, id } = await signedUp(await anyPlace(), mcp);
    for (const [named, issuer] of [
      [mcp.origin, `${mcp.origin}/`],
      [`${mcp.origin}/`, mcp.origin],
    ] as const) {
      mcp.how.resource = { authorization_servers: [named] };
      mcp.how.metadata = { issuer, scopes_supported: null, service_documentation: null };
      mcp.how.back = { iss: issuer };
      mcp.how.members = { redirect_uris: undefined, client_secret: null, logo_uri: null, tos_uri: '', refresh_token: null, scope: null };
      await signIn(ada, mcp, id);
      expect([issuer, await shown(ada, id)]).toMatchObject([issuer, { oauth: 'connected', lastError: null }]);
      expect(await tested(ada.ask, id)).toMatchObject({ state: 'ok' });
      expect((await ada.ask('DELETE', `${root}/${id}/oauth`)).status).toBe(200);
    }
  });

  test('is good without a secret where the authorization server gives none, whatever it says of how clients prove themselves', { timeout: long }, async () => {
    const mcp = await startOAuthMcp();
    const { ada, id } = await signedUp(await anyPlace(), mcp);
    for (const methods of [undefined, ['client_secret_basic'], ['client_secret_post', 'private_key_jwt']]) {
      mcp.how.metadata = { token_endpoint_auth_methods_supported: methods };
      await signIn(ada, mcp, id);
      expect([methods, await shown(ada, id)]).toMatchObject([methods, { oauth: 'connected', lastError: null }]);
      mcp.expire(); // its tokens are renewed without a secret too
      expect([methods, await tested(ada.ask, id)]).toMatchObject([methods, { state: 'ok' }]);
      expect((await ada.ask('DELETE', `${root}/${id}/oauth`)).status).toBe(200);
    }
  });

  test('is begun by its user alone, and needs no right to the server to be forgotten', { timeout: long }, async () => {
    const mcp = await startOAuthMcp();
    const { all, ada, id } = await signedUp(await anyPlace(), mcp);
    const bob = await person(all);
    expect(await all.admin('POST', `${root}/${id}/oauth?owner=${ada.id}`)).toMatchObject({
      status: 403,
      body: { error: expect.stringContaining('themselves') as string },
    });
    expect((await all.admin('POST', `${root}/${id}/oauth?owner=987654`)).status).toBe(404);
    expect((await all.admin('PUT', `${root}/${id}/grants?owner=${ada.id}`, { items: [{ everybody: true, right: 'read' }] })).status).toBe(200);
    for (const [method, path] of [
      ['GET', 'tools'],
      ['POST', 'test'],
      ['POST', 'tools/one/approve'],
      ['DELETE', 'oauth'],
    ] as const)
      expect([path, (await all.admin(method, `${root}/${id}/${path}?owner=987654`)).status]).toEqual([path, 404]);

    await signIn(bob, mcp, id);
    expect(await shown(bob, id)).toMatchObject({ oauth: 'connected' });
    expect((await ada.ask('PUT', `${root}/${id}/grants`, { items: [] })).status).toBe(200);
    expect((await bob.ask('GET', `${root}/${id}`)).status).toBe(404);
    expect(await bob.ask('DELETE', `${root}/${id}/oauth`)).toMatchObject({ status: 200, body: { id, oauth: 'none' } });
    expect((await bob.ask('DELETE', `${root}/${id}/oauth`)).status).toBe(404);
    expect((await ada.ask('DELETE', `${root}/${id}/oauth`)).status).toBe(404); // she has none
  });

  test('registers anew where the authorization server may have forgotten the registration', { timeout: long }, async () => {
    const mcp = await startOAuthMcp();
    const { ada, id } = await signedUp(await anyPlace(), mcp);
    await signIn(ada, mcp, id);
    await signIn(ada, mcp, id); // a registration that is good is used again
    expect(mcp.asked.register).toHaveLength(1);
    mcp.forgetClients();
    const { body } = await begun(ada, id);
    await expect(mcp.visit(body['url'] as string)).rejects.toThrow('400'); // the browser never comes back
    expect((await signIn(ada, mcp, id)).status).toBe(200);
    expect(mcp.asked.register).toHaveLength(2);

    const back = await mcp.visit((await begun(ada, id)).body['url'] as string);
    mcp.forgetClients(); // before the tokens are fetched
    expect((await fetch(back)).status).toBe(502);
    expect((await signIn(ada, mcp, id)).status).toBe(200);
    expect(mcp.asked.register).toHaveLength(3);

    mcp.expire();
    mcp.forgetClients(); // before the tokens are renewed
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'sign-in' });
    expect((await signIn(ada, mcp, id)).status).toBe(200);
    expect(mcp.asked.register).toHaveLength(4);
  });

  test('is needed until a tool was called without one', { timeout: long }, async () => {
    const mcp = await startOAuthMcp();
    const { ada, id } = await signedUp(await anyPlace(), mcp);
    mcp.how.listsForAll = true;
    expect(await tested(ada.ask, id, {})).toMatchObject({ state: 'ok' });
    expect(await shown(ada, id)).toMatchObject({ oauth: 'none' });
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'sign-in' });
    mcp.how.back = { error: 'access_denied' };
    await signIn(ada, mcp, id);
    expect(await tested(ada.ask, id, {})).toMatchObject({ state: 'ok' });
    expect(await shown(ada, id)).toMatchObject({ oauth: 'failed', lastError: expect.stringContaining('given up') as string });
    mcp.how.isOpen = true;
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'ok' });
    expect(await shown(ada, id)).toMatchObject({ oauth: 'none', lastError: null });
  });

  test('that is wanted is named by the runs whose tools are missing', { timeout: long }, async () => {
    const mcp = await startOAuthMcp();
    const { all, ada, id } = await signedUp(await anyPlace(), mcp);
    const agent = { name: 'Worker', mode: 'autonomous', instructions: 'Work.', model: 'built-in', tools: [{ type: 'mcp', server: id }] };
    const made = (await ada.ask('POST', '/server/mine/agents', agent)).body['id'];
    const { body } = await ada.ask('POST', '/server/execute-agent', { agent_id: made, message: 'Call guarded__one now.', streaming: false });
    const told = await runs(ada, all.server.url).events(body['execution_id'] as string);
    expect(told.find(({ event }) => event === 'warning')!.data['data']).toMatchObject({
      message: expect.stringContaining(`/mcp-servers/${id}/oauth`) as string,
    });
  });

  test('needs to know where browsers reach us', { timeout: long }, async () => {
    const mcp = await startOAuthMcp();
    const all = await visited(await anyPlace(), { yaml: `publicUrl: "https://ai.example"\noutbound: { allow: ["${mcp.origin}"] }\n` });
    const ada = await person(all);
    const id = (await ada.ask('POST', root, { name: 'guarded', url: mcp.url })).body['id'] as number;
    const url = new URL((await begun(ada, id)).body['url'] as string);
    expect(url.searchParams.get('redirect_uri')).toBe('https://ai.example/server/mcp/oauth/callback');
  });

  test('that cannot be renewed for the moment is left alone, and is renewed when it can', { timeout: long }, async () => {
    const mcp = await startOAuthMcp();
    const { ada, id } = await signedUp(await anyPlace(), mcp);
    await signIn(ada, mcp, id);
    mcp.expire();
    mcp.how.token = () => ({ status: 500, body: {} });
    for (let times = 0; times < 3; times++) expect(await tested(ada.ask, id)).toMatchObject({ state: 'sign-in' });
    expect(mcp.asked.token).toHaveLength(2);
    expect(await shown(ada, id)).toMatchObject({ oauth: 'failed', lastError: expect.stringContaining('tried again later') as string });
    mcp.how.token = undefined;
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'sign-in' });
    await signIn(ada, mcp, id);
    expect(await tested(ada.ask, id)).toMatchObject({ state: 'ok' });
  });
});

describe.skipIf(!inject('postgres'))('two machines', () => {
  async function twoMachines(mcp: OAuthMcp): Promise<{ here: Visited; there: Visited }> {
    const yaml = `outbound: { allow: ["${mcp.origin}"] }\n`;
    const { folder, databaseUrl = '' } = await onServer(inject('postgres')!).place();
    const here = await visited({ folder, databaseUrl }, { yaml });
    const other = join(folder, 'other');
    await mkdir(join(other, 'data'), { recursive: true });
    await copyFile(join(folder, 'data', 'master.key'), join(other, 'data', 'master.key'));
    return { here, there: await visited({ folder: other, databaseUrl }, { yaml }) };
  }

  test.each(['good', 'refused', 'failing'] as const)('renew tokens once for 50 runs: %s', { timeout: long }, async (way) => {
    const mcp = await startOAuthMcp();
    const { here, there } = await twoMachines(mcp);
    const ada = await person(here);
    const asThere = visitorsOf(there.server).as(ada.key);
    const id = (await ada.ask('POST', root, { name: 'guarded', url: mcp.url })).body['id'] as number;
    await signIn(ada, mcp, id);
    const agent = (await ada.ask('POST', '/server/mine/agents', { name: 'Worker', mode: 'autonomous', instructions: 'Work.', model: 'built-in', tools: [{ type: 'mcp', server: id }] })).body['id']; // prettier-ignore
    const run = (ask: Asker) => ask('POST', '/server/execute-agent', { agent_id: agent, message: 'Call guarded__one now.', streaming: false });
    expect((await run(asThere)).body).toMatchObject({ execution_status: 'completed' });
    mcp.asked.token.length = 0;
    mcp.expire();
    mcp.how.tokenMilliseconds = 300;
    if (way === 'refused') mcp.how.token = () => ({ status: 400, body: { error: 'invalid_grant' } });
    if (way === 'failing') mcp.how.token = () => ({ status: 503, body: {} });
    const all = await Promise.all(Array.from({ length: 50 }, (_, at) => run(at % 2 === 0 ? ada.ask : asThere)));
    expect(new Set(all.map(({ body }) => body['execution_status']))).toEqual(new Set(['completed']));
    expect(mcp.asked.token.map((one) => one.get('grant_type'))).toEqual(['refresh_token']);
    const oauth = { good: 'connected', refused: 'needed', failing: 'failed' }[way];
    for (const ask of [ada.ask, asThere]) expect(await shown({ ask }, id)).toMatchObject({ oauth, state: way === 'good' ? 'ok' : 'sign-in' });
  });
});

/** Whether a text stands in a file of the folder. */
async function inFiles(folder: string, wanted: string): Promise<boolean> {
  const { glob, readFile } = await import('node:fs/promises');
  for await (const path of glob('**', { cwd: folder })) {
    const bytes = await readFile(join(folder, path)).catch(() => undefined);
    if (bytes?.includes(wanted)) return true;
  }
  return false;
}

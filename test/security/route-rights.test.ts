/*
 * The rights of every route, made from the routes themselves: each address of the document is asked with each kind of credential. A route without its line
 * here fails the test, and so does a line without its route.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { covered, scopes } from '#http/route';
import { proves } from '../support/proves.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

/** What lets in: `alone` is for credentials that nothing narrows; of a role: what everybody else is told. */
const lines: Readonly<Record<string, string>> = {
  public: `GET /, GET /favicon.ico, GET /healthz, GET /readyz, GET /metrics, GET /openapi.json, GET /docs, GET /docs.css, GET /.well-known/jwks.json,
    GET /server/mcp/oauth/callback,
    POST /user/get-token-with-api-key, POST /user/get-token, POST /server/session, POST /server/session/signup`,
  any: `GET /server/mine, GET /server/session, DELETE /server/session, POST /user/validate_token_with_full_user,
    POST /server/get-models`,
  unscoped: `GET /server/mine/keys, GET /server/mine/keys/{id}, DELETE /server/mine/keys/{id}, POST /user/get-user-api-keys, DELETE /user/user-api-key,
    GET /server/mine/usage, GET /server/mine/logs, GET /server/mine/logs/{requestId}, GET /server/mine/teams/{id}, PATCH /server/mine/teams/{id},
    GET /server/mine/teams/{id}/keys, GET /server/mine/teams/{id}/usage, GET /server/mine/teams/{id}/logs, GET /server/mine/teams/{id}/logs/{requestId},
    POST /user/get-user-logins, POST /user/get-user-logs, POST /server/get-secrets, GET /server/mine/secrets, POST /server/mine/secrets,
    GET /server/mine/secrets/{id}, PUT /server/mine/secrets/{id}, DELETE /server/mine/secrets/{id}, GET /server/mine/secrets/{id}/grants,
    PUT /server/mine/secrets/{id}/grants`,
  'unscoped alone': `POST /server/mine/keys, PATCH /server/mine/keys/{id}, POST /server/mine/keys/{id}/rotate, PUT /server/mine/password,
    POST /user/user-api-key`,
  query: `POST /server/count-monthly-tokens, POST /server/count-monthly-teach-tokens, POST /server/count-monthly-tokens-left-with-org,
    POST /server/query, POST /server/query_stream, POST /server/query_with_file, POST /server/follow-up-questions, POST /server/follow_up_questions,
    POST /server/get-text-to-speech, POST /server/list-tts-voices, POST /server/vote-down, POST /user/get-chats, POST /user/get-chat-session, POST /user/delete-chat-session, POST /user/create-chat-session,
    POST /user/append-chat, POST /user/update-chat-session-json, POST /user/update-chat-session-title, POST /user/copy-chat, GET /server/mine/chats,
    POST /server/mine/chats, GET /server/mine/chats/{id}, PUT /server/mine/chats/{id}, DELETE /server/mine/chats/{id}, GET /server/mine/chats/{id}/grants, PUT /server/mine/chats/{id}/grants,
    POST /server/mine/chats/{id}/messages, PATCH /server/mine/chats/{id}/messages/{message}, DELETE /server/mine/chats/{id}/messages/{message}, POST /server/tokenizer, POST /server/get-personas, GET /server/mine/personas, POST /server/mine/personas, GET /server/mine/personas/{id},
    PUT /server/mine/personas/{id}, DELETE /server/mine/personas/{id}, GET /server/mine/personas/{id}/grants, PUT /server/mine/personas/{id}/grants`,
  datasets: `POST /server/file, POST /server/get-dataset-results, POST /user/add-dataset, POST /user/delete-dataset, POST /user/get-datasets-with-permissions, POST /user/assign-dataset,
    POST /user/update-permission-dataset, POST /user/deassign-dataset, POST /server/get-datasets, POST /server/get-dataset-info,
    POST /server/get-all-files-ingested, POST /server/delete-filename-from-dataset, POST /server/copy-files-dataset, GET /server/mine/datasets,
    POST /server/mine/datasets, GET /server/mine/datasets/{id}, PUT /server/mine/datasets/{id}, DELETE /server/mine/datasets/{id},
    GET /server/mine/datasets/{id}/grants, PUT /server/mine/datasets/{id}/grants, POST /server/train, POST /server/train-with-file,
    POST /server/train-with-array, POST /server/train-with-file-status, GET /server/mine/datasets/{id}/files, POST /server/mine/datasets/{id}/files,
    GET /server/mine/datasets/{id}/files/{file}, DELETE /server/mine/datasets/{id}/files/{file}, GET /server/mine/datasets/{id}/files/{file}/original,
    GET /server/mine/datasets/{id}/files/{file}/passages, GET /server/mine/datasets/{id}/files/{file}/grants,
    PUT /server/mine/datasets/{id}/files/{file}/grants, GET /server/mine/passages/{id}, GET /server/mine/jobs, GET /server/mine/jobs/{id},
    POST /server/mine/jobs/{id}/retry, POST /server/mine/jobs/{id}/cancel, GET /server/mine/datasets/{id}/sources, POST /server/mine/datasets/{id}/sources,
    GET /server/mine/datasets/{id}/sources/{source}, PATCH /server/mine/datasets/{id}/sources/{source}, DELETE /server/mine/datasets/{id}/sources/{source},
    POST /server/mine/datasets/{id}/sources/{source}/sync`,
  agent_builder: `POST /server/list-agents, POST /server/execute-agent, POST /server/get-deep-agent, GET /server/mine/agents, POST /server/mine/agents, GET /server/mine/agents/{id},
    PUT /server/mine/agents/{id}, DELETE /server/mine/agents/{id}, GET /server/mine/agents/{id}/versions, GET /server/mine/agents/{id}/versions/{version},
    POST /server/mine/agents/{id}/publish, GET /server/mine/agents/{id}/grants, PUT /server/mine/agents/{id}/grants, GET /server/mine/runs,
    GET /server/mine/runs/{id}, GET /server/mine/runs/{id}/events, POST /server/mine/runs/{id}/cancel, POST /server/mine/runs/{id}/approve,
    POST /server/mine/runs/{id}/answer, POST /server/mine/runs/{id}/resume`,
  plugins: `POST /server/query-plugin, POST /server/get-plugins, POST /server/execute-plugin, POST /server/execute-plugin-with-file, GET /server/mine/plugins,
    POST /server/mine/plugins, POST /server/mine/plugins/import, GET /server/mine/plugins/{id}, PUT /server/mine/plugins/{id}, DELETE /server/mine/plugins/{id},
    GET /server/mine/plugins/{id}/export, GET /server/mine/plugins/{id}/grants, PUT /server/mine/plugins/{id}/grants`,
  mcp: `POST /server/add-mcp-server, PUT /server/update-mcp-server, DELETE /server/delete-mcp-server, POST /server/list-mcp-servers,
    POST /server/list-mcp-whitelisted-servers, POST /server/list-mcp-tools, GET /server/mine/mcp-servers, POST /server/mine/mcp-servers,
    GET /server/mine/mcp-servers/{id}, PUT /server/mine/mcp-servers/{id}, DELETE /server/mine/mcp-servers/{id}, GET /server/mine/mcp-servers/{id}/tools,
    POST /server/mine/mcp-servers/{id}/tools/{tool}/approve, POST /server/mine/mcp-servers/{id}/test, POST /server/mine/mcp-servers/{id}/oauth,
    DELETE /server/mine/mcp-servers/{id}/oauth, GET /server/mine/mcp-servers/{id}/grants, PUT /server/mine/mcp-servers/{id}/grants,
    POST /server/mcp, GET /server/mcp, DELETE /server/mcp`,
  'admin 403': `POST /user/admin-get-all-users-with-tokens, POST /user/admin-update-user-tokens, POST /user/admin-update-user-train-tokens`,
  'unscoped alone 404': `POST /server/admin/users/{id}/keys, POST /server/admin/users/{id}/keys/{key}/rotate`,
  'admin 404': `GET /server/admin/logs, GET /server/admin/logs/{requestId}, GET /server/admin/usage, GET /server/admin/plans, PUT /server/admin/plans/{name}, DELETE /server/admin/plans/{name},
    GET /server/admin/users, POST /server/admin/users, GET /server/admin/users/{id}, PATCH /server/admin/users/{id}, DELETE /server/admin/users/{id},
    GET /server/admin/users/{id}/keys, DELETE /server/admin/users/{id}/keys/{key}, GET /server/admin/teams, POST /server/admin/teams,
    GET /server/admin/teams/{id}, PATCH /server/admin/teams/{id}, DELETE /server/admin/teams/{id}, GET /server/admin/holders,
    POST /server/admin/holders/{id}/write-off, GET /server/admin/regions, POST /server/admin/regions/reset, GET /server/admin/audit, GET /server/admin/doctor, GET /server/admin/votes,
    GET /server/admin/lessons, DELETE /server/admin/lessons, DELETE /server/admin/lessons/{id}`,
};

/** Everything at one of these is the same interface. */
const interfaces: readonly (readonly [address: RegExp, line: string])[] = [
  [/ \/server\/chatcompat\/v1\/(chat\/completions|completions|embeddings|moderations|models(\/\{id\})?|audio\/\w+|images\/generations)$/, 'passthrough'],
  [/ \/server\/chatcompat\/v1\/responses\/input_tokens$/, 'passthrough'],
  [/ \/server\/chatcompat\/v1\/(responses|conversations)(\/\{id\}(\/\w+(\/\{item\})?)?)?$/, 'passthrough'],
  [/ \/server\/gencompat\/v1(beta)?\/(publishers\/\{publisher\}\/)?models(\/\{id\}|\/\{model\}:\w+)?$/, 'passthrough'],
  [/ \/server\/messages\/v1\/(messages(\/count_tokens)?|models(\/\{id\})?)$/, 'passthrough'],
];

interface Operation {
  readonly operationId: string;
  readonly 'x-scope'?: string;
  readonly 'x-alias-of'?: string;
  readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> };
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly required?: boolean }[];
}

interface Address extends Operation {
  readonly method: string;
  readonly path: string;
}

interface Credential {
  readonly name: string;
  readonly text: string;
  readonly isAdmin: boolean;
  /** Absent: all. */
  readonly scopes?: readonly string[];
  readonly isNarrowed: boolean;
  /** It is no key or token but the cookie of a session. */
  readonly isCookie?: true;
}

let server: TestServer;
let addresses: readonly Address[];
const bad: Record<string, string> = { 'an unknown key': 'x'.repeat(64), 'no key': 'nonsense', 'an unknown token': 'eyJhbGciOiJFZERTQSJ9.e30.AAAA' };
const good: Credential[] = [];
let ownKey = 0;
let othersKey = 0;

beforeAll(async () => {
  server = await startTestServer({ yaml: 'newUsers: { signup: true }' });
  const ask = async (path: string, body?: object, method = 'POST', key = server.key) =>
    (await (await server.ask(path, body, { method: body ? method : 'GET', headers: { authorization: `Bearer ${key}` } })).json()) as {
      id: number;
      key: string;
      response: { access_token: string };
    };
  const user = async (email: string, role: string) => (await ask('/server/admin/users', { email, role, password: 'correct horse' })).id;
  const cookie = async (email: string) => {
    const answer = await fetch(`${server.url}/server/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password: 'correct horse' }),
    });
    return answer.headers.getSetCookie()[0]!.split(';')[0]!;
  };
  const key = (id: number, narrow: object = {}) => ask(`/server/admin/users/${id}/keys`, { name: 'k', ...narrow });
  const token = async (email: string, text: string) => (await ask('/user/get-token-with-api-key', { email, api_key: text })).response.access_token;
  const [ada, bob, root] = [await user('ada@example.org', 'user'), await user('bob@example.org', 'user'), await user('root@example.org', 'admin')];
  ownKey = (await key(ada)).id;
  const others = await key(bob);
  othersKey = others.id;

  for (const [whose, id] of [
    ['user', ada],
    ['admin', root],
  ] as const) {
    const email = whose === 'user' ? 'ada@example.org' : 'root@example.org';
    const add = (name: string, text: string, of: Partial<Credential>) =>
      good.push({ name: `${name} of a ${whose}`, text, isAdmin: whose === 'admin', isNarrowed: false, ...of });
    const whole = await key(id);
    add('a key', whole.key, {});
    add('a token', await token(email, whole.key), {});
    for (const scope of scopes) add(`a key for ${scope}`, (await key(id, { scopes: [scope] })).key, { scopes: [scope], isNarrowed: true });
    add('a token of a key for passthrough', await token(email, (await key(id, { scopes: ['passthrough'] })).key), {
      scopes: ['passthrough'],
      isNarrowed: true,
    });
    add('a key for one model', (await key(id, { models: ['built-in'] })).key, { isNarrowed: true });
    add('a session', await cookie(email), { isCookie: true });
    add('a key that expires', (await key(id, { expiresAt: '2090-01-01T00:00:00Z' })).key, { isNarrowed: true });
  }
  const revoked = await key(ada);
  bad['a token of a revoked key'] = await token('ada@example.org', revoked.key);
  bad['a revoked key'] = revoked.key;
  await ask(`/server/admin/users/${ada}/keys/${revoked.id}`, {}, 'DELETE');
  const eve = await user('eve@example.org', 'admin');
  bad["a suspended administrator's key"] = (await key(eve)).key;
  bad["a suspended administrator's token"] = await token('eve@example.org', bad["a suspended administrator's key"]);
  await ask(`/server/admin/users/${eve}`, { status: 'suspended' }, 'PATCH');

  const { paths } = (await (await server.ask('/openapi.json')).json()) as { paths: Record<string, Record<string, Operation>> };
  addresses = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path })),
  );
}, 120_000);
afterAll(() => server.close());

const nameOf = ({ method, path }: Address) => `${method} ${path}`;
const named = new Map(Object.entries(lines).flatMap(([line, text]) => text.split(',').map((one) => [one.trim(), line] as const)));

/** The line of an address; an alias has that of the operation whose alias it is. */
function lineOf(address: Address): string | undefined {
  const original = address['x-alias-of'];
  const its = original === undefined ? address : addresses.find(({ operationId }) => operationId === original)!;
  return named.get(nameOf(its)) ?? interfaces.find(([form]) => form.test(nameOf(its)))?.[1];
}

/** Asks for what nobody has, and says nothing that could do harm. */
async function asked({ method, path, requestBody, parameters = [] }: Address, credential: Readonly<Record<string, string>>, id = '999999') {
  const needed = Object.fromEntries(parameters.flatMap(({ in: where, name, required }) => (where === 'header' && required ? [[name, '2023-06-01']] : [])));
  const isForm = requestBody !== undefined && !Object.hasOwn(requestBody.content, 'application/json');
  const [type, body] = isForm
    ? ['multipart/form-data; boundary=x', '--x\r\ncontent-disposition: form-data; name="nothing"\r\n\r\n1\r\n--x--\r\n']
    : ['application/json', '{"nothing":1}'];
  const answer = await fetch(server.url + path.replaceAll(/\{\w+\}/g, id), {
    method,
    headers: { 'content-type': type, ...needed, ...credential },
    ...(method === 'GET' || method === 'DELETE' ? {} : { body }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

/** With a cookie no form is sent. */
const takesCookie = ({ requestBody }: Address) => requestBody === undefined || Object.hasOwn(requestBody.content, 'application/json');

/** Statuses of those who may not enter; nothing for those who may. */
function refusedWith(line: string, { isAdmin, scopes: its, isNarrowed }: Credential): number | undefined {
  const [scope = '', ...more] = line.split(' ');
  if (!isAdmin && more.includes('404')) return 404;
  if (more.includes('alone') && isNarrowed) return 403;
  if (scope === 'unscoped' && its) return 403;
  const isCovered = scope === 'any' || scope === 'unscoped' || !its || its.some((one) => one === scope || covered[one]?.some((below) => below === scope));
  if (!isCovered || (!isAdmin && more.includes('403'))) return 403;
  return undefined;
}

test('every route has its line, and every line its route', () => {
  expect(addresses.filter((address) => lineOf(address) === undefined).map(nameOf)).toEqual([]);
  const there = new Set(addresses.map(nameOf));
  expect([...named.keys()].filter((name) => !there.has(name))).toEqual([]);
  for (const address of addresses) expect([nameOf(address), address['x-scope'] ?? 'public']).toEqual([nameOf(address), lineOf(address)!.split(' ')[0]]);
});

describe('at every address', () => {
  test(
    proves(['T-07', 'auth.missing-key', 'auth.invalid-key'], 'no credential and each bad one is 401, in whichever header, unless all may enter'),
    { timeout: 120_000 },
    async () => {
      for (const address of addresses) {
        const isOpen = lineOf(address) === 'public';
        const none = await asked(address, {});
        expect([nameOf(address), none]).toEqual([nameOf(address), isOpen ? expect.toBeOneOf([200, 204, 400]) : 401]);
        if (isOpen) continue;
        const headers = ['x-access-tokens', 'x-api-key', 'x-goog-api-key'];
        for (const [at, [what, text]] of Object.entries(bad).entries())
          for (const credential of [{ authorization: `Bearer ${text}` }, { [headers[at % headers.length]!]: text }])
            expect([nameOf(address), what, await asked(address, credential)]).toEqual([nameOf(address), what, 401]);
      }
    },
  );

  test(
    proves(
      ['T-05', 'K-12', 'auth.scope-covers', 'auth.scope-refuses'],
      'each good credential enters where its line lets it, in whichever header, and is refused as its line says elsewhere',
    ),
    { timeout: 240_000 },
    async () => {
      for (const address of addresses) {
        const line = lineOf(address)!;
        if (line === 'public') continue;
        for (const [at, credential] of good.entries()) {
          if (nameOf(address) === 'DELETE /server/session' && /^a (token|session)/.test(credential.name)) continue; // it would end
          const { text, isCookie } = credential;
          if (isCookie && !takesCookie(address)) continue;
          const ways = [{ 'x-access-tokens': text }, { authorization: `Bearer ${text}` }, { 'x-api-key': text }, { 'x-goog-api-key': text }];
          const status = await asked(address, isCookie ? { cookie: text, origin: server.url } : ways[at % ways.length]!);
          const expected = refusedWith(line, credential) ?? expect.toBeOneOf([200, 201, 400, 404, 405, 409, 415]);
          expect([nameOf(address), credential.name, status]).toEqual([nameOf(address), credential.name, expected]);
        }
      }
    },
  );

  test('a session changes nothing from a page elsewhere, whatever may be done with it', { timeout: 120_000 }, async () => {
    for (const address of addresses) {
      if (lineOf(address) === 'public' || address.method === 'GET') continue;
      for (const { name, text } of good.filter(({ isCookie }) => isCookie))
        for (const page of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }, {}])
          expect([nameOf(address), name, await asked(address, { cookie: text, ...page })]).toEqual([nameOf(address), name, 403]);
    }
  });

  test("where an id stands, another's is as if it were not there, whatever is asked", async () => {
    const [key] = good;
    const headers = { 'x-access-tokens': key!.text };
    const things = addresses.filter(({ path }) => path.startsWith('/server/mine/keys/{id}'));
    expect(things.map(nameOf).toSorted()).toEqual(
      ['DELETE /server/mine/keys/{id}', 'GET /server/mine/keys/{id}', 'PATCH /server/mine/keys/{id}', 'POST /server/mine/keys/{id}/rotate'].toSorted(),
    );
    for (const address of things) {
      const answers = [await asked(address, headers, String(othersKey)), await asked(address, headers, '999999'), await asked(address, headers, '1.5')];
      expect([nameOf(address), new Set(answers).size]).toEqual([nameOf(address), 1]);
      expect([nameOf(address), answers[0]]).toEqual([nameOf(address), address.method === 'GET' || address.method === 'DELETE' ? 404 : 400]);
    }
    const get = things.find(({ method }) => method === 'GET')!;
    expect(await asked(get, headers, String(ownKey))).toBe(200);
  });
});

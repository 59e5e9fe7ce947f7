import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openLog, type Log } from '../../src/telemetry/log.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

type Answer = (response: ServerResponse) => void;

const chat = '/server/chatcompat/v1/chat/completions';
const lines: { readonly level: string; readonly fields: Readonly<Record<string, unknown>>; readonly message: string }[] = [];
const noted = (level: string) => (fields: object, message: string) => void lines.push({ level, fields: { ...fields }, message });
const log: Log = { ...openLog('silent'), level: () => {}, debug: noted('debug'), info: noted('info'), warn: noted('warn'), error: noted('error') };

let answer: Answer = () => {};
let server: TestServer;
let close = () => {};

const saying =
  (status: number, error: object | string): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
  };

beforeAll(async () => {
  const fake = createServer((request, response) => {
    request.resume();
    answer(response);
  });
  await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve));
  const { port } = fake.address() as AddressInfo;
  close = () => {
    fake.close();
    fake.closeAllConnections();
  };
  server = await startTestServer({
    log,
    yaml: `
providers:
  acme: { dialect: openai-chat, baseUrl: "http://127.0.0.1:${port}/v1", apiKeys: [k] }
  claude: { dialect: anthropic-messages, baseUrl: "http://127.0.0.1:${port}", apiKeys: [k] }
  gone: { dialect: openai-chat, baseUrl: "http://127.0.0.1:1/v1", apiKeys: [k] }
models:
  m: { targets: [{ provider: acme }] }
  claude-m: { targets: [{ provider: claude }] }
  away: { targets: [{ provider: gone }] }
  both: { targets: [{ provider: acme }, { provider: built-in }] }
  checked: { targets: [{ provider: acme }] }
search: { engine: searxng, url: "http://127.0.0.1:1" }
guard: { checks: [{ name: mine, when: [before], kind: http, url: "http://127.0.0.1:1/check", action: deny, models: [checked] }] }
rerank: { url: "http://127.0.0.1:${port}/rerank" }
routing: { cooldownSeconds: 0 }
`,
  });
});
afterAll(async () => {
  await server.close();
  close();
});

async function ask(model: string, more: object = {}) {
  lines.length = 0;
  const response = await server.ask(chat, { model, messages: [{ role: 'user', content: 'Say exactly: yes' }], ...more });
  const id = response.headers.get('x-request-id')!;
  const body = (await response.json()) as { error?: { message: string; code: string; type: string } };
  const detail = async () => {
    const path = `/server/admin/logs/${id}`;
    await expect.poll(async () => (await server.ask(path)).status).toBe(200);
    return (await (await server.ask(path)).json()) as { tries: readonly Record<string, unknown>[] };
  };
  return {
    status: response.status,
    ...body.error,
    provider: response.headers.get('x-dragoman-provider'),
    warnings: response.headers.get('x-dragoman-warnings'),
    id,
    detail,
  };
}

test('a refused key: provider, status and code in the answer, the log and the detail, and never the message', async () => {
  answer = saying(401, { message: 'Incorrect API key provided: sk-secret-1234567890.', type: 'invalid_request_error', code: 'invalid_api_key' });
  const { status, message, detail, id } = await ask('m');
  expect([status, message]).toEqual([502, 'The provider acme did not accept our credentials (401, invalid_api_key).']);
  const { tries } = await detail();
  expect(tries).toMatchObject([{ provider: 'acme', fault: 'upstream-failed', status: 401, code: 'invalid_api_key' }]);
  expect(String(tries[0]!['milliseconds'])).toMatch(/^\d+(?:\.\d{1,3})?$/);
  const line = lines.find(({ level, fields }) => level === 'error' && fields['id'] === id)!;
  expect(line.fields['cause']).toMatchObject({ status: 401, code: 'invalid_api_key' });
  expect(JSON.stringify(lines)).not.toMatch(/object Object|Incorrect API key|sk-secret/);
});

test('what a provider says of a request is in the log at level debug alone, also where the answer is 502', async () => {
  answer = saying(404, { message: 'There is no "Say exactly: yes" here.' });
  expect(await ask('m')).toMatchObject({ status: 502, message: expect.stringContaining('Say exactly: yes') });
  expect(lines).toContainEqual({
    level: 'debug',
    fields: expect.objectContaining({ said: 'There is no "Say exactly: yes" here.' }),
    message: expect.anything(),
  });
  const others = lines.filter(({ level }) => level !== 'debug');
  expect(others).toContainEqual(expect.objectContaining({ level: 'error', message: 'request' }));
  expect(JSON.stringify(others)).not.toContain('Say exactly');
});

test.each([
  ['Google', 'm', { code: 400, message: 'API key not valid. Please pass a valid API key.', status: 'INVALID_ARGUMENT' }],
  ['xAI', 'm', 'Incorrect API key provided: xa***cd. You can obtain an API key from https://console.x.ai.'],
  ['a server in front of Claude', 'claude-m', { type: 'invalid_request_error', message: 'Invalid API key.' }],
])('a key that %s refuses with 400 is no mistake of the client, and another provider answers where there is one', async (_, model, error) => {
  answer = saying(400, error);
  const { status, message = '' } = await ask(model);
  expect(status).toBe(502);
  expect(message).toMatch(/^The provider \w+ did not accept our credentials \(400(?:, [\w]+)?\)\.$/);
  if (model === 'm') expect(await ask('both')).toMatchObject({ status: 200, provider: 'built-in' });
});

test('a field of the client with the name api_key is not the key of the provider', async () => {
  answer = saying(400, { type: 'invalid_request_error', message: 'api_key: Extra inputs are not permitted' });
  expect(await ask('claude-m')).toMatchObject({ status: 400, message: expect.stringContaining('api_key') });
});

test.each([
  ['OpenAI', 'm', 'acme', 429, { message: 'You exceeded your current quota, please check your plan.', type: 'insufficient_quota', code: 'insufficient_quota' }],
  ['another that asks for payment', 'm', 'acme', 402, { message: 'Payment required' }],
  ['Anthropic', 'claude-m', 'claude', 400, { type: 'invalid_request_error', message: 'Your credit balance is too low to access the API.' }],
])('no credit left at %s is 502 insufficient_quota of the provider, and another provider answers where there is one', async (_, model, name, code, error) => {
  answer = saying(code, error);
  const { status, message } = await ask(model);
  expect([status, message]).toEqual([502, `The account at the provider ${name} has no credit left (${code}, insufficient_quota).`]);
  if (model === 'm') expect(await ask('both')).toMatchObject({ status: 200, provider: 'built-in' });
});

test('a refused request keeps the sentence of the provider as it is, behind the field, the status and the code', async () => {
  answer = saying(400, {
    message: "Invalid schema for function 'f': 'the provider' is not valid.",
    type: 'invalid_request_error',
    param: 'tools[0].function.parameters',
    code: 'invalid_function_parameters',
  });
  const { status, message, detail } = await ask('m', {
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }],
  });
  expect(status).toBe(400);
  expect(message).toBe(
    "The provider acme did not accept tools[0].function.parameters (400, invalid_function_parameters). It says: Invalid schema for function 'f': 'the provider' is not valid.",
  );
  expect((await detail()).tries).toMatchObject([
    { status: 400, code: 'invalid_function_parameters', said: expect.stringContaining('Invalid schema') as string },
  ]);
});

test.each([
  [400, 'm', 'acme', { message: 'Say exactly: no.', type: 'invalid_request_error', code: 'invalid_value' }, { status: 400, code: 'invalid_value' }],
  [413, 'm', 'acme', { message: 'Say exactly: less.' }, { status: 413 }],
  [422, 'm', 'acme', { message: 'Say exactly: else.', code: 'Say exactly: a code' }, { status: 422 }],
  [400, 'claude-m', 'claude', { type: 'invalid_request_error', message: 'Say exactly: no.' }, { status: 400, code: 'invalid_request_error' }],
])(
  'a request that a provider refuses with %s (%s of %s): its status and code are in the log, and not its words',
  async (code, model, provider, error, cause) => {
    answer = saying(code, error);
    const { status, id } = await ask(model);
    expect(status).toBeLessThan(500);
    const others = lines.filter(({ level }) => level !== 'debug');
    const { fields } = others.find(({ fields }) => fields['id'] === id)!;
    expect([fields['provider'], fields['fault'], fields['cause']]).toEqual([provider, expect.any(String), cause]);
    expect(JSON.stringify(others)).not.toContain('Say exactly');
  },
);

test('the log has no cause of a request that is refused here', async () => {
  const { status, id } = await ask('m', { temperature: 9 });
  expect(status).toBe(400);
  expect(lines.find(({ fields }) => fields['id'] === id)!.fields['cause']).toBeUndefined();
});

test('a code that could be a key, an id or prose is not repeated', async () => {
  for (const code of ['sk-proj-abcdefgh12345678', 'org-a1b2c3d4e5', 'two words', 'x'.repeat(65), 'abcdef0123456789abcdef0123456789', { a: 1 }, 7]) {
    answer = saying(401, { message: 'no', type: 'authentication_error', code });
    const { message } = await ask('m');
    expect(message).toMatch(/^The provider acme did not accept our credentials \(401(?:, (?:authentication_error|7))?\)\.$/);
    if (typeof code === 'string') expect(JSON.stringify(lines)).not.toContain(code);
  }
});

test('a wrong path, a provider that cannot be reached, and one that fails are told by name', async () => {
  answer = saying(404, { message: 'no' });
  expect((await ask('m')).message).toContain('The provider acme does not answer at its address (404).');
  expect((await ask('away')).message).toBe('The provider gone cannot be reached.');
  expect(JSON.stringify(lines)).toContain('ECONNREFUSED');
  expect(JSON.stringify(lines)).not.toContain(' at '); // no stack
  answer = saying(500, { message: 'secret internals', type: 'server_error' });
  expect((await ask('m')).message).toBe('The provider acme failed (500, server_error).');
  answer = saying(429, { message: 'slow down', type: 'requests', code: 'rate_limit_exceeded' });
  expect(await ask('m')).toMatchObject({ status: 429, message: 'The rate limit of the provider acme is exceeded at the moment (429, rate_limit_exceeded).' });
});

test('a search engine that does not answer is a warning and a line of the log', async () => {
  const response = await server.ask('/server/chatcompat/v1/responses', {
    model: 'both',
    input: 'Use web_search to find out what is new.',
    tools: [{ type: 'web_search' }],
    tool_choice: 'required',
  });
  expect(response.status).toBe(200);
  expect(response.headers.get('x-dragoman-warnings')).toContain('the search engine of the gateway did not answer');
  expect(lines.filter(({ level, message }) => level === 'warn' && message.includes('search engine'))).toMatchObject([{ fields: { engine: 'searxng' } }]);
});

test('the doctor looks at search engine, rerank and guards, and calls a rate limit, an empty account and a wrong path by their names', async () => {
  const checks = async () => ((await (await server.ask('/server/admin/doctor')).json()) as { items: { name: string; state: string; says: string }[] }).items;
  answer = saying(429, { message: 'slow down', code: 'rate_limit_exceeded' });
  const first = await checks();
  const named = (name: string, all = first) => all.find((one) => one.name === name);
  expect(named('search engine searxng')).toMatchObject({ state: 'failed', says: 'cannot be reached at 127.0.0.1:1 (ECONNREFUSED).' });
  expect(named('guard mine')).toMatchObject({ state: 'failed' });
  expect(named('rerank')).toMatchObject({ state: 'ok' });
  expect(named('provider acme')).toMatchObject({ state: 'warning', says: 'answers, but its rate limit is exceeded at the moment (429).' });
  answer = saying(429, { message: 'You exceeded your current quota', code: 'insufficient_quota' });
  expect(named('provider acme', await checks())).toMatchObject({
    state: 'failed',
    says: 'answers, but the account has no credit left (429, insufficient_quota).',
  });
  answer = saying(404, { message: 'no' });
  expect(named('provider acme', await checks())).toMatchObject({ state: 'warning', says: 'has nothing at /v1/models (404): check the path of baseUrl.' });
});

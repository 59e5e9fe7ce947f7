import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { startTestServer, type TestServer, type TestServerSettings } from '../../support/server.ts';
import { openLog } from '../../../src/telemetry/log.ts';

vi.setConfig({ testTimeout: 60_000 }); // each starts a server of its own

const openaiList = '/server/chatcompat/v1/models';
const chat = '/server/chatcompat/v1/chat/completions';
const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A provider that answers like this, and the paths that it was asked. */
async function provider(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<{ readonly url: string; readonly asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  );
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

const lists = (body: unknown) =>
  provider((request, response) => {
    response.setHeader('content-type', 'application/json').end(typeof body === 'string' ? body : JSON.stringify(body));
  });

async function start(settings: TestServerSettings): Promise<TestServer> {
  const server = await startTestServer(settings);
  closing.push(() => server.close());
  return server;
}

const ids = async (server: TestServer) => ((await (await server.ask(openaiList)).json()) as { data: readonly { id: string }[] }).data.map(({ id }) => id);
const own = ['built-in', 'built-in-embedding', 'built-in-speech'];

test('with a provider from the environment every list of models has what the provider offers, soon after the start', async () => {
  const { url, asked } = await lists({
    object: 'list',
    data: [{ id: 'my-chat' }, { id: 'nomic-embed-text' }, { id: 'has space' }, { id: 7 }, 'x', { id: 'text-embedding-3-small' }],
  });
  const server = await start({ env: { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${url}/v1` } });
  await expect.poll(() => ids(server)).toEqual([...own, 'text-embedding-3-small', 'my-chat', 'nomic-embed-text']);
  expect(asked).toEqual(['GET /v1/models']);
  const claude = (await (await server.ask('/server/messages/v1/models')).json()) as { data: { id: string }[] };
  expect(claude.data.map(({ id }) => id)).toEqual(['built-in', 'my-chat']);
  const one = (await (await server.ask(`${openaiList}/nomic-embed-text`)).json()) as { dragoman: { kind: string } };
  expect(one.dragoman.kind).toBe('embedding');
});

test('Gemini is asked in its own way, for as many as there are', async () => {
  const google = await lists({
    models: [
      { name: 'models/gemini-9-flash', supportedGenerationMethods: ['generateContent'] },
      { name: 'models/vectors', supportedGenerationMethods: ['embedContent'] },
    ],
  });
  const server = await start({
    yaml: `providers: { gemini: { dialect: gemini, baseUrl: "${google.url}/v1beta", apiKeys: [k] } }`,
    env: { GEMINI_API_KEY: 'k' },
  });
  await expect.poll(() => ids(server)).toEqual([...own, 'gemini-9-flash', 'vectors']);
  expect(google.asked).toEqual(['GET /v1beta/models?pageSize=1000']);
});

test('Anthropic is asked in its own way, for as many as there are', async () => {
  const claude = await lists({ data: [{ type: 'model', id: 'claude-9' }], has_more: false });
  const other = await start({
    yaml: `providers: { anthropic: { dialect: anthropic-messages, baseUrl: "${claude.url}", apiKeys: [k] } }`,
    env: { ANTHROPIC_API_KEY: 'k' },
  });
  await expect.poll(() => ids(other)).toEqual([...own, 'claude-9']);
  expect(claude.asked).toEqual(['GET /v1/models?limit=1000']);
});

test('where the provider cannot be asked, the catalogue has its models', async () => {
  const server = await start({ env: { OPENAI_API_KEY: 'k', HTTPS_PROXY: 'http://127.0.0.1:9' } });
  const shown = await ids(server);
  expect(shown).toContain('gpt-5.2');
  expect(shown).not.toContain('claude-sonnet-5');
});

test('a list that is too long, too large, no JSON or of another form is not learned, and delays nobody', async () => {
  const long = JSON.stringify({ data: Array.from({ length: 1001 }, (_, at) => ({ id: `m${at}` })) });
  const large = `{"data":[{"id":"${'x'.repeat(3_000_000)}"}]}`;
  const bodies = [long, large, 'no', '[]', '{"data":{"id":"m"}}', '{"data":[]}', '{"data":null}', '{"data":[{"id":"good"}]}'];
  const { url, asked } = await provider((request, response) => response.end(bodies[Number(request.url!.split('/')[1])]));
  const at = (number: number) => `providers: { openai: { dialect: openai-chat, baseUrl: "${url}/${number}", apiKeys: [k] } }`;
  const server = await start({ yaml: at(0), env: { OPENAI_API_KEY: 'k' } });
  for (const [number] of bodies.slice(0, -1).entries()) {
    if (number > 0) await server.change(at(number));
    await expect.poll(() => asked.at(-1)).toBe(`GET /${number}/models`);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await ids(server)).toEqual(own);
  }
  await server.change(at(bodies.length - 1));
  await expect.poll(() => ids(server)).toEqual([...own, 'good']);
});

test('a provider that never answers holds up neither the start nor the end', async () => {
  const { url, asked } = await provider(() => {});
  const server = await start({ env: { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: url } });
  await expect.poll(() => asked.length).toBe(1);
  expect(await ids(server)).toEqual(own);
  const before = performance.now();
  await server.close();
  expect(performance.now() - before).toBeLessThan(20_000);
});

test('providers of a settings file with models are not asked', async () => {
  const { url, asked } = await lists({ data: [{ id: 'm' }] });
  const server = await start({
    yaml: `providers: { openai: { dialect: openai-chat, baseUrl: "${url}", apiKeys: [k] } }\nmodels: { mine: { targets: [{ provider: openai }] }, "*": { targets: [{ provider: openai }] } }`,
    env: { OPENAI_API_KEY: 'k' },
  });
  expect(await ids(server)).toEqual([...own, 'mine']);
  expect(asked).toEqual([]);
});

test("OpenAI's embedding models are listed where they are known to be, and answer by name at every provider of that wire", async () => {
  const embeddings = ['text-embedding-3-small', 'text-embedding-3-large', 'text-embedding-ada-002'];
  const shown = async (yaml: string) => (await ids(await start({ yaml }))).filter((name) => name.startsWith('text-'));
  const models = 'models: { mine: { targets: [{ provider: one }] } }';
  expect(await shown(`providers: { one: { dialect: openai-chat, baseUrl: "https://api.openai.com/v1", apiKeys: [k] } }\n${models}`)).toEqual(embeddings);
  const other = `providers: { one: { dialect: openai-chat, baseUrl: "http://127.0.0.1:9/v1", apiKeys: [k] } }\n${models}`;
  expect(await shown(other)).toEqual([]);
  const server = await start({ yaml: other });
  const one = await server.ask(`${openaiList}/text-embedding-3-small`);
  expect(await one.json()).toMatchObject({ id: 'text-embedding-3-small', owned_by: 'one' });
});

const ask = async (server: TestServer, model: string, path = chat) => {
  const answer = await server.ask(path, { model, messages: [{ role: 'user', content: 'Say exactly: yes' }], max_tokens: 20, input: 'a' });
  const body = (await answer.json()) as { model?: string; error: { message: string } };
  return { status: answer.status, model: body.model, message: body.error?.message, warnings: answer.headers.get('x-dragoman-warnings') };
};
const vectors = '/server/chatcompat/v1/embeddings';

test('a 404 for a model says which are there, and without a provider how an administrator gets one, whom everybody else is to ask', async () => {
  const server = await start({});
  const { status, message } = await ask(server, 'gpt-4o');
  expect(status).toBe(404);
  expect(message).toBe(
    'The model `gpt-4o` does not exist or you do not have access to it. No provider is configured: set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY before the start, or add one to the settings file under providers. Available: built-in.',
  );
  for (const path of [`${openaiList}/gpt-4o`, '/server/messages/v1/models/gpt-4o', '/server/gencompat/v1beta/models/gpt-4o'])
    expect(await (await server.ask(path)).text()).toContain('No provider is configured: set');

  const user = (await (await server.ask('/server/admin/users', { email: 'ada@example.org' })).json()) as { id: number };
  const made = (await (await server.ask(`/server/admin/users/${user.id}/keys`, { name: 'k' })).json()) as { key: string };
  const body = { model: 'gpt-4o', messages: [{ role: 'user', content: 'hi' }] };
  expect(await (await server.ask(chat, body, { headers: { authorization: `Bearer ${made.key}` } })).json()).toMatchObject({
    error: {
      message:
        'The model `gpt-4o` does not exist or you do not have access to it. No provider is configured: ask your administrator to add one. Available: built-in.',
    },
  });
});

test('a 404 for a model tells administrators of a provider that no model uses', async () => {
  const server = await start({ yaml: 'models:\n  built-in: {}\n', env: { OPENAI_API_KEY: 'a' } });
  const { status, message } = await ask(server, 'gpt-4o');
  expect([status, message]).toEqual([
    404,
    'The model `gpt-4o` does not exist or you do not have access to it. No model uses the provider openai: add one to models in the settings file, such as "*": { targets: [{ provider: openai }] } for every other name. Available: built-in.',
  ]);
  const user = (await (await server.ask('/server/admin/users', { email: 'ada@example.org' })).json()) as { id: number };
  const made = (await (await server.ask(`/server/admin/users/${user.id}/keys`, { name: 'k' })).json()) as { key: string };
  const body = { model: 'gpt-4o', messages: [{ role: 'user', content: 'hi' }] };
  expect(await (await server.ask(chat, body, { headers: { authorization: `Bearer ${made.key}` } })).text()).not.toContain('openai:');
});

test('a long list of models is cut, and a key sees only its own', async () => {
  const models = Array.from({ length: 40 }, (_, at) => `  m${at}: { targets: [{ provider: built-in }] }`).join('\n');
  const server = await start({ yaml: `models:\n  built-in: false\n${models}\n` });
  expect((await ask(server, 'nope')).message).toMatch(/Available: m0, m1, .*m11 and 28 more\.$/);
  const made = (await (await server.ask('/server/admin/users/1/keys', { name: 'narrow', models: ['m3'] })).json()) as { key: string };
  const narrow = await server.ask(chat, { model: 'm4', messages: [], max_tokens: 1 }, { headers: { authorization: `Bearer ${made.key}` } });
  expect(await narrow.text()).not.toContain('m5');
});

test('* is no name of a model: in the models of a key and of a plan it stands for all', async () => {
  const { url, asked } = await lists({ object: 'list', data: [{ id: 'my-chat' }, { id: 'openai/*' }] });
  const server = await start({ yaml: 'plans: { unlimited: { models: ["*"] } }', env: { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${url}/v1` } });
  await expect.poll(() => ids(server)).toEqual([...own, 'my-chat']);
  const made = (await (await server.ask('/server/admin/users/1/keys', { name: 'all', models: ['*'] })).json()) as { key: string };
  const headers = { authorization: `Bearer ${made.key}` };
  const listed = (await (await server.ask(openaiList, undefined, { headers })).json()) as { data: readonly { id: string }[] };
  expect(listed.data.map(({ id }) => id)).toEqual([...own, 'my-chat']);
  for (const model of ['*', 'm*', 'openai/*']) expect(await ask(server, model)).toMatchObject({ status: 404 });
  expect(asked.filter((one) => one.startsWith('POST'))).toEqual([]);
  await server.ask(chat, { model: 'other', messages: [{ role: 'user', content: 'hi' }] }, { headers });
  expect(asked.filter((one) => one.startsWith('POST'))).not.toEqual([]);
});

const withFake = (more = '') => `
providers: { fake: { dialect: openai-responses, baseUrl: "http://127.0.0.1:9/v1", apiKeys: [k] } }
models: { mine: { targets: [{ provider: fake }] }${more} }
`;

test('with a provider an unknown embedding model is 404, unless one is configured to answer', async () => {
  const server = await start({ yaml: withFake() });
  const { status, message } = await ask(server, 'nomic', vectors);
  expect(status).toBe(404);
  expect(message).toContain('The model `nomic` does not exist');
  expect(message).toContain('Available: built-in-embedding.');
  expect((await ask(server, 'built-in-embedding')).message).toMatch(
    /^The model `built-in-embedding` is of kind embedding, and this needs one of kind chat\. Available: /,
  );
  await server.change(`${withFake()}defaults: { embedding: built-in-embedding }`);
  expect(await ask(server, 'nomic', vectors)).toMatchObject({ status: 200, model: 'built-in-embedding', warnings: expect.stringContaining('nomic') as string });
  await server.change(`${withFake()}defaults: { embedding: built-in-embedding, fallback: false }`);
  expect((await ask(server, 'nomic', vectors)).status).toBe(404);
  expect((await ask(server, 'built-in-embedding', vectors)).status).toBe(200);
});

test('without a provider an unknown embedding model is answered by the built-in one, unless fallback is off', async () => {
  const server = await start({});
  expect(await ask(server, 'nomic', vectors)).toMatchObject({ status: 200, model: 'built-in-embedding' });
  await server.change('defaults: { fallback: false }');
  expect((await ask(server, 'nomic', vectors)).status).toBe(404);
});

test('built-in: false hides the names of the built-in models, which remain targets', async () => {
  const server = await start({ yaml: 'models: { built-in: false, mine: { targets: [{ provider: built-in }] } }' });
  expect(await ids(server)).toEqual(['mine']);
  for (const [model, path] of [
    ['built-in', chat],
    ['built-in-embedding', vectors],
    ['flash', chat],
    ['flash', '/server/messages/v1/messages'],
  ] as const)
    expect((await ask(server, model, path)).status, `${model} ${path}`).toBe(404);
  const content = await server.ask('/server/gencompat/v1beta/models/flash:generateContent', { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] });
  expect(content.status).toBe(404);
  expect(await ask(server, 'mine')).toMatchObject({ status: 200 });
});

test('flash and pro work through every interface: the best of the tier that the caller may use, and the built-in model without a provider', async () => {
  const tiers =
    'models: { gemini-2.5-flash: { targets: [{ provider: built-in }] }, gemini-3-flash: { targets: [{ provider: built-in }], limits: { context: 777777 } }, big: { targets: [{ provider: built-in }], tier: pro } }';
  const server = await start({ yaml: tiers });
  const asked = async (model: string, key = server.key) => {
    const headers = { authorization: `Bearer ${key}` };
    const messages = [{ role: 'user', content: 'Say exactly: yes' }];
    const answers = await Promise.all([
      server.ask(chat, { model, messages }, { headers }),
      server.ask('/server/chatcompat/v1/responses', { model, input: 'Say exactly: yes' }, { headers }),
      server.ask('/server/chatcompat/v1/completions', { model, prompt: 'Say exactly: yes' }, { headers }),
      server.ask('/server/messages/v1/messages', { model, messages, max_tokens: 9 }, { headers }),
      server.ask('/server/messages/v1/messages/count_tokens', { model, messages }, { headers }),
      server.ask(`${openaiList}/${model}`, undefined, { headers }),
    ]);
    return answers.map(({ status }) => status);
  };
  for (const model of ['flash', 'pro']) expect(await asked(model)).toEqual([200, 200, 200, 200, 200, 200]);
  const best = async (key = server.key) => (await server.ask(`${openaiList}/flash`, undefined, { headers: { authorization: `Bearer ${key}` } })).text();
  expect(await best()).toContain('"context":777777');
  const made = (await (await server.ask('/server/admin/users/1/keys', { name: 'old', models: ['gemini-2.5-flash'] })).json()) as { key: string };
  expect(await asked('flash', made.key)).toEqual([200, 200, 200, 200, 200, 200]);
  expect(await best(made.key)).not.toContain('777777');
  expect((await asked('pro', made.key)).every((status) => status === 404)).toBe(true);
  const bare = await start({});
  expect(await ask(bare, 'flash')).toMatchObject({ status: 200 });
});

test('with several providers from the environment a model of a vendor goes to that vendor, and every other name to the first', async () => {
  const { url, asked } = await lists({ object: 'list', data: [{ id: 'my-chat' }] });
  const server = await start({ env: { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${url}/v1`, ANTHROPIC_API_KEY: 'k', GEMINI_API_KEY: 'k' } });
  const owner = async (name: string) => ((await (await server.ask(`${openaiList}/${name}`)).json()) as { owned_by: string }).owned_by;
  const claude = ['claude-sonnet-5', 'claude-opus-4-20250514', 'claude-opus-4-0', 'claude-3-haiku-20240307', 'claude-3-7-sonnet-latest', 'claude-opus-6'];
  for (const name of claude) expect([name, await owner(name)]).toEqual([name, 'anthropic']);
  const google = ['gemini-2.5-flash', 'gemini-flash-latest', 'gemini-2.5-flash-image', 'gemini-4-pro', 'gemma-3-27b-it', 'models/gemini-2.5-pro'];
  for (const name of [...google, 'text-embedding-004', 'gemini-embedding-001', 'gemini-embedding-9'])
    expect([name, await owner(name)]).toEqual([name, 'gemini']);
  for (const name of ['my-chat', 'gpt-5.2', 'text-embedding-3-small', 'anthropic/claude-opus-5', 'my-claude-1'])
    expect([name, await owner(name)]).toEqual([name, 'openai']);
  const kinds = ['text-embedding-004', 'gemini-4-pro'].map(async (name) => (await server.ask(`${openaiList}/${name}`)).json());
  expect(await Promise.all(kinds)).toMatchObject([{ dragoman: { kind: 'embedding' } }, { dragoman: { kind: 'chat' } }]);
  expect(asked).toEqual(['GET /v1/models']);
});

test('a provider of the file takes the place of the one from the environment, whatever its address', async () => {
  const { url } = await lists({ object: 'list', data: [{ id: 'my-chat' }] });
  const { url: other, asked } = await lists({});
  const env = { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${url}/v1`, ANTHROPIC_API_KEY: 'k' };
  const server = await start({ yaml: `providers: { anthropic: { dialect: anthropic-messages, baseUrl: "${other}", apiKeys: [k] } }`, env });
  const answer = await server.ask('/v1/messages', { model: 'claude-sonnet-4-5', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] });
  expect(answer.headers.get('x-dragoman-provider')).not.toBe('openai');
  expect(asked).toContain('POST /v1/messages');
});

test('a provider from the environment that cannot be reached is told of at the start', async () => {
  const { url } = await lists({ object: 'list', data: [{ id: 'my-chat' }] });
  const told: unknown[] = [];
  const log = { ...openLog('silent'), level: () => {}, warn: (fields: object, text: string) => void told.push([fields, text]) };
  await start({ env: { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${url}/v1`, OLLAMA_HOST: '127.0.0.1:9' }, log });
  await expect.poll(() => told).toContainEqual([{ provider: 'ollama' }, expect.stringContaining('cannot be reached')]);
});

test('a provider from the environment that refuses its key is told of once, in the log and by the doctor', async () => {
  const { url } = await provider((_, response) =>
    response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}'),
  );
  const { url: other } = await provider((_, response) => response.writeHead(403).end('{}'));
  const told: unknown[] = [];
  const log = { ...openLog('silent'), level: () => {}, warn: (fields: object, text: string) => void told.push([fields, text]) };
  const server = await start({ env: { OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${url}/v1`, OLLAMA_HOST: other }, log });
  const said = (name: string) => [{ provider: name }, expect.stringContaining('refuses its key')];
  await expect.poll(() => told).toHaveLength(2);
  expect(told).toEqual(expect.arrayContaining([said('openai'), said('ollama')]));
  const { items } = (await (await server.ask('/server/admin/doctor')).json()) as { items: readonly { name: string; state: string; says: string }[] };
  expect(items.filter(({ name }) => name.startsWith('provider'))).toMatchObject([
    { name: 'provider openai', state: 'failed', says: 'rejects the credentials (401).' },
    { name: 'provider ollama', state: 'failed', says: 'rejects the credentials (403); no model in the settings uses it.' },
  ]);
});

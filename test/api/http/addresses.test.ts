import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectRaw } from '../../support/fakes/raw.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

/* The addresses that people type first, and what is said at those that nobody has. */

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const said = async (answer: Response) => ({ status: answer.status, body: (await answer.json()) as Record<string, unknown> });
const get = (path: string, headers: Record<string, string> = {}, method = 'GET') => fetch(server.url + path, { method, headers });

describe('an SDK that is given the address of the server', () => {
  test("OpenAI's speaks to /v1", async () => {
    const client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1`, maxRetries: 0 });
    const answer = await client.chat.completions.create({ model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: heron' }] });
    expect(answer.choices[0]?.message.content).toBe('heron');
    const response = await client.responses.create({ model: 'built-in', input: 'Say exactly: heron' });
    expect(response.output_text).toBe('heron');
    expect((await client.responses.retrieve(response.id)).id).toBe(response.id);
    expect((await client.embeddings.create({ model: 'built-in-embedding', input: 'a' })).data).toHaveLength(1);
    expect((await client.models.list()).data.map(({ object }) => object)).toContain('model');
    expect((await client.models.retrieve('built-in')).id).toBe('built-in');
  });

  test("Anthropic's speaks to the server's own address", async () => {
    const client = new Anthropic({ apiKey: server.key, baseURL: server.url, maxRetries: 0 });
    const asked = { model: 'built-in', messages: [{ role: 'user' as const, content: 'Say exactly: heron' }] };
    const answer = await client.messages.create({ ...asked, max_tokens: 100 });
    expect(answer.content).toMatchObject([{ type: 'text', text: 'heron' }]);
    expect((await client.messages.countTokens(asked)).input_tokens).toBeGreaterThan(0);
    expect((await client.models.list()).data[0]).toMatchObject({ type: 'model' });
    expect(await client.models.retrieve('built-in')).toMatchObject({ type: 'model', id: 'built-in' });
    await expect(client.models.retrieve('nothing')).rejects.toMatchObject({ status: 404, error: { type: 'error', error: { type: 'not_found_error' } } });
  });

  test.each(['v1', 'v1beta'])("Google's speaks to the server's own address, with version %s", async (apiVersion) => {
    const client = new GoogleGenAI({ apiKey: server.key, apiVersion, httpOptions: { baseUrl: server.url } });
    const answer = await client.models.generateContent({ model: 'built-in', contents: 'Say exactly: heron' });
    expect(answer.text).toBe('heron');
    const models = await client.models.list();
    expect(models.page.map(({ name }) => name)).toContain('models/built-in');
  });
});

test.each([
  [{}, 'list', undefined],
  [{ 'x-api-key': 'k'.repeat(64) }, 'list', undefined],
  [{ 'x-goog-api-key': 'k'.repeat(64) }, 'list', undefined],
  [{ 'x-api-key': 'k'.repeat(64), 'anthropic-version': '2023-06-01' }, undefined, false],
  [{ 'anthropic-version': '2023-06-01' }, undefined, false],
])("/v1/models with %j is OpenAI's list, or with anthropic-version Anthropic's", async (headers: Record<string, string>, object, more) => {
  const { status, body } = await said(await get('/v1/models', { 'x-access-tokens': server.key, ...headers }));
  expect([status, body['object'], body['has_more']]).toEqual([200, object, more]);
});

test("Google's operations are addresses of /v1 for clients without its header too, refusals in its shape; the other methods there are OpenAI's", async () => {
  const at = '/v1/models/built-in:generateContent';
  const asked = { contents: [{ parts: [{ text: 'Say exactly: heron' }] }] };
  expect(await said(await server.ask(at, asked))).toMatchObject({ status: 200, body: { candidates: [{ content: { parts: [{ text: 'heron' }] } }] } });
  expect(await said(await server.ask(at, {}))).toMatchObject({ status: 400, body: { error: { code: 400, status: 'INVALID_ARGUMENT' } } });
  expect(await said(await server.ask('/v1/models/built-in', {}))).toMatchObject({ status: 404, body: { error: { code: 404, status: 'NOT_FOUND' } } });
  expect(await said(await get(at))).toMatchObject({ status: 405, body: { error: { message: 'This address takes POST.' } } });
  const deleted = await get('/v1/models/built-in', { authorization: `Bearer ${server.key}` }, 'DELETE');
  expect(await said(deleted)).toMatchObject({ status: 405, body: { error: { code: 'wrong_method', message: 'This address takes GET, HEAD.' } } });
});

test('who has no good key at /v1/models is told so in the shape of the interface that is meant', async () => {
  expect(await said(await get('/v1/models'))).toMatchObject({ status: 401, body: { error: { code: 'invalid_api_key' } } });
  const { status, body } = await said(await get('/v1/models', { 'x-api-key': 'bad', 'anthropic-version': '2023-06-01' }));
  expect([status, body['type']]).toEqual([401, 'error']);
});

describe('an address that nobody has', () => {
  test.each(['/v1', '/v1/', '/v1?x=/v1beta/', '/v1/chat', '/v1/chat/completion', '/server/chatcompat', '/server/chatcompat/v2/models', '/v1/models/'])(
    "%s: OpenAI's shape, and the base address",
    async (path) => {
      const { status, body } = await said(await get(path, { authorization: `Bearer ${server.key}` }));
      expect([path, status, body]).toEqual([
        path,
        404,
        {
          error: {
            message: expect.stringMatching(/base address.* \/v1 .*\/server\/chatcompat\/v1/) as string,
            type: 'invalid_request_error',
            param: null,
            code: 'not_found',
          },
        },
      ]);
    },
  );

  test.each([
    ['/v1/messages/nothing', { type: 'error' }],
    ['/server/messages', { type: 'error' }],
    ['/v1beta/nothing', { error: { status: 'NOT_FOUND' } }],
    ['/v1betamax', { status: 404, error_ref: expect.any(String) as string }],
    ['/v10/models', { status: 404 }],
    ['/server/chatcompatible', { status: 404 }],
  ])('%s: the shape of what it is below', async (path, shape) => {
    expect(await said(await get(path))).toMatchObject({ status: 404, body: shape });
  });

  test.each([
    ['/v1/files', 'GET', 404, 'not_found_error'],
    ['/v1/batches?limit=1', 'GET', 404, 'not_found_error'],
    ['/v1/models', 'DELETE', 405, 'invalid_request_error'],
  ])("%s below /v1 is refused in Anthropic's shape where anthropic-version is sent: %s", async (path, method, status, type) => {
    const answer = await get(path, { 'x-api-key': server.key, 'anthropic-version': '2023-06-01' }, method);
    expect(answer.headers.get('request-id')).toMatch(/^req_/);
    expect(await said(answer)).toMatchObject({ status, body: { type: 'error', error: { type, message: expect.any(String) as string } } });
  });

  test.each([
    ['/v1/files', 'GET', 404, 'NOT_FOUND'],
    ['/v1/cachedContents', 'POST', 404, 'NOT_FOUND'],
    ['/v1/models', 'DELETE', 405, 'INVALID_ARGUMENT'],
  ])("%s below /v1 is refused in Google's shape where x-goog-api-client is sent: %s", async (path, method, code, status) => {
    const answer = await get(path, { 'x-goog-api-key': server.key, 'x-goog-api-client': 'google-genai-sdk/3' }, method);
    expect(await said(answer)).toMatchObject({ status: code, body: { error: { code, status } } });
  });

  test('is 404 for HEAD too, without a body', async () => {
    const answer = await get('/v1/nothing', {}, 'HEAD');
    expect([answer.status, await answer.text()]).toEqual([404, '']);
  });
});

describe('HEAD', () => {
  test('is answered wherever GET is, as GET is, without its body', async () => {
    const { paths } = (await (await get('/openapi.json')).json()) as { paths: Record<string, Record<string, object>> };
    const withGet = Object.keys(paths).filter((path) => 'get' in paths[path]!);
    expect(withGet.length).toBeGreaterThan(30);
    for (const path of withGet) {
      const address = path.replaceAll(/\{\w+\}/g, '999999');
      const headers = { authorization: `Bearer ${server.key}` };
      const [whole, head] = [await get(address, headers), await get(address, headers, 'HEAD')];
      expect([path, head.status, head.headers.get('content-type')]).toEqual([path, whole.status, whole.headers.get('content-type')]);
      expect(await head.text()).toBe('');
      await whole.arrayBuffer();
    }
  });

  test('has the length of the body that it does not send, and the connection goes on', async () => {
    const raw = await connectRaw(server.url);
    raw.send('HEAD /healthz HTTP/1.1\r\nhost: a\r\n\r\n');
    const head = await raw.answer({ to: 'HEAD' });
    raw.send('GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
    const whole = await raw.answer();
    expect([head.status, head.header('content-length'), head.text]).toEqual([200, '15', '']);
    expect([whole.status, whole.header('content-length'), whole.text]).toEqual([200, '15', '{"status":"ok"}']);
  });

  test('needs the credential that GET needs', async () => {
    expect((await get('/v1/models', {}, 'HEAD')).status).toBe(401);
    expect((await get('/server/admin/users', {}, 'HEAD')).status).toBe(401);
  });

  test('of a stream is its head', async () => {
    const { id } = (await (await server.ask('/v1/responses', { model: 'built-in', input: 'Say exactly: heron', background: true, stream: false })).json()) as {
      id: string;
    };
    const answer = await get(`/v1/responses/${id}?stream=true`, { authorization: `Bearer ${server.key}` }, 'HEAD');
    expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([200, 'text/event-stream; charset=utf-8', '']);
  });

  test('is named where another method is refused', async () => {
    const answer = await server.ask('/v1/models', {}, { method: 'DELETE' });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });
});

const hi = [{ role: 'user' as const, content: 'hi' }];

test.each<[string, (client: OpenAI) => PromiseLike<unknown>]>([
  ['chat', ({ chat }) => chat.completions.create({ model: 'built-in', messages: hi })],
  ['streamed chat', ({ chat }) => chat.completions.create({ model: 'built-in', messages: hi, stream: true })],
  ['completions', ({ completions }) => completions.create({ model: 'built-in', prompt: 'hi' })],
  ['responses', ({ responses }) => responses.create({ model: 'built-in', input: 'hi' })],
  ['a response', ({ responses }) => responses.retrieve('resp_1')],
  ['conversations', ({ conversations }) => conversations.create()],
  ['embeddings', ({ embeddings }) => embeddings.create({ model: 'built-in-embedding', input: 'hi' })],
  ['models', ({ models }) => models.list()],
  ['a model', ({ models }) => models.retrieve('built-in')],
  ['speech', ({ audio }) => audio.speech.create({ model: 'built-in-speech', input: 'hi', voice: 'alloy' })],
  ['images', ({ images }) => images.generate({ prompt: 'hi' })],
  ['moderations', ({ moderations }) => moderations.create({ input: 'hi' })],
])("an OpenAI SDK whose base address lacks /v1 and that asks for %s is told so by the error's message", async (_, ask) => {
  const client = new OpenAI({ apiKey: server.key, baseURL: server.url, maxRetries: 0 });
  const error = { type: 'invalid_request_error', code: 'not_found', message: expect.stringContaining('the base address for OpenAI clients is /v1') as string };
  await expect(Promise.resolve(ask(client))).rejects.toMatchObject({ status: 404, error });
});

test('the document has each address of an operation, and says which are aliases', async () => {
  const { paths } = (await (await get('/openapi.json')).json()) as { paths: Record<string, Record<string, { operationId: string; 'x-alias-of'?: string }>> };
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const ids = operations.map(({ operationId }) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
  const main = paths['/server/chatcompat/v1/chat/completions']!['post']!;
  expect(main['x-alias-of']).toBeUndefined();
  expect(paths['/v1/chat/completions']!['post']!['x-alias-of']).toBe(main.operationId);
  expect(Object.keys(paths)).toEqual(
    expect.arrayContaining(['/v1/messages', '/v1/messages/count_tokens', '/v1beta/models/{model}:generateContent', '/v1beta/models', '/v1/models/{id}']),
  );
  for (const alias of operations) if (alias['x-alias-of'] !== undefined) expect(ids).toContain(alias['x-alias-of']);
});

test.each([
  ['GET', '/v1/models/'],
  ['POST', '/v1/chat/completions/'],
  ['GET', '/v1/responses/'],
  ['GET', '/v1/conversations//items'],
  ['GET', '/server/mine/keys/'],
  ['POST', '/server/mine/datasets/'],
  ['DELETE', '/server/mine/datasets//files'],
  ['GET', '/server/admin/plans/'],
  ['PUT', '/server/admin/plans/'],
])('%s %s is no address: an empty name is nobody’s', async (method, path) => {
  const answer = await get(path, { 'x-access-tokens': server.key }, method);
  expect([answer.status, answer.headers.get('allow'), await answer.text()]).toEqual([404, null, expect.stringContaining('There is nothing at this address.')]);
});

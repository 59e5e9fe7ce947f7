import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../../support/server.ts';

const path = '/server/chatcompat/v1/embeddings';
let server: TestServer;

beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

interface List {
  readonly data: readonly { readonly embedding: readonly number[] }[];
  readonly model: string;
  readonly usage: { readonly prompt_tokens: number };
}

async function vectorsOf(body: object): Promise<List> {
  const answer = await server.ask(path, body);
  expect(answer.status).toBe(200);
  return (await answer.json()) as List;
}

const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, number, at) => sum + number * b[at]!, 0);

test('without any provider every name is answered by the built-in model, which says so and has 512 dimensions', async () => {
  const answer = await server.ask(path, { model: 'text-embedding-3-small', input: ['a cat', 'a dog'] });
  expect(answer.headers.get('x-dragoman-warnings')).toBe('model: text-embedding-3-small is not an embedding model here, so built-in-embedding answers instead');
  const { model, data, usage } = (await answer.json()) as List;
  expect(model).toBe('built-in-embedding');
  expect(usage.prompt_tokens).toBe(4);
  for (const { embedding } of data) expect([embedding.length, Math.hypot(...embedding)]).toEqual([512, expect.closeTo(1, 5)]);
});

test('what means the same is near, without a word in common', async () => {
  const { data } = await vectorsOf({ model: 'built-in-embedding', input: ['How old are you?', 'What is your age?', 'The bank raised interest rates.'] });
  const [old, age, bank] = data.map(({ embedding }) => embedding);
  expect(dot(old!, age!)).toBeGreaterThan(dot(old!, bank!) + 0.3);
});

test('a text has the same vector, alone and among others, and as base64', async () => {
  const [alone, among] = [await vectorsOf({ input: 'a text' }), await vectorsOf({ input: ['another, much longer one '.repeat(10), 'a text'] })];
  expect(among.data[1]!.embedding).toEqual(alone.data[0]!.embedding);
  const client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/server/chatcompat/v1` });
  const { data } = await client.embeddings.create({ model: 'built-in-embedding', input: 'a text' });
  expect(Array.from(data[0]!.embedding)).toEqual(alone.data[0]!.embedding);
});

test('a long text is read in pieces, and no further than to a bound, which is said', async () => {
  const answer = await server.ask(path, { model: 'built-in-embedding', input: 'word '.repeat(10_000) });
  expect(answer.headers.get('x-dragoman-warnings')).toBe('input[0]: its first 32768 characters are read');
});

test('a member that is not known is said, or refused where the client is strict', async () => {
  const body = { model: 'built-in-embedding', input: 'a', truncate: 'END', nothing: null };
  const told = await server.ask(path, body);
  expect([told.status, told.headers.get('x-dragoman-warnings')]).toEqual([200, "truncate: the provider's interface does not have this field."]);
  const strict = await server.ask(path, body, { headers: { 'x-dragoman-strict': 'true' } });
  expect(strict.status).toBe(400);
  const message = expect.stringMatching(/truncate: .*[^.]\.$/) as string;
  expect(await strict.json()).toMatchObject({ error: { type: 'invalid_request_error', param: 'truncate', message } });
  const many = { ...body, ...Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`m${at}`, 1])) };
  expect((await server.ask(path, many)).headers.get('x-dragoman-warnings')!.match(/\bm\d{1,2}\b/g)).toEqual(Array.from({ length: 19 }, (_, at) => `m${at}`));
  const { model, input } = body;
  expect((await server.ask(path, { model, input, nothing: null }, { headers: { 'x-dragoman-strict': 'true' } })).status).toBe(200);
});

test('fewer dimensions are the first ones, made of length 1 again; more are refused', async () => {
  const { data } = await vectorsOf({ model: 'built-in-embedding', input: 'a', dimensions: 100 });
  expect([data[0]!.embedding.length, Math.hypot(...data[0]!.embedding)]).toEqual([100, expect.closeTo(1, 5)]);
  const answer = await server.ask(path, { model: 'built-in-embedding', input: 'a', dimensions: 513 });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { param: 'dimensions' } });
});

test.each([[' '], ['\0'], ['\ud800'], ['😀'], ['\ufdfa'.repeat(2000)], ['日本語'], ['__proto__ constructor']])('input %# has a vector', async (input) => {
  const { data } = await vectorsOf({ model: 'built-in-embedding', input });
  expect(data[0]!.embedding.every((number) => Number.isFinite(number))).toBe(true);
});

test('tokens of cl100k have the vector of their text; others are refused, naming the field', async () => {
  const [tokens, text] = [
    await vectorsOf({ model: 'built-in-embedding', input: [15339, 1917] }),
    await vectorsOf({ model: 'built-in-embedding', input: 'hello world' }),
  ];
  expect([tokens.data[0]!.embedding, tokens.usage]).toEqual([text.data[0]!.embedding, text.usage]);
  const answer = await server.ask(path, { model: 'built-in-embedding', input: [15339, 100_257] });
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: { param: 'input' } }]);
});

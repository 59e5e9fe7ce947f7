import * as newest from '@google/genai';
import * as before from 'genai-2';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  always,
  badKey,
  failing,
  googleVectors,
  html,
  malformed,
  says,
  notFound,
  on,
  startUpstream,
  tooMany,
  vectorOf,
  vectors,
  type Upstream,
} from '../../support/fakes/upstream/index.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';

const root = '/server/gencompat/v1beta';
const chatcompat = '/server/chatcompat/v1/embeddings';

let upstream: Upstream;
let server: TestServer;
/** No provider at all. */
let alone: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  alone = await startTestServer();
  server = await startTestServer({
    yaml: `
providers:
  gpt: { dialect: openai-chat, baseUrl: "${upstream.url}/v1", apiKeys: ["sk-gpt"] }
  google: { dialect: gemini, baseUrl: "${upstream.url}/v1beta", apiKeys: ["g-1", "g-2"] }
  platform: { dialect: gemini, kind: vertex, project: p, baseUrl: "${upstream.url}/{region}/v1", credentials: { accessToken: "token-canary" }, regions: [us-central1, us-east1] }
models:
  gpt-4o-mini: { targets: [{ provider: gpt }] }
  gemini-embedding-001: { kind: embedding, targets: [{ provider: google }] }
  text-embedding-005: { kind: embedding, targets: [{ provider: platform }] }
  one-by-one: { kind: embedding, targets: [{ provider: platform, model: gemini-embedding-001 }] }
  priced: { kind: embedding, targets: [{ provider: gpt }], price: { input: 1 } }
defaults: { embedding: gemini-embedding-001 }
routing: { cooldownSeconds: 0 }
`,
  });
});
afterAll(async () => {
  await Promise.all([server.close(), alone.close()]);
  await upstream.close();
});
afterEach(() => upstream.reset());

const good = () => upstream.script(always(vectors()), always(googleVectors()));
const text = (one: string) => ({ content: { parts: [{ text: one }] } });
const batch = (texts: readonly string[], more: object = {}) => ({ requests: texts.map((one) => ({ ...text(one), ...more })) });
const floats = (one: string) => vectorOf(one).map(Math.fround);

interface Answer {
  readonly embedding?: { readonly values: readonly number[] };
  readonly embeddings?: readonly { readonly values: readonly number[] }[];
  readonly predictions?: readonly { readonly embeddings: { readonly values: readonly number[] } }[];
  readonly usageMetadata?: { readonly promptTokenCount: number };
  readonly error?: { readonly code: number; readonly status: string; readonly message: string; readonly details: readonly object[] };
}

async function ask(model: string, operation: string, body: unknown, at: TestServer = server, init: RequestInit = {}) {
  const answer = await at.ask(`${root}/models/${model}:${operation}`, body, init);
  return { status: answer.status, headers: answer.headers, answer: (await answer.json()) as Answer };
}
const sent = (at = 0) => upstream.requests[at]?.json;

describe.each(['text-embedding-3-small', 'gemini-embedding-001', 'text-embedding-005'])('vectors of %s', (model) => {
  test('come in the words of this interface, one or many, in the order of the texts', async () => {
    good();
    const one = await ask(model, 'embedContent', text('two words'));
    expect([one.status, one.answer]).toEqual([200, { embedding: { values: vectorOf('two words') }, usageMetadata: { promptTokenCount: 2 } }]);
    const texts = ['a', 'b c', 'd e f'];
    const many = await ask(model, 'batchEmbedContents', batch(texts, { model: `models/${model}` }));
    expect(many.answer).toEqual({ embeddings: texts.map((each) => ({ values: vectorOf(each) })), usageMetadata: { promptTokenCount: 6 } });
    expect(many.headers.get('x-dragoman-attempts')).toBe('1');
    const predicted = await ask(model, 'predict', { instances: texts.map((content) => ({ content })), parameters: { autoTruncate: true } });
    const statistics = [1, 2, 3].map((tokens) => ({ token_count: tokens, truncated: false }));
    expect(predicted.answer).toEqual({ predictions: texts.map((each, at) => ({ embeddings: { statistics: statistics[at], values: vectorOf(each) } })) });
  });

  test('have as many tokens in all as are booked, however they are shared out among the texts', async () => {
    good();
    const texts = ['a b', 'a b', 'abc'];
    const { answer } = await ask(model, 'predict', { instances: texts.map((content) => ({ content })) });
    const counts = answer.predictions!.map(({ embeddings }) => (embeddings as { statistics?: { token_count: number } }).statistics!.token_count);
    expect(counts.reduce((sum, one) => sum + one)).toBe(5);
  });

  test('answer the embeddings of chat completions too', async () => {
    good();
    const answer = await server.ask(chatcompat, { model, input: ['a', 'b c'] });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({
      object: 'list',
      data: ['a', 'b c'].map((input, index) => ({ object: 'embedding', index, embedding: vectorOf(input) })),
      usage: { prompt_tokens: 3, total_tokens: 3 },
    });
    const packed = (await (await server.ask(chatcompat, { model, input: 'a', encoding_format: 'base64' })).json()) as { data: { embedding: string }[] };
    const bytes = Buffer.from(packed.data[0]!.embedding, 'base64');
    expect([0, 4, 8].map((at) => bytes.readFloatLE(at))).toEqual(floats('a'));
  });

  test('may be 256 at a time', async () => {
    good();
    const texts = Array.from({ length: 256 }, (_, at) => `text ${at}`);
    const { answer } = await ask(model, 'batchEmbedContents', batch(texts));
    expect(answer.embeddings?.map(({ values }) => values)).toEqual(texts.map(vectorOf));
    expect(answer.usageMetadata).toEqual({ promptTokenCount: 512 });
  });

  test('are booked once, for what was counted', async () => {
    good();
    const { headers } = await ask(model, 'batchEmbedContents', batch(['a', 'b c']), server, { headers: { 'x-app-name': `books of ${model}` } });
    const row = async () => (await server.ask(`/server/admin/logs/${headers.get('x-request-id')}`)).json() as Promise<object>;
    await expect.poll(row).toMatchObject({ face: 'gencompat', app: `books of ${model}`, model, status: 200, inputTokens: 3, outputTokens: 0, planTokens: 3 });
  });
});

describe('the Gemini API', () => {
  test('is sent what the vectors are for, a hundred texts at most in a batch', async () => {
    good();
    const texts = Array.from({ length: 150 }, (_, at) => `text ${at}`);
    const { status } = await ask('gemini-embedding-001', 'batchEmbedContents', {
      requests: texts.map((one, at) => ({ ...text(one), task_type: 'RETRIEVAL_DOCUMENT', title: `title ${at}`, outputDimensionality: 3 })),
    });
    expect(status).toBe(200);
    expect(upstream.requests.map(({ path }) => path)).toEqual(Array.from({ length: 2 }, () => '/v1beta/models/gemini-embedding-001:batchEmbedContents'));
    const asked = upstream.requests.flatMap(({ json }) => (json as { requests: object[] }).requests);
    expect(new Set(upstream.requests.map(({ json }) => (json as { requests: object[] }).requests.length))).toEqual(new Set([100, 50]));
    expect(asked).toHaveLength(150);
    expect(asked).toContainEqual({
      model: 'models/gemini-embedding-001',
      content: { parts: [{ text: 'text 120' }] },
      taskType: 'RETRIEVAL_DOCUMENT',
      title: 'title 120',
      outputDimensionality: 3,
    });
  });

  test('is asked with the next key where one is refused', async () => {
    upstream.script(on({ key: 'g-1' }, badKey()), always(googleVectors()));
    for (let at = 0; at < 2; at++) expect((await ask('gemini-embedding-001', 'embedContent', text('a'))).status).toBe(200);
  });

  test('says nothing of the user that chat completions may name', async () => {
    good();
    const answer = await server.ask(chatcompat, { model: 'gemini-embedding-001', input: 'a', user: 'u' });
    expect(answer.headers.get('x-dragoman-warnings')).toBe('user: this API has no such field');
  });

  /** LangChain sends tokens of cl100k to every model. */
  test('that are asked for with tokens are of their texts, and other tokens are refused', async () => {
    good();
    const answer = await server.ask(chatcompat, {
      model: 'gemini-embedding-001',
      input: [
        [15339, 1917],
        [19045, 3814],
      ],
      encoding_format: 'float',
    });
    expect(((await answer.json()) as { data: { embedding: number[] }[] }).data.map(({ embedding }) => embedding)).toEqual(
      ['hello world', 'good night'].map(vectorOf),
    );
    expect(sent()).toMatchObject(batch(['hello world', 'good night']));
    const refused = await server.ask(chatcompat, { model: 'gemini-embedding-001', input: [[15339], [100_257]] });
    expect([refused.status, await refused.json()]).toMatchObject([
      400,
      { error: { param: 'input[1]', message: 'input[1] must be text, or tokens of cl100k_base.' } },
    ]);
  });
});

describe('the platform', () => {
  test('is asked to predict, at the address of a region, with what the vectors are for', async () => {
    good();
    await ask('text-embedding-005', 'embedContent', { ...text('a'), taskType: 'RETRIEVAL_QUERY', title: 't', outputDimensionality: 256 });
    expect(upstream.requests[0]).toMatchObject({
      path: '/us-central1/v1/projects/p/locations/us-central1/publishers/google/models/text-embedding-005:predict',
      key: 'token-canary',
    });
    expect(sent()).toEqual({ instances: [{ content: 'a', task_type: 'RETRIEVAL_QUERY', title: 't' }], parameters: { outputDimensionality: 256 } });
  });

  test('says of each text how many tokens it has, and whether it was cut off', async () => {
    const predictions = [5, 2048].map((tokens) => ({ embeddings: { statistics: { token_count: tokens, truncated: tokens > 5 }, values: [0.5] } }));
    upstream.script(says(/:predict$/, 'application/json', JSON.stringify({ predictions, metadata: { billableCharacterCount: 9 } })));
    const { answer } = await ask('text-embedding-005', 'predict', { instances: [{ content: 'a' }, { content: 'b' }] });
    expect(answer).toEqual({ predictions });
  });

  test('is asked in the next region where one is busy', async () => {
    upstream.script(on({ region: 'us-central1' }, tooMany()));
    good();
    const { status, headers } = await ask('text-embedding-005', 'embedContent', text('a'));
    expect([status, headers.get('x-dragoman-region'), headers.get('x-dragoman-attempts')]).toEqual([200, 'us-east1', '2']);
  });

  test('is asked for one text at a time where its model takes no more', async () => {
    good();
    const texts = Array.from({ length: 9 }, (_, at) => `text ${at}`);
    const { answer } = await ask('one-by-one', 'batchEmbedContents', batch(texts));
    expect(answer.embeddings?.map(({ values }) => values)).toEqual(texts.map(vectorOf));
    expect(upstream.requests).toHaveLength(9);
  });

  test.each([
    ['a page', html()],
    ['half an answer', malformed()],
    ['too few vectors', googleVectors({ count: 1 })],
    ['a failure', failing(500)],
  ])('%s in place of vectors is a failure of the provider', async (_, behaviour) => {
    upstream.script(always(behaviour));
    const { status, answer } = await ask('text-embedding-005', 'batchEmbedContents', batch(['a', 'b']));
    expect([status, answer.error?.status]).toEqual([502, 'INTERNAL']);
  });

  test('an error in place of vectors has the meaning that it has as a refusal', async () => {
    upstream.script(always(says(/./, 'application/json', '{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"no"}}')));
    const { status, answer } = await ask('text-embedding-005', 'batchEmbedContents', batch(['a', 'b']));
    expect([status, answer.error?.status]).toEqual([429, 'RESOURCE_EXHAUSTED']);
  });

  test('that counts nothing is booked by an estimate', async () => {
    upstream.script(always(googleVectors({ usage: false })));
    const { answer } = await ask('text-embedding-005', 'embedContent', text(' word'.repeat(10)));
    expect(answer.usageMetadata).toEqual({ promptTokenCount: 10 });
  });
});

describe('a name', () => {
  test.each(['models/gemini-embedding-001', 'publishers/google/models/gemini-embedding-001', 'google%2Fgemini-embedding-001'].map((name) => [name] as const))(
    '%s is read in all its forms',
    async (name) => {
      good();
      const { status, headers } = await ask(name, 'embedContent', text('a'));
      expect([status, headers.get('x-dragoman-provider')]).toEqual([200, 'google']);
    },
  );

  test.each(['text-embedding-004', 'gpt-4o-mini', 'gemini-embedding-exp-03-07'])(
    '%s that is no embedding model here is answered by the default engine, and it is said',
    async (name) => {
      good();
      const { status, headers } = await ask(name, 'embedContent', text('a'));
      expect([status, headers.get('x-dragoman-warnings')]).toEqual([
        200,
        `model: ${name} is not an embedding model here, so gemini-embedding-001 answers instead`,
      ]);
    },
  );

  test.each(['..', 'a%23b', 'publishers/google/models/..', 'a%2f..%2fb'])('%s that is none is refused, and nothing goes upstream', async (name) => {
    const { status } = await ask(name, 'embedContent', text('a'));
    expect([400, 404]).toContain(status);
    expect(upstream.requests).toEqual([]);
  });

  test('of an embedding model is listed with what can be done with it', async () => {
    const { models } = (await (await server.ask(`${root}/models?pageSize=1000`)).json()) as {
      models: { name: string; supportedGenerationMethods: string[] }[];
    };
    const one = models.find(({ name }) => name === 'models/gemini-embedding-001');
    expect(one?.supportedGenerationMethods).toEqual(['embedContent', 'batchEmbedContents']);
    expect(await (await server.ask(`${root}/models/publishers/google/models/gemini-embedding-001`)).json()).toEqual(one);
  });
});

describe('refused with 400, naming the field, and nothing goes upstream:', () => {
  async function refused(operation: string, body: unknown, field: string): Promise<void> {
    good();
    const { status, answer } = await ask('gemini-embedding-001', operation, body);
    expect([status, answer.error?.status]).toEqual([400, 'INVALID_ARGUMENT']);
    expect(answer.error?.details).toContainEqual(expect.objectContaining({ fieldViolations: [expect.objectContaining({ field })] }));
    expect(upstream.requests).toEqual([]);
  }
  const many = Array.from({ length: 257 }, () => 'a');

  test('257 texts', () => refused('batchEmbedContents', batch(many), 'requests'));
  test('257 instances', () => refused('predict', { instances: many.map((content) => ({ content })) }, 'instances'));
  test('no text at all', () => refused('batchEmbedContents', { requests: [] }, 'requests'));
  test('no requests', () => refused('batchEmbedContents', {}, 'requests'));
  test('no content', () => refused('embedContent', {}, 'content'));
  test('an empty text', () => refused('embedContent', text(''), 'content'));
  test('an empty text among others', () => refused('batchEmbedContents', batch(['a', ' ']), 'requests[1].content'));
  test('an empty instance', () => refused('predict', { instances: [{ content: '' }] }, 'instances[0].content'));
  test('no parts', () => refused('embedContent', { content: { parts: [] } }, 'content.parts'));
  test('a picture', () => refused('embedContent', { content: { parts: [{ inlineData: { mimeType: 'image/png', data: 'AA==' } }] } }, 'content.parts[0].text'));
  test('content that is a text', () => refused('embedContent', { content: 'a' }, 'content'));
  test('another model than the one of the address', () =>
    refused(
      'batchEmbedContents',
      {
        requests: [
          { ...text('a'), model: 'models/gemini-embedding-001' },
          { ...text('b'), model: 'models/other' },
        ],
      },
      'requests[1].model',
    ));
  test('dimensions that differ', () =>
    refused('batchEmbedContents', { requests: [{ ...text('a'), outputDimensionality: 3 }, text('b')] }, 'requests[1].outputDimensionality'));
  test('a wrong dimension, in the spelling it came in', () => refused('embedContent', { ...text('a'), output_dimensionality: 0 }, 'output_dimensionality'));
  test('a task that is neither a word nor its number', () => refused('embedContent', { ...text('a'), taskType: 50 }, 'taskType'));

  test('a million texts, at once', async () => {
    const { status } = await ask('gemini-embedding-001', 'batchEmbedContents', `{"requests":[${'{},'.repeat(900_000)}{}]}`);
    expect(status).toBe(400);
  });
});

test('what a model cannot honour is said, or refused where the client is strict', async () => {
  good();
  const body = { ...text('a'), taskType: 'CLUSTERING', title: 't' };
  const { headers } = await ask('text-embedding-3-small', 'embedContent', body);
  expect(headers.get('x-dragoman-warnings')).toBe('taskType: this model makes one kind of vectors; title: this model reads none');
  upstream.reset();
  expect((await ask('text-embedding-3-small', 'embedContent', body, server, { headers: { 'x-dragoman-strict': 'true' } })).status).toBe(400);
  expect(upstream.requests).toEqual([]);
});

test.each([
  ['embedContent', { ...text('a'), auto_fit: true }, 'auto_fit'],
  ['batchEmbedContents', { requests: [text('a'), { ...text('b'), autoFit: true }] }, 'requests[1].autoFit'],
  ['predict', { instances: [{ content: 'a' }], autoFit: true }, 'autoFit'],
  ['embedContent', { ...text('a'), embedContentConfig: { autoFit: true } }, 'embedContentConfig.autoFit'],
  ['batchEmbedContents', { requests: [{ ...text('a'), embedContentConfig: { autoFit: true } }] }, 'requests[0].embedContentConfig.autoFit'],
  ['predict', { instances: [{ content: 'a' }, { content: 'b', auto_fit: true }] }, 'instances[1].auto_fit'],
  ['predict', { instances: [{ content: 'a' }], parameters: { autoFit: true } }, 'parameters.autoFit'],
  ['predict', { instances: [{ content: 'a' }], parameters: { autoTruncate: false } }, 'parameters.autoTruncate'],
] as const)('a member of %s that is not known is said, or refused where the client is strict', async (operation, body, field) => {
  for (const model of ['text-embedding-3-small', 'gemini-embedding-001']) {
    good();
    const { headers } = await ask(model, operation, body);
    expect(headers.get('x-dragoman-warnings')).toBe(`${field}: the provider's interface does not have this field.`);
    upstream.reset();
    const { status, answer } = await ask(model, operation, body, server, { headers: { 'x-dragoman-strict': 'true' } });
    expect([status, JSON.stringify(answer)]).toEqual([400, expect.stringContaining(`"field":"${field}"`)]);
    expect(upstream.requests).toEqual([]);
  }
});

test('a model that the provider does not have is 404, and a busy provider is 429', async () => {
  upstream.script(notFound('model'), always(tooMany({ retryAfter: 7 })));
  const own = await startTestServer({
    yaml: `
providers: { google: { dialect: gemini, baseUrl: "${upstream.url}/v1beta", apiKeys: [k] } }
models: { e: { kind: embedding, targets: [{ provider: google }] }, f: { kind: embedding, targets: [{ provider: google }] } }
`,
  });
  expect(await ask('e', 'embedContent', text('a'), own)).toMatchObject({ status: 404, answer: { error: { status: 'NOT_FOUND' } } });
  const busy = await ask('f', 'embedContent', text('a'), own);
  expect([busy.status, busy.headers.get('retry-after'), busy.answer.error?.status]).toEqual([429, '7', 'RESOURCE_EXHAUSTED']);
  await own.close();
});

test('a plan without tokens is refused every kind with 429, and the upstream sees nothing', async () => {
  good();
  const poor = await startTestServer({ upstream: upstream.url, yaml: 'plans: { unlimited: { monthlyTokens: 0 } }\n' });
  const bodies = { embedContent: text('a'), batchEmbedContents: batch(['a']), predict: { instances: [{ content: 'a' }] } };
  for (const [operation, body] of Object.entries(bodies))
    expect(await ask('text-embedding-3-small', operation, body, poor)).toMatchObject({ status: 429, answer: { error: { status: 'RESOURCE_EXHAUSTED' } } });
  expect(upstream.requests).toEqual([]);
  await poor.close();
});

test('without a key, or with a bad one, nothing is looked at', async () => {
  for (const authorization of ['', 'Bearer nonsense'])
    expect((await ask('..', 'embedContent', '{', server, { headers: { authorization } })).answer.error?.status).toBe('UNAUTHENTICATED');
});

interface Sdk {
  readonly GoogleGenAI: new (options: object) => {
    readonly models: { embedContent(asked: object): Promise<{ readonly embeddings: readonly { readonly values: readonly number[] }[] }> };
  };
}

describe.each([
  ['@google/genai', newest as unknown as Sdk],
  ['genai-2', before as unknown as Sdk],
])('%s', (_, sdk) => {
  const clientOf = ({ url, key }: TestServer, more: object = {}) =>
    new sdk.GoogleGenAI({ apiKey: key, httpOptions: { baseUrl: `${url}/server/gencompat`, apiVersion: 'v1beta' }, ...more });

  test.each(['text-embedding-3-small', 'gemini-embedding-001', 'text-embedding-005'])('gets vectors of %s', async (model) => {
    good();
    const config = { taskType: 'RETRIEVAL_QUERY', outputDimensionality: 3 };
    const { embeddings } = await clientOf(server).models.embedContent({ model, contents: ['one', 'two words'], config });
    expect(embeddings.map(({ values }) => values)).toEqual(['one', 'two words'].map(vectorOf));
  });

  test.each(['gemini-embedding-001', 'gemini-embedding-2', 'text-embedding-005'])('gets a vector of %s from the address of the platform', async (model) => {
    good();
    const { embeddings } = await clientOf(server, { vertexai: true }).models.embedContent({
      model,
      contents: 'two words',
      config: { outputDimensionality: 3 },
    });
    expect(embeddings.map(({ values }) => values)).toEqual([vectorOf('two words')]);
  });

  test('gets vectors that mean something from the built-in model', async () => {
    const contents = ['The cat sat on the mat.', 'A kitten rests on a rug.', 'Quarterly tax law for shipping companies'];
    const { embeddings } = await clientOf(alone).models.embedContent({ model: 'text-embedding-004', contents });
    const near = (a: readonly number[], b: readonly number[]) => a.reduce((sum, number, at) => sum + number * b[at]!, 0);
    const [cat, kitten, tax] = embeddings.map(({ values }) => values);
    expect(near(cat!, kitten!)).toBeGreaterThan(near(cat!, tax!) + 0.1);
  });
});

import OpenAI from 'openai';
import OpenAI7 from 'openai-7';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  always,
  badKey,
  badRequest,
  cut,
  drop,
  empty,
  failing,
  html,
  jsonNull,
  malformed,
  says,
  times,
  tooMany,
  vectorOf,
  vectors,
} from '../../support/fakes/upstream/index.ts';
import { chat, startTestServer, providerKey } from '../../support/server.ts';
import { loggedAs } from '../../support/members.ts';
import { proves } from '../../support/proves.ts';
import { scriptedServer } from '../../support/scripted-server.ts';

const path = '/server/chatcompat/v1/embeddings';
const names = ['text-embedding-3-small', 'text-embedding-3-large', 'text-embedding-ada-002'] as const;

const { upstream, server } = await scriptedServer(({ url }) => ({
  upstream: url,
  yaml: `  standby: { targets: [{ provider: fake, model: first }, { provider: fake, model: second }], kind: embedding }\nrouting: { cooldownSeconds: 0 }\n`,
}));

const embed = (body: unknown, init?: RequestInit) => server.ask(path, body, init);
const good = (...manners: Parameters<typeof vectors>) => upstream.script(always(vectors(...manners)));

interface List {
  readonly object: string;
  readonly data: readonly { readonly object: string; readonly index: number; readonly embedding: readonly number[] }[];
  readonly model: string;
  readonly usage: { readonly prompt_tokens: number; readonly total_tokens: number };
}
const numbersOf = (embedding: readonly number[] | string): number[] => {
  if (typeof embedding !== 'string') return embedding.map(Math.fround);
  const bytes = Buffer.from(embedding, 'base64');
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(4 * at));
};
test('a member that is not known goes to a provider of the same wire as it came, also for a strict client', async () => {
  good();
  const answer = await embed({ model: 'text-embedding-3-small', input: 'a', truncate: 'END' }, { headers: { 'x-dragoman-strict': 'true' } });
  expect([answer.status, answer.headers.get('x-dragoman-warnings')]).toEqual([200, null]);
  expect(String(upstream.requests[0]!.body)).toContain('"truncate":"END"');
});

const listOf = async (answer: Response) => (await answer.json()) as List;

describe.each([
  ['openai 6', OpenAI],
  ['openai 7', OpenAI7 as unknown as typeof OpenAI],
])('%s', (_name, Client) => {
  test.each(['float', 'base64', undefined] as const)(
    proves(['embeddings.standard-sdk', 'embeddings.200'], 'gets the vectors, asked for as %s'),
    async (format) => {
      good();
      const client = new Client({ apiKey: server.key, baseURL: `${server.url}/server/chatcompat/v1`, maxRetries: 0 });
      const answer = await client.embeddings.create({ model: 'text-embedding-3-small', input: ['a b', 'c'], ...(format ? { encoding_format: format } : {}) });
      const numbers = answer.data.map(({ embedding }) => numbersOf(embedding));
      expect(numbers).toEqual(['a b', 'c'].map((input) => vectorOf(input).map(Math.fround)));
      expect(answer.usage).toEqual({ prompt_tokens: 3, total_tokens: 3 });
    },
  );
});

describe('an answer', () => {
  test(
    proves(
      [
        'embeddings.answer-object',
        'embeddings.answer-data',
        'embeddings.answer-floats',
        'embeddings.answer-model',
        'embeddings.answer-usage',
        'embeddings.input-array',
      ],
      'is a list of embeddings in the order of the inputs',
    ),
    async () => {
      good();
      const inputs = ['one', 'two words', 'three'];
      expect(await listOf(await embed({ model: 'text-embedding-3-large', input: inputs }))).toEqual({
        object: 'list',
        data: inputs.map((input, index) => ({ object: 'embedding', index, embedding: vectorOf(input) })),
        model: 'text-embedding-3-large-v1',
        usage: { prompt_tokens: 4, total_tokens: 4 },
      });
    },
  );

  test('is the bytes of the provider where nothing needs a change', async () => {
    upstream.script({
      ...vectors(),
      answer: () => ({
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: [
          '{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.10,2e-3]}],\n "model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}\n',
        ],
        framing: 'chunked',
        end: 'finish',
      }),
    });
    const answer = await embed({ model: 'text-embedding-3-small', input: 'a' });
    expect(await answer.text()).toContain('[0.10,2e-3]}],\n "model":"m"');
    expect(answer.headers.has('content-length'), 'it is complete when its end follows, after it is booked').toBe(false);
  });

  test('has the encoding that was asked for, whatever the provider sends', async () => {
    good({ encoding: 'float' });
    const answer = (await (await embed({ model: 'text-embedding-3-small', input: 'a', encoding_format: 'base64' })).json()) as {
      data: { embedding: string }[];
    };
    const bytes = Buffer.from(answer.data[0]!.embedding, 'base64');
    expect([0, 4, 8].map((at) => bytes.readFloatLE(at))).toEqual(vectorOf('a').map((number) => Math.fround(number)));
    upstream.reset();
    good({ encoding: 'base64' });
    expect((await listOf(await embed({ model: 'text-embedding-3-small', input: 'a' }))).data[0]!.embedding).toEqual(
      vectorOf('a').map((number) => Math.fround(number)),
    );
  });

  test('is put in order where the provider mixes it up', async () => {
    good({ backwards: true });
    const { data } = await listOf(await embed({ model: 'text-embedding-3-small', input: ['one', 'two', 'three'] }));
    expect(data.map(({ embedding }) => embedding)).toEqual(['one', 'two', 'three'].map(vectorOf));
  });

  test.each(['float', 'base64'] as const)(proves('embeddings.answer-usage', 'without a usage has that which is booked (%s)'), async (encoding) => {
    for (const encoding_format of ['float', 'base64']) {
      upstream.reset();
      for (const usage of ['missing', { prompt_tokens: 0 }] as const) {
        good({ usage, encoding });
        const answer = await embed({ model: 'text-embedding-3-small', input: ' word'.repeat(10), encoding_format });
        expect((await listOf(answer)).usage).toEqual({ prompt_tokens: 10, total_tokens: 10 });
        expect(await loggedAs(server, answer.headers.get('x-request-id')!)).toMatchObject({ inputTokens: 10, provenance: 'estimated' });
      }
    }
  });

  test.each([
    { usage: { prompt_tokens: -1, total_tokens: 'x' } },
    { usage: { prompt_tokens: 0, total_tokens: 0 } },
    { usage: { total_tokens: 9 } },
    { model: undefined },
  ])('whose provider says %j has all members, with what is booked', async (members) => {
    const data = [{ object: 'embedding', index: 0, embedding: [0.1, 0.2] }];
    const said = { object: 'list', data, model: 'm', usage: { prompt_tokens: 9, total_tokens: 9 }, ...members };
    upstream.script(always(says(/embeddings/, 'application/json', JSON.stringify(said))));
    const answer = await embed({ model: 'text-embedding-3-small', input: 'hello' });
    const { usage, model } = await listOf(answer);
    const { inputTokens } = await loggedAs(server, answer.headers.get('x-request-id')!);
    expect([usage, typeof model]).toEqual([{ prompt_tokens: inputTokens, total_tokens: inputTokens }, 'string']);
  });

  test.each(['fin', 'reset'] as const)('that breaks off (%s) before any of it is out is a failure', async (how) => {
    upstream.script(cut({ afterBytes: 6000, how }, vectors()));
    const input = Array.from({ length: 256 }, (_, at) => `input ${at}`);
    const answer = await embed({ model: 'text-embedding-3-small', input });
    expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining('"error"')]);
  });

  const vector = [0.1, 0.2];
  const item = (embedding: unknown, index: unknown = 0) => ({ object: 'embedding', index, embedding });
  test.each([
    ['too few vectors', [item(vector)]],
    ['too many', [item(vector), item(vector, 1), item(vector, 2)]],
    ['two of the same index', [item(vector), item(vector)]],
    ['a vector without numbers', [item(vector), item([], 1)]],
    ['texts in place of numbers', [item(['a']), item(['b'], 1)]],
    ['other values among the numbers', [item([0.1, null]), item([0.1, true], 1)]],
    ['lists in place of numbers', [item([[0.1]]), item([[0.2]], 1)]],
    ['no vector', [item(null), item(undefined, 1)]],
    ['a text that is no base64', [item('x!'), item('x!', 1)]],
    ['base64 of half a number', [item('AAA='), item('AAAA', 1)]],
  ])('with %s is a failure of the provider: nothing is booked, and the next one is asked', async (_name, data) => {
    const answer = JSON.stringify({ object: 'list', data, model: 'm', usage: { prompt_tokens: 9, total_tokens: 9 } });
    for (const encoding_format of ['float', 'base64']) {
      upstream.reset();
      upstream.script(always(says(/embeddings/, 'application/json', answer)));
      const failed = await embed({ model: 'text-embedding-3-small', input: ['one', 'two'], encoding_format });
      expect([failed.status, await failed.json()]).toEqual([502, { error: expect.objectContaining({ code: 'upstream_error' }) as unknown }]);
      expect(await loggedAs(server, failed.headers.get('x-request-id')!)).toMatchObject({ end: 'upstream-failed', planTokens: 0 });
      upstream.reset();
      upstream.script(says(/embeddings/, 'application/json', answer));
      good();
      expect((await listOf(await embed({ model: 'standby', input: ['one', 'two'], encoding_format }))).model).toBe('second-v1');
    }
  });

  test('with too few vectors is a failure of the provider', async () => {
    good({ count: 2, backwards: true });
    expect((await embed({ model: 'text-embedding-3-small', input: ['one', 'two', 'three'] })).status).toBe(502);
  });

  test('goes up with the model, the dimensions and the user of the request, and our key', async () => {
    good();
    await embed({ model: 'text-embedding-3-small', input: 'a', dimensions: 3, user: 'u1', app_name: 'x' });
    expect(upstream.requests[0]?.json).toEqual({ model: 'text-embedding-3-small', input: 'a', dimensions: 3, user: 'u1' });
    expect(upstream.requests[0]).toMatchObject({ key: providerKey, path: '/v1/embeddings' });
  });
});

describe('a request', () => {
  test(proves(['embeddings.model-default', 'embeddings.input-string'], 'without a model is for text-embedding-3-small'), async () => {
    good();
    expect((await listOf(await embed({ input: 'a' }))).model).toBe('text-embedding-3-small-v1');
  });

  test.each(names)(proves(['embeddings.model-3-small', 'embeddings.model-3-large', 'embeddings.model-ada-002'], 'may name %s'), async (model) => {
    good();
    expect((await listOf(await embed({ model, input: 'a' }))).model).toBe(`${model}-v1`);
    expect(upstream.requests[0]?.json).toMatchObject({ model });
  });

  test.each([['gpt-4o-mini'], ['no-such-model'], ['a b']])(
    proves('embeddings.model-fallback', 'for %j is answered by the default engine, and says so'),
    async (model) => {
      good();
      const answer = await embed({ model, input: 'a' });
      expect((await listOf(answer)).model).toBe('first-v1'); // the first embedding model of the settings
      expect(answer.headers.get('x-dragoman-warnings')).toBe(`model: ${model} is not an embedding model here, so standby answers instead`);
    },
  );

  test(proves(['embeddings.input-256', 'I-14'], 'may have 256 inputs'), async () => {
    good();
    const inputs = Array.from({ length: 256 }, (_, at) => `input ${at}`);
    const { data } = await listOf(await embed({ model: 'text-embedding-3-small', input: inputs }));
    expect(data.map(({ embedding }) => embedding)).toEqual(inputs.map(vectorOf));
    expect(upstream.requests).toHaveLength(1);
  });

  test('may give a text as tokens, or several', async () => {
    good();
    expect((await listOf(await embed({ input: Array.from({ length: 300 }, (_, at) => at) }))).data).toHaveLength(1);
    expect((await listOf(await embed({ input: [[1, 2], [3]] }))).data.map(({ embedding }) => embedding)).toEqual([vectorOf([1, 2]), vectorOf([3])]);
  });

  /** Ollama says so: https://github.com/ollama/ollama/blob/main/server/routes.go */
  test('with tokens goes up as texts where the server reads no tokens, and again at once the next time', async () => {
    upstream.script(badRequest({ message: 'invalid input type' }), always(vectors()));
    const ask = async () =>
      (
        await listOf(
          await embed({
            model: 'standby',
            input: [
              [15339, 1917],
              [19045, 3814],
            ],
            encoding_format: 'float',
          }),
        )
      ).data;
    const texts = ['hello world', 'good night'];
    for (let times = 0; times < 2; times++) expect((await ask()).map(({ embedding }) => embedding)).toEqual(texts.map(vectorOf));
    const inputs = upstream.requests.map(({ json }) => (json as { readonly input: unknown }).input);
    expect(inputs).toEqual([
      [
        [15339, 1917],
        [19045, 3814],
      ],
      texts,
      texts,
    ]);
  });

  test('larger than a provider takes goes in parts, and the order is kept', async () => {
    good();
    const inputs = Array.from({ length: 8 }, (_, at) => `${at} ${'x'.repeat(250_000)}`);
    const { data, usage } = await listOf(await embed({ model: 'text-embedding-3-small', input: inputs, encoding_format: 'float' }));
    expect(data.map(({ index, embedding }) => [index, embedding])).toEqual(inputs.map((input, at) => [at, vectorOf(input)]));
    expect(usage.prompt_tokens).toBe(16);
    expect(upstream.requests.length).toBe(4);
  });

  test('has a part tried again that failed after others were done', async () => {
    upstream.script(vectors(), failing(500));
    good();
    const inputs = Array.from({ length: 8 }, (_, at) => `${at} ${'x'.repeat(250_000)}`);
    const { data } = await listOf(await embed({ model: 'text-embedding-3-small', input: inputs }));
    expect(data.map(({ embedding }) => embedding)).toEqual(inputs.map(vectorOf));
    expect(upstream.requests.length).toBe(5);
  });

  test('of which a part fails for good costs what the parts before it cost', async () => {
    upstream.script(vectors(), always(failing(500)));
    const inputs = Array.from({ length: 8 }, (_, at) => `${at} ${'x'.repeat(250_000)}`);
    const answer = await embed({ model: 'text-embedding-3-small', input: inputs });
    expect(answer.status).toBe(502);
    const row = await loggedAs(server, answer.headers.get('x-request-id')!);
    expect(row).toMatchObject({ end: 'upstream-failed', provenance: 'partial', inputTokens: 4, planTokens: 4 });
  });

  test('whose time is over while a part waits for its second try is 504, not a mistake of ours', async () => {
    const own = await startTestServer({ upstream: upstream.url, yaml: 'limits: { requestSeconds: 1 }\n' });
    onTestFinished(own.close);
    upstream.script(vectors(), tooMany({ retryAfter: 10 }));
    const answer = await own.ask(path, { model: 'text-embedding-3-small', input: Array.from({ length: 8 }, () => 'x'.repeat(250_000)) });
    expect([answer.status, await answer.json()]).toMatchObject([504, { error: { code: 'timeout' } }]);
    expect(upstream.requests.length).toBe(2);
  });

  test.each([
    ['a provider that is asked too often', tooMany()],
    ['a provider that fails', failing(500)],
  ])('moves on from %s', async (_name, behaviour) => {
    upstream.script(behaviour);
    good();
    const answer = await embed({ model: 'standby', input: 'a' });
    expect((await listOf(answer)).model).toBe('second-v1');
    expect(answer.headers.get('x-dragoman-attempts')).toBe('2');
  });
});

/** Refused with 400, naming the field; nothing goes upstream. */
async function refused(body: unknown, param: string, code = 'invalid_value'): Promise<void> {
  good();
  const answer = await embed(body);
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ error: { type: 'invalid_request_error', param, code } });
  expect(upstream.requests).toEqual([]);
}

describe('refused with 400, and nothing goes upstream:', () => {
  const long = Array.from({ length: 257 }, () => 'a');

  test(proves(['embeddings.input-required', 'embeddings.400-missing'], 'no input'), () => refused({ model: 'm' }, 'input', 'missing_required_parameter'));

  test.each([
    [{ input: '' }, 'input'],
    [{ input: [] }, 'input'],
    [{ input: ['a', ''] }, 'input[1]'],
    [{ input: [[1], []] }, 'input[1]'],
  ])(proves(['embeddings.400-empty', 'I-14'], 'an empty one: %j'), refused);

  test.each([
    ['texts', long],
    ['tokens', long.map(() => [1])],
  ])(proves(['embeddings.400-257', 'I-14'], '257 inputs, as %s'), (_name, input) => refused({ input }, 'input'));

  test.each([
    [{ input: { text: 'a' } }, 'input'],
    [{ input: 5 }, 'input'],
    [{ input: null }, 'input'],
    [{ input: ['a', 1] }, 'input[1]'],
    [{ input: [1, 'a'] }, 'input[1]'],
    [{ input: [['a']] }, 'input[0][0]'],
    [{ input: [[['a']]] }, 'input[0][0]'],
    [{ input: [-1] }, 'input[0]'],
    [{ input: [[1.5]] }, 'input[0][0]'],
    [{ input: [1e15] }, 'input[0]'],
  ])(proves(['embeddings.400-input', 'I-14'], 'an input that is neither text nor tokens: %j'), refused);

  test.each([[5], ['a\nb'], [''], [null], [['text-embedding-3-small']]])(proves('embeddings.model-string', 'the model %j'), (model) =>
    refused({ model, input: 'a' }, 'model'),
  );

  test.each([
    [{ dimensions: 0 }, 'dimensions'],
    [{ dimensions: 1.5 }, 'dimensions'],
    [{ encoding_format: 'hex' }, 'encoding_format'],
    [{ user: 1 }, 'user'],
    [{ app_name: 1 }, 'app_name'],
  ])('%j', (fields, param) => refused({ input: 'a', ...fields }, param));

  test(proves('embeddings.400-format', 'a body that is no JSON object'), async () => {
    for (const body of ['', '{"input":', '[]', '"a"', 'null']) expect((await embed(body)).status).toBe(400);
    expect(upstream.requests).toEqual([]);
  });

  test('a million inputs, at once', async () => {
    const answer = await embed(`{"input":[${'"a",'.repeat(900_000)}"a"]}`);
    expect(answer.status).toBe(400);
    expect(upstream.requests).toEqual([]);
  });
});

test('NUL and half characters go up as they are', async () => {
  good();
  const answer = await embed('{"input":["a\\u0000b","\\ud800"]}');
  expect(answer.status).toBe(200);
  expect(upstream.requests[0]?.body.toString()).toContain('a\\u0000b');
});

test(proves('I-14', 'a text of 1 MB goes up'), async () => {
  good();
  expect((await embed({ input: 'a '.repeat(500_000) })).status).toBe(200);
});

test(proves('embeddings.401', 'without a key, or with a bad one, the answer is 401'), async () => {
  for (const authorization of ['', 'Bearer nonsense']) expect((await embed({ input: 'a' }, { headers: { authorization } })).status).toBe(401);
  expect(upstream.requests).toEqual([]);
});

test('a mistake that the provider finds is told once, without its words', async () => {
  upstream.script(badRequest());
  const answer = await embed({ model: 'standby', input: 'a' });
  expect(answer.status).toBe(400);
  expect(upstream.requests).toHaveLength(1);
});

test.each([
  ['a page', html()],
  ['nothing', empty()],
  ['null', jsonNull()],
  ['half an answer', malformed()],
  ['a refusal of our key', badKey()],
])('%s in place of vectors is a failure of the provider', async (_name, behaviour) => {
  upstream.script(always(behaviour));
  const answer = await embed({ model: 'text-embedding-3-small', input: 'a' });
  expect(answer.status).toBe(502);
  expect(await answer.text()).not.toContain(providerKey);
});

test.each([
  ['{"error":{"code":"rate_limit_exceeded","type":"rate_limit_error","message":"no"}}', 429],
  ['{"error":{"code":503,"message":"no"}}', 503],
  ['{"object":"error","type":"invalid_request_error","message":"no"}', 400],
])('%s in place of vectors has the meaning that it has as a refusal', async (body, status) => {
  upstream.script(always(says(/embeddings/, 'application/json', body)));
  expect((await embed({ model: 'text-embedding-3-small', input: 'a' })).status).toBe(status);
});

test('a connection that breaks is tried elsewhere', async () => {
  upstream.script(times(2, drop())); // on a connection kept alive it is asked once more
  good();
  expect((await listOf(await embed({ model: 'standby', input: 'a' }))).model).toBe('second-v1');
});

test('Azure has the deployment in its address and the key in a header of its own', async () => {
  good();
  const azure = await startTestServer({
    yaml: `providers: { az: { dialect: openai-chat, kind: azure, baseUrl: "${upstream.url}", apiVersion: "2025-04-01", apiKeys: [k1] } }
models: { e: { kind: embedding, targets: [{ provider: az, model: dep }] } }
`,
  });
  try {
    expect((await azure.ask(path, { model: 'e', input: 'a' })).status).toBe(200);
    expect(upstream.requests[0]?.path).toBe('/openai/deployments/dep/embeddings?api-version=2025-04-01');
    expect(upstream.requests[0]?.headers['api-key']).toBe('k1');
  } finally {
    await azure.close();
  }
});

test('embedding models are listed; those that need no entry only where their provider is known to have them', async () => {
  const { data } = (await (await server.ask('/server/chatcompat/v1/models')).json()) as { data: { id: string; owned_by: string }[] };
  expect(data).toContainEqual(expect.objectContaining({ id: 'standby', owned_by: 'fake' }));
  for (const name of names) expect(data).not.toContainEqual(expect.objectContaining({ id: name }));
  expect(data).toContainEqual(expect.objectContaining({ id: 'built-in-embedding', owned_by: 'dragoman' }));
  expect(await (await server.ask('/server/chatcompat/v1/models/text-embedding-3-large')).json()).toMatchObject({
    id: 'text-embedding-3-large',
    owned_by: 'fake',
  });
});

test(proves('embeddings.model-fallback', 'text-embedding-3-small answers for an unknown model where no embedding model is configured'), async () => {
  good();
  const providers = `providers: { fake: { dialect: openai-chat, baseUrl: "${upstream.url}/v1", apiKeys: [k] } }\n`;
  const yaml = `${providers}models: { mine: { targets: [{ provider: fake }] }, "*": { targets: [{ provider: fake }] } }\n`;
  const bare = await startTestServer({ yaml });
  onTestFinished(() => bare.close());
  for (const model of ['nomic', 'mine', 'text-embedding-3-small', undefined]) {
    const answer = await bare.ask(path, { model, input: 'a' });
    expect([model, answer.status, (await listOf(answer)).model]).toEqual([model, 200, 'text-embedding-3-small-v1']);
  }
  await bare.change(`${yaml}defaults: { fallback: false }\n`);
  expect((await bare.ask(path, { model: 'nomic', input: 'a' })).status).toBe(404);
  expect((await bare.ask(path, { input: 'a' })).status).toBe(200);
});

test('an embedding model holds no conversation', async () => {
  const answer = await server.ask('/server/chatcompat/v1/chat/completions', { model: 'standby', messages: [{ role: 'user', content: 'a' }] });
  expect(answer.status).toBe(404);
});

describe('the plan', () => {
  test.each([
    ['no tokens', '{ monthlyTokens: 0 }'],
    ['no dollars', '{ monthlyUsd: 0 }'],
  ])(proves('embeddings.429-quota', 'with %s refuses with 429 or 403, and the upstream sees nothing'), async (_name, plan) => {
    good();
    const poor = await startTestServer({
      upstream: upstream.url,
      yaml: `  priced: { kind: embedding, targets: [{ provider: fake }], price: { input: 1 } }\nplans: { unlimited: ${plan} }\n`,
    });
    try {
      const answer = await poor.ask(path, { model: 'priced', input: 'a' });
      expect(answer.status).toBe(429);
      expect(answer.headers.get('x-should-retry')).toBe('false');
      expect(upstream.requests).toEqual([]);
    } finally {
      await poor.close();
    }
  });

  test('pays for embeddings from the training balance where the settings say so', async () => {
    good();
    const plan = '{ monthlyTokens: 1000, monthlyTrainTokens: 0 }';
    const some = await startTestServer({ upstream: upstream.url, yaml: `charge: { embeddings: train }\nplans: { unlimited: ${plan} }\n` });
    try {
      expect((await some.ask(path, { input: 'a' })).status).toBe(429);
      expect((await some.ask(chat, { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'a' }] })).status).toBe(200);
    } finally {
      await some.close();
    }
  });

  test('is charged by what the provider counted', async () => {
    good();
    const some = await startTestServer({ upstream: upstream.url, yaml: 'plans: { unlimited: { monthlyTokens: 1000 } }\n' });
    try {
      const left = async () => Number((await some.ask(path, { input: 'a b c d e f g h i j' })).headers.get('x-ratelimit-remaining-tokens'));
      const [first, second] = [await left(), await left()];
      expect(first - second).toBe(10);
    } finally {
      await some.close();
    }
  });
});

import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  always,
  cut,
  headersThenHang,
  notFound,
  ok,
  on,
  startUpstream,
  thinking,
  toolCalls,
  tooMany,
  type Upstream,
} from '../../support/fakes/upstream/index.ts';
import { whole as answerOf } from '../../support/fakes/upstream/answer.ts';
import { chat, startTestServer, providerKey, type TestServer } from '../../support/server.ts';
import { raw } from './send-raw.ts';
import { loggedBy } from '../../support/members.ts';
import { proves } from '../../support/proves.ts';

const root = '/server/gencompat/v1beta';
const generate = (model: string) => `${root}/models/${model}:generateContent`;
const stream = (model: string) => `${root}/models/${model}:streamGenerateContent?alt=sse`;
const said = (text: string, more: object = {}) => ({ contents: [{ role: 'user', parts: [{ text }] }], ...more });

interface Answer {
  readonly candidates: readonly {
    readonly content: {
      readonly role: string;
      readonly parts: readonly {
        readonly text?: string;
        readonly thought?: boolean;
        readonly functionCall?: { readonly id?: string; readonly name: string; readonly args: object };
      }[];
    };
    readonly finishReason?: string;
    readonly index: number;
    readonly safetyRatings: readonly unknown[];
  }[];
  readonly usageMetadata: { readonly promptTokenCount: number; readonly candidatesTokenCount: number; readonly totalTokenCount: number };
  readonly modelVersion: string;
  readonly error?: { readonly code: number; readonly message: string; readonly status: string; readonly details: readonly unknown[] };
}

let upstream: Upstream;
let yaml: string;
let server: TestServer;
/** No provider at all. */
let alone: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  alone = await startTestServer();
  yaml = `
providers:
  google: { dialect: gemini, baseUrl: "${upstream.url}/v1beta", apiKeys: ["${providerKey}", "sk-second"] }
  gpt: { dialect: openai-chat, baseUrl: "${upstream.url}/v1", apiKeys: ["sk-gpt"] }
  claude: { dialect: anthropic-messages, baseUrl: "${upstream.url}", apiKeys: ["sk-claude"] }
models:
  gemini-2.5-flash: { targets: [{ provider: google }], aliases: [quick] }
  gemini-2.0-flash: { targets: [{ provider: google }], limits: { context: 1000000, output: 8192 } }
  gemini-2.5-flash-preview-09-2025: { targets: [{ provider: google }] }
  gemini-2.5-pro: { targets: [{ provider: google }] }
  openai/gpt-x: { targets: [{ provider: gpt }], aliases: [gpt-x] }
  claude-x: { targets: [{ provider: claude }] }
defaults: { gencompat: gemini-2.5-flash }
limits: { holdHeadersSeconds: 1, hangSeconds: { stream: 1, whole: 1 }, firstByteSeconds: 4, streamIdleSeconds: 1 }
routing: { cooldownSeconds: 0, retryBudget: 1 }
`;
  server = await startTestServer({ yaml });
});
afterAll(async () => {
  await Promise.all([server.close(), alone.close()]);
  await upstream.close();
});
afterEach(() => upstream.reset());

async function whole(path: string, body: unknown, init?: RequestInit, at: TestServer = server) {
  const answer = await at.ask(path, body, init);
  return { status: answer.status, headers: answer.headers, answer: (await answer.json()) as Answer };
}

/** A stream as Google's clients read it: data alone, and no comments. */
async function streamed(path: string, body: unknown, at: TestServer = server) {
  const answer = await at.ask(path, body);
  const text = await answer.text();
  const frames = text.split('\r\n\r\n').filter((frame) => frame.trim() !== '');
  const chunks = frames.map((frame) => JSON.parse(/^data: (.*)$/s.exec(frame)?.[1] ?? expect.fail(`no frame: ${frame}`)) as Answer);
  const joined = chunks.flatMap(({ candidates }) => candidates?.flatMap(({ content }) => content.parts.map((part) => part.text ?? '')) ?? []).join('');
  return { status: answer.status, headers: answer.headers, text, chunks, joined };
}

const anyNumber = expect.any(Number) as number;
const sent = (at = 0) => upstream.requests[at]?.json as Readonly<Record<string, unknown>>;

describe('without any provider', () => {
  /** The model of this name says what it is told, with every member that an answer has. */
  async function answers(model: string): Promise<void> {
    const { status, answer } = await whole(generate(model), said('Say exactly: hello there'), {}, alone);
    expect(status).toBe(200);
    expect(answer).toEqual({
      candidates: [{ content: { role: 'model', parts: [{ text: 'hello there' }] }, finishReason: 'STOP', index: 0, safetyRatings: [] }],
      usageMetadata: { promptTokenCount: anyNumber, candidatesTokenCount: anyNumber, totalTokenCount: anyNumber },
      modelVersion: 'built-in',
      responseId: expect.any(String) as string,
    });
    expect(answer.usageMetadata.totalTokenCount).toBe(answer.usageMetadata.promptTokenCount + answer.usageMetadata.candidatesTokenCount);
  }

  test(proves('gencompat.name-flash', 'the simple name flash is accepted'), () => answers('flash'));
  test(proves('gencompat.name-pro', 'the simple name pro is accepted'), () => answers('pro'));
  test(proves('gencompat.name-standard', 'a standard name is accepted'), () => answers('gemini-2.5-flash'));
  test(proves('gencompat.name-preview', 'a preview is accepted'), () => answers('gemini-2.5-pro-preview-05-06'));
  test(proves('gencompat.name-prefixed', 'a prefixed name is accepted'), () => answers('models/gemini-2.5-flash'));
  test(proves('gencompat.name-platform', 'the platform format is accepted'), () => answers('publishers/google/models/gemini-2.5-flash'));
  test.each(['publishers%2Fgoogle%2Fmodels%2Fgemini-2.5-flash', 'google/gemini-2.5-flash', 'built-in'])('%s is accepted too', (model) => answers(model));
  test.each(['publishers/acme/models/acme-3-pro', 'models/publishers/acme/models/gemini-2.5-pro', 'acme/acme-9-flash'])(
    '%s is accepted, too, where there is no provider',
    (model) => answers(model),
  );

  test.each([
    '/server/gencompat/v1/models/flash:generateContent',
    '/server/gencompat/v1beta/models/flash%3AgenerateContent',
    '/server/gencompat/v1beta/publishers/google/models/gemini-2.5-flash:generateContent',
    '/server/gencompat/v1/publishers/google/models/gemini-2.5-flash%3agenerateContent',
    '/v1/publishers/google/models/gemini-2.5-flash:generateContent',
    '/v1/projects/one/locations/us-central1/publishers/google/models/gemini-2.5-flash:generateContent',
    '/v1beta1/projects/one/locations/global/publishers/google/models/gemini-2.5-flash:generateContent',
  ])(proves('service.gencompat-root', '%s answers too'), async (path) => {
    expect((await whole(path, said('Say exactly: yes'), {}, alone)).answer.candidates[0]?.content.parts).toEqual([{ text: 'yes' }]);
  });

  test.each(['gpt-4o', 'gemini-2.5-ultra', 'gemini-2.5-flash-lite', 'flash2', 'models/flashy', 'google/flash'])(
    '%s is no name of the five forms and not found',
    async (model) => {
      const { status, answer } = await whole(generate(model), said('hi'), {}, alone);
      expect([status, answer.error?.status]).toEqual([404, 'NOT_FOUND']);
    },
  );

  test(
    proves(
      ['gencompat.config-candidate-count', 'gencompat.config-max-output-tokens', 'gencompat.config-stop-sequences'],
      ' what the configuration says is honoured',
    ),
    async () => {
      const ask = async (generationConfig: object) =>
        (await whole(generate('flash'), said('Say exactly: one two three four', { generationConfig }), {}, alone)).answer;
      expect((await ask({ candidateCount: 3 })).candidates.map(({ index }) => index)).toEqual([0, 1, 2]);
      expect((await ask({ maxOutputTokens: 2 })).candidates[0]?.finishReason).toBe('MAX_TOKENS');
      expect((await ask({ stopSequences: ['three'] })).candidates[0]?.content.parts[0]?.text).toBe('one two ');
    },
  );

  test(proves(['gencompat.config-response-mime-type', 'gencompat.config-response-schema'], ' the answer conforms to a schema in capitals'), async () => {
    const responseSchema = {
      type: 'OBJECT',
      properties: { city: { type: 'STRING', enum: ['Paris', 'Rome'] }, n: { type: 'INTEGER', nullable: true } },
      required: ['city', 'n'],
    };
    const { answer } = await whole(generate('flash'), said('json', { generationConfig: { responseMimeType: 'application/json', responseSchema } }), {}, alone);
    expect(JSON.parse(answer.candidates[0]!.content.parts[0]!.text!)).toMatchObject({ city: expect.stringMatching(/^(Paris|Rome)$/) as string });
  });

  test(
    proves(['gencompat.tools', 'gencompat.part-function-call', 'gencompat.part-function-response'], ' a function is called, and its response is read'),
    async () => {
      const tools = [
        {
          functionDeclarations: [
            { name: 'get_weather', description: 'w', parameters: { type: 'OBJECT', properties: { place: { type: 'STRING' } }, required: ['place'] } },
          ],
        },
      ];
      const first = await whole(generate('flash'), said('weather?', { tools, toolConfig: { functionCallingConfig: { mode: 'ANY' } } }), {}, alone);
      const [part] = first.answer.candidates[0]!.content.parts;
      expect(part?.functionCall).toMatchObject({ name: 'get_weather', args: { place: expect.any(String) as string } });
      const contents = [
        ...said('weather?').contents,
        first.answer.candidates[0]!.content,
        { role: 'user', parts: [{ functionResponse: { id: part?.functionCall?.id, name: 'get_weather', response: { result: 'sunny as ever' } } }] },
      ];
      const second = await whole(generate('flash'), { contents, tools }, {}, alone);
      expect(second.answer.candidates[0]?.content.parts[0]?.text).toContain('sunny as ever');
    },
  );

  test('a stream is a JSON array unless events are asked for', async () => {
    const path = `${root}/models/flash:streamGenerateContent`;
    const answer = await alone.ask(path, said('Say exactly: one two three'));
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    const chunks = (await answer.json()) as Answer[];
    expect(chunks.length).toBeGreaterThan(2);
    const events = await streamed(`${path}?alt=sse`, said('Say exactly: one two three'), alone);
    expect(events.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    expect(events.joined).toBe('one two three');
    const last = events.chunks.at(-1)!;
    expect(last).toMatchObject({
      candidates: [{ finishReason: 'STOP', safetyRatings: [] }],
      usageMetadata: { candidatesTokenCount: expect.any(Number) as number },
    });
  });

  test('tokens are counted without an answer', async () => {
    const count = async (body: object) => (await (await alone.ask(`${root}/models/flash:countTokens`, body)).json()) as { totalTokens: number };
    const one = await count(said('hi'));
    expect(one.totalTokens).toBeGreaterThan(0);
    expect(await count({ generateContentRequest: { model: 'models/flash', ...said('hi') } })).toEqual(one);
    expect((await count(said('hi '.repeat(100)))).totalTokens).toBeGreaterThan(one.totalTokens + 50);
  });
});

describe('who may ask', () => {
  test(proves('auth.gencompat-header', ' the key stands in x-access-tokens, x-goog-api-key or Authorization'), async () => {
    const ask = (headers: Record<string, string>) =>
      fetch(alone.url + generate('flash'), { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(said('hi')) });
    for (const headers of [{ 'x-access-tokens': alone.key }, { 'x-goog-api-key': alone.key }, { authorization: `Bearer ${alone.key}` }])
      expect((await ask(headers as Record<string, string>)).status).toBe(200);
    expect((await ask({ 'x-access-tokens': 'bad', 'x-goog-api-key': alone.key })).status).toBe(401);
  });

  test(proves(['gencompat.401', 'gencompat.token-first'], " without a key nothing is looked at, and the refusal has Google's shape"), async () => {
    const answer = await fetch(server.url + generate('no/such/../model'), { method: 'POST', body: '{' });
    expect(answer.status).toBe(401);
    expect(await answer.json()).toEqual({ error: { code: 401, message: expect.any(String) as string, status: 'UNAUTHENTICATED', details: [] } });
    expect(upstream.requests).toHaveLength(0);
  });
});

describe('what is refused', () => {
  async function refused(body: unknown, field: string): Promise<void> {
    const { status, answer } = await whole(generate('flash'), body);
    expect(status).toBe(400);
    expect(answer.error).toEqual({
      code: 400,
      message: expect.stringContaining(field) as string,
      status: 'INVALID_ARGUMENT',
      details: [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [{ field, description: answer.error?.message }] }],
    });
  }

  test(proves(['gencompat.400-missing', 'gencompat.contents-required'], 'a request without contents is 400'), () => refused({}, 'contents'));
  test(proves(['gencompat.400-format', 'gencompat.contents-array'], 'contents that are no array are 400'), () => refused({ contents: 'hi' }, 'contents'));
  test(proves('gencompat.contents-array', 'contents without parts are 400'), () => refused({ contents: [{ role: 'user' }] }, 'contents[0].parts'));
  test(proves('gencompat.400-parameters', 'a wrong parameter is 400, in the spelling it came in'), () =>
    refused(said('hi', { generation_config: { top_k: 'x' } }), 'generation_config.top_k'),
  );
  test('a candidate count of 0 is 400', () => refused(said('hi', { generationConfig: { candidateCount: 0 } }), 'generationConfig.candidateCount'));

  test('an unknown operation is 404, another method 405', async () => {
    expect((await server.ask(`${root}/models/flash:explode`, said('hi'))).status).toBe(404);
    expect((await server.ask(`${root}/models/flash`, said('hi'))).status).toBe(404);
    const answer = await server.ask(generate('flash'), undefined, { method: 'PUT' });
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
    const model = await server.ask(`${root}/models/flash`, undefined, { method: 'PUT' });
    expect([model.status, model.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    for (const address of ['publishers/google/models/flash:countTokens', 'models/flash%3AembedContent']) {
      const other = await server.ask(`${root}/${address}`, undefined, { method: 'DELETE' });
      expect([address, other.status, other.headers.get('allow'), ((await other.json()) as { error: { message: string } }).error.message]).toEqual([
        address,
        405,
        'POST',
        'This address takes POST.',
      ]);
    }
    const read = await server.ask('/server/gencompat/v1beta/models/flash:generateContent', undefined, { method: 'GET' });
    expect([read.status, read.headers.get('allow')]).toEqual([405, 'POST']);
  });

  test('an address and its methods are known before the credential', async () => {
    const bare = async (path: string, method: string) => {
      const { status, headers } = await fetch(`${server.url}${path}`, { method });
      return [path, method, status, headers.get('allow')];
    };
    for (const below of [root, '/server/gencompat/v1', '/server/gencompat/v1beta1', '/v1beta', '/v1beta1'])
      for (const address of [`${below}/models/flash:streamGenerateContent`, `${below}/publishers/google/models/flash:countTokens`]) {
        for (const method of ['GET', 'HEAD', 'PUT']) expect(await bare(address, method)).toEqual([address, method, 405, 'POST']);
        expect(await bare(address, 'POST')).toEqual([address, 'POST', 401, null]);
      }
    for (const address of [`${root}/models/flash:explode`, `${root}/models/flash`]) expect(await bare(address, 'POST')).toEqual([address, 'POST', 404, null]);
    expect(await bare(`${root}/models/flash`, 'GET')).toEqual([`${root}/models/flash`, 'GET', 401, null]);
  });

  test.each([
    '..',
    '../../x',
    '%2e%2e',
    '..%2f..%2fadmin',
    '%252e%252e',
    'a//b',
    'x%23y',
    'x%3Fy',
    'x@y',
    'evil.example%40host',
    'models%2F..%2Fx',
    'модель',
    '%F0%9F%90%88',
    '%00',
    'x%0d%0ay',
    '%',
    '%zz',
    'a'.repeat(2048),
    'publishers/../models/x',
    'publishers/google/models/..',
    ' ',
    'a\\b',
  ])('the hostile model name %s is refused, and nothing goes upstream', async (name) => {
    for (const prefix of ['models', 'publishers/google/models', 'publishers/%2e%2e/models']) {
      const status = await raw(server.url, `${root}/${prefix}/${name}:generateContent`, server.key, JSON.stringify(said('hi')));
      expect([400, 404]).toContain(status);
    }
    expect(upstream.requests).toEqual([]);
  });
});

describe.each(['gemini-2.5-flash', 'gpt-x', 'claude-x'])('before %s', (model) => {
  test(
    proves(
      [
        'gencompat.200',
        'gencompat.answer-candidates',
        'gencompat.candidate-content',
        'gencompat.candidate-finish-reason',
        'gencompat.candidate-safety-ratings',
        'gencompat.answer-usage',
        'gencompat.answer-model-version',
      ],
      ' an answer has every member',
    ),
    async () => {
      const { status, answer, headers } = await whole(
        generate(model),
        said('one two three', model === 'claude-x' ? {} : { generationConfig: { candidateCount: 1 } }),
      );
      expect(status).toBe(200);
      expect(answer.candidates).toMatchObject([
        {
          content: { role: 'model', parts: [{ text: expect.stringContaining('one two three') as string }] },
          finishReason: 'STOP',
          index: 0,
          safetyRatings: [],
        },
      ]);
      expect(answer.usageMetadata).toMatchObject({
        promptTokenCount: 3,
        candidatesTokenCount: expect.any(Number) as number,
        totalTokenCount: expect.any(Number) as number,
      });
      expect(answer.modelVersion).not.toBe('');
      expect(headers.get('x-dragoman-attempts')).toBe('1');
    },
  );

  test('a stream says the same', async () => {
    const { answer } = await whole(generate(model), said('one two three'));
    const { joined, chunks, status } = await streamed(stream(model), said('one two three'));
    expect([status, joined]).toEqual([200, answer.candidates[0]?.content.parts[0]?.text]);
    expect(chunks.at(-1)?.candidates[0]?.finishReason).toBe('STOP');
    expect(chunks.at(-1)?.usageMetadata).toEqual(answer.usageMetadata);
    expect(chunks.filter(({ candidates }) => candidates[0]?.finishReason)).toHaveLength(1);
  });

  test.each([false, true])('functions are called, streamed: %s', async (isStream) => {
    upstream.script(
      always(
        toolCalls([
          { name: 'look', json: '{"at":"sky"}' },
          { name: 'look', json: '{"at":"sea"}' },
        ]),
      ),
    );
    const body = said('look', {
      tools: [{ functionDeclarations: [{ name: 'look', parameters: { type: 'OBJECT', properties: { at: { type: 'STRING' } } } }] }],
    });
    const parts = isStream
      ? (await streamed(stream(model), body)).chunks.flatMap(({ candidates }) => candidates[0]!.content.parts)
      : (await whole(generate(model), body)).answer.candidates[0]!.content.parts;
    expect(parts.flatMap(({ functionCall }) => (functionCall ? [[functionCall.name, functionCall.args]] : []))).toEqual([
      ['look', { at: 'sky' }],
      ['look', { at: 'sea' }],
    ]);
  });

  test('thoughts are marked as such', async () => {
    upstream.script(thinking('hm', 'yes'));
    const { answer } = await whole(generate(model), said('think', { generationConfig: { thinkingConfig: { includeThoughts: true } } }));
    expect(answer.candidates[0]?.content.parts.map(({ text, thought }) => [text, thought === true])).toEqual([
      ['hm', true],
      ['yes', false],
    ]);
  });

  test('a stream that dies says so in a chunk, and never finishes', async () => {
    upstream.script(cut({ afterEvents: 4 }));
    const { chunks, text } = await streamed(stream(model), said('one two three four five six'));
    expect(chunks.at(-1)?.error).toMatchObject({ code: 502, status: 'INTERNAL' });
    expect(text).not.toMatch(/^event:|finishReason/m);
  });

  test('a provider that asks to wait is 429 with the time', async () => {
    upstream.script(always(tooMany({ retryAfter: 7 })));
    const { status, answer, headers } = await whole(generate(model), said('hi'));
    expect([status, headers.get('retry-after'), answer.error?.status]).toEqual([429, '7', 'RESOURCE_EXHAUSTED']);
    expect(answer.error?.details).toContainEqual({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '7s' });
  });
});

describe('a plain answer of the same interface', () => {
  const plain = (candidate: object, usage: object) => ({
    candidates: [{ content: { role: 'model', parts: [{ text: 'zéro ' }, { text: 'one' }] }, ...candidate }],
    usageMetadata: { promptTokenCount: 4, ...usage },
    modelVersion: 'gemini-2.5-flash-001',
    responseId: 'theirs',
    turnToken: 'v1:unknown',
  });
  const asked = (answer: object, indent: number) => {
    const text = JSON.stringify(answer, null, indent);
    upstream.script({ name: 'plain', answer: () => answerOf(200, text, { 'content-type': 'application/json; charset=UTF-8' }) });
    return whole(generate('gemini-2.5-flash'), said('hi'));
  };
  const booked = (headers: Headers) =>
    vi.waitUntil(async () => (await loggedBy(server, 1)).find(({ requestId }) => requestId === headers.get('x-request-id')), {
      timeout: 20_000,
      interval: 100,
    });
  const counted = { candidatesTokenCount: 3, totalTokenCount: 7, trafficType: 'ON_DEMAND' };

  test.each([0, 2])('arrives with all members of the platform and with those that it leaves out (indent %i), and is booked', async (indent) => {
    const sent = plain({ finishReason: 'STOP', avgLogprobs: -0.5 }, counted);
    const { answer, headers } = await asked(sent, indent);
    expect(answer).toEqual({ ...sent, candidates: [{ ...sent.candidates[0], index: 0, safetyRatings: [] }] });
    expect(headers.get('content-type')).toBe('application/json');
    expect(await booked(headers)).toMatchObject({ inputTokens: 4, outputTokens: 3, end: 'completed', provenance: 'provider' });
  });

  test('with impossible counts has those that are booked', async () => {
    const { answer, headers } = await asked(
      plain({ finishReason: 'STOP', index: 0 }, { candidatesTokenCount: 900_000_000_000, totalTokenCount: 900_000_000_004 }),
      0,
    );
    const { inputTokens, outputTokens } = await booked(headers);
    expect(answer.usageMetadata).toMatchObject({ promptTokenCount: inputTokens, candidatesTokenCount: outputTokens });
    expect(outputTokens).toBeLessThan(100);
    expect(answer.candidates[0]).toMatchObject({ safetyRatings: [], index: 0, finishReason: 'STOP' });
  });
});

describe('a stream that is waited for', () => {
  test('has blank lines for keep-alives, and no comment', async () => {
    upstream.script(headersThenHang());
    const { text, status } = await streamed(stream('gemini-2.5-flash'), said('hi'));
    expect(status).toBe(200);
    expect(text.startsWith('\r\n\r\n')).toBe(true);
    expect(text).not.toMatch(/^:/m);
    expect(JSON.parse(text.slice(text.indexOf('{')))).toMatchObject({ error: { status: 'DEADLINE_EXCEEDED' } });
  });

  test('is a JSON array whatever happens', async () => {
    upstream.script(headersThenHang(), cut({ afterEvents: 2 }));
    const path = `${root}/models/gemini-2.5-flash:streamGenerateContent`;
    expect(JSON.parse(await (await server.ask(path, said('hi'))).text())).toMatchObject([{ error: { code: 504 } }]);
    expect(JSON.parse(await (await server.ask(path, said('one two three'))).text())).toMatchObject([
      { candidates: [{}] },
      { candidates: [{}] },
      { error: { code: 502 } },
    ]);
  });
});

describe('models of one tier', () => {
  const asked = () => upstream.requests.map(({ path }) => /models\/([^:]+):/.exec(path)?.[1]);

  test(proves(['gencompat.flash-default', 'gencompat.pro-tier'], ' the simple names are the best of their tier, the default first'), async () => {
    await whole(generate('flash'), said('hi'));
    await whole(generate('pro'), said('hi'));
    expect(asked()).toEqual(['gemini-2.5-flash', 'gemini-2.5-pro']);
  });

  test(proves('gencompat.tier-fallback', ' a name that is not configured is answered within its tier, and modelVersion says by whom'), async () => {
    const { answer } = await whole(generate('gemini-1.5-pro'), said('hi'));
    expect(answer.modelVersion).toBe('gemini-2.5-pro');
    expect((await whole(generate('publishers/google/models/gemini-3-flash'), said('hi'))).answer.modelVersion).toBe('gemini-2.5-flash');
  });

  test('a tier that no configured model has is not found, and the answer says how a model gets it', async () => {
    const own = await startTestServer({ upstream: upstream.url });
    const { status, answer } = await whole(generate('flash'), said('hi'), {}, own);
    expect([status, answer.error?.message]).toEqual([404, expect.stringContaining('`tier: flash`')]);
    await own.close();
  });

  test(proves('gencompat.tier-fallback', ' a model that the provider does not have is replaced by the best of its tier, never of another'), async () => {
    // What is absent stays so for minutes: this needs a server of its own.
    const own = await startTestServer({ yaml });
    upstream.script(always(on({ model: 'gemini-2.0-flash' }, notFound('model'))), always(on({ model: 'gemini-2.5-flash' }, notFound('model'))));
    const { answer, headers } = await whole(generate('gemini-2.0-flash'), said('hi'), {}, own);
    expect(answer.modelVersion).toBe('gemini-2.5-flash-preview-09-2025');
    expect([asked(), headers.get('x-dragoman-attempts')]).toEqual([['gemini-2.0-flash', 'gemini-2.5-flash', 'gemini-2.5-flash-preview-09-2025'], '3']);
    upstream.reset();
    upstream.script(always(on({ model: 'gemini-2.5-pro' }, notFound('model'))));
    const refused = await whole(generate('pro'), said('hi'), {}, own);
    expect([refused.status, asked()]).toEqual([404, ['gemini-2.5-pro']]);
    await own.close();
  });

  test('an alias and a name with slashes are found as they are', async () => {
    await whole(generate('quick'), said('hi'));
    await whole(generate('models/openai%2Fgpt-x'), said('hi'));
    expect(upstream.requests.map(({ model }) => model)).toEqual(['gemini-2.5-flash', 'openai/gpt-x']);
  });

  test('the list has them, in pages, and each can be asked for in all forms', async () => {
    const list = async (query = '') => (await (await server.ask(`${root}/models${query}`)).json()) as { models: { name: string }[]; nextPageToken?: string };
    const all = await list();
    expect(all.models.map(({ name }) => name)).toContain('models/gemini-2.0-flash');
    const first = await list('?pageSize=2');
    const second = await list(`?pageSize=2&pageToken=${first.nextPageToken}`);
    expect([...first.models, ...second.models]).toEqual(all.models.slice(0, 4));
    const one = await server.ask(`${root}/models/publishers/google/models/gemini-2.0-flash`);
    expect(await one.json()).toMatchObject({
      name: 'models/gemini-2.0-flash',
      inputTokenLimit: 1000000,
      outputTokenLimit: 8192,
      supportedGenerationMethods: expect.arrayContaining(['generateContent']) as string[],
    });
    expect((await server.ask(`${root}/models/nobody`)).status).toBe(404);
  });
});

describe.each(['gemini-2.5-flash', 'gpt-x'])('an answer of %s for which a schema was given', (model) => {
  const responseSchema = {
    type: 'OBJECT',
    properties: { n: { type: 'INTEGER' }, tag: { type: 'STRING', enum: ['a', 'b'], nullable: true } },
    required: ['n', 'tag'],
  };
  const body = (more: object = {}) => said('json', { generationConfig: { responseMimeType: 'application/json', responseSchema, ...more } });
  const right = '{"n":1,"tag":"a"}';
  const texts = ({ candidates }: Answer) => candidates.map(({ content }) => content.parts.map(({ text }) => text).join(''));

  test(proves('gencompat.schema-conforms', 'that conforms is passed on'), async () => {
    upstream.script(ok({ text: right }));
    expect(texts((await whole(generate(model), body())).answer)).toEqual([right]);
    expect(upstream.requests).toHaveLength(1);
  });

  test.each([
    ['prose', 'Here you are.'],
    ['another type', '{"n":"1","tag":"a"}'],
    ['a member that is missing', '{"n":1}'],
    ['a word that is not listed', '{"n":1,"tag":"c"}'],
  ])(proves('gencompat.schema-conforms', 'that is %s is asked for once more, with what was wrong, and both are counted'), async (_, wrong) => {
    upstream.script(ok({ text: wrong }), ok({ text: right }));
    const { answer } = await whole(generate(model), body());
    expect(texts(answer)).toEqual([right]);
    expect(upstream.requests).toHaveLength(2);
    expect(upstream.requests[1]?.body.toString()).toContain(JSON.stringify(wrong).slice(1, -1));
    expect(answer.usageMetadata.promptTokenCount).toBeGreaterThan(1);
  });

  test.each([
    ['^(?=.*[A-Z])(?!.*\\s).+$', 'aB', 'ab'],
    ['(?<=€)\\d+\\b(?<!00)', '€15', '€00'],
  ])('is held against a pattern that looks around: %s', async (pattern, fitting, other) => {
    const answered = (n: string) => JSON.stringify({ n });
    const asking = body({ responseSchema: { type: 'OBJECT', properties: { n: { type: 'STRING', pattern } }, required: ['n'] } });
    upstream.script(ok({ text: answered(fitting) }), ok({ text: answered(other) }), ok({ text: answered(fitting) }));
    expect(texts((await whole(generate(model), asking)).answer)).toEqual([answered(fitting)]);
    expect(upstream.requests).toHaveLength(1);
    expect(texts((await whole(generate(model), asking)).answer)).toEqual([answered(fitting)]);
    expect(upstream.requests).toHaveLength(3);
  });

  test('that is wrapped up for a reader is unwrapped without asking', async () => {
    upstream.script(ok({ text: `\`\`\`json\n${right}\n\`\`\`` }));
    expect(texts((await whole(generate(model), body())).answer)).toEqual([right]);
    expect(upstream.requests).toHaveLength(1);
  });

  test('is 502 where the repair does not conform either, and nothing of it is shown', async () => {
    upstream.script(ok({ text: 'first canary' }), ok({ text: 'second canary' }));
    const { status, answer } = await whole(generate(model), body());
    expect([status, answer.error?.status, upstream.requests.length]).toEqual([502, 'INTERNAL', 2]);
    expect(JSON.stringify(answer)).not.toContain('canary');
  });

  test('is held back from a stream until it conforms', async () => {
    upstream.script(ok({ text: 'not this canary' }), ok({ text: right }));
    const { joined, text, chunks } = await streamed(stream(model), body());
    expect(joined).toBe(right);
    expect(text).not.toContain('canary');
    expect(chunks.at(-1)?.candidates[0]?.finishReason).toBe('STOP');
  });

  test('that was cut by its limit is passed on as it is', async () => {
    upstream.script(ok({ text: '{"n":', finish: model === 'gpt-x' ? 'length' : 'MAX_TOKENS' }));
    const { answer } = await whole(generate(model), body());
    expect([texts(answer), answer.candidates[0]?.finishReason, upstream.requests.length]).toEqual([['{"n":'], 'MAX_TOKENS', 1]);
  });

  test('conforms in each of several candidates', async () => {
    upstream.script(ok({ text: 'wrong' }), always(ok({ text: right })));
    const { answer } = await whole(generate(model), body({ candidateCount: 2 }));
    expect(texts(answer)).toEqual([right, right]);
  });
});

describe('a provider of the content generation wire', () => {
  test(proves(['gencompat.config-temperature', 'gencompat.config-top-p', 'gencompat.config-top-k'], 'is sent the whole configuration as it came'), async () => {
    const generationConfig = {
      temperature: 0.2,
      topP: 0.9,
      topK: 20,
      maxOutputTokens: 50,
      candidateCount: 2,
      stopSequences: ['STOP'],
      seed: 7,
      thinkingConfig: { thinkingBudget: 0 },
    };
    await whole(generate('gemini-2.5-flash'), said('hi', { generationConfig }));
    expect(sent()['generationConfig']).toEqual(generationConfig);
    await whole(generate('gpt-x'), said('hi', { generationConfig: { temperature: 0.2, topP: 0.9 } }));
    expect(sent(1)).toMatchObject({ temperature: 0.2, top_p: 0.9 });
  });

  test(proves('gencompat.config-optional', 'is sent no configuration where there is none'), async () => {
    await whole(generate('gemini-2.5-flash'), said('hi'));
    expect(sent()).toEqual(said('hi'));
  });

  test(
    proves(
      ['gencompat.part-text', 'gencompat.part-inline-data', 'gencompat.part-function-call', 'gencompat.part-function-response'],
      'is sent text, images, calls and what functions answered',
    ),
    async () => {
      const contents = [
        { role: 'user', parts: [{ text: 'see' }, { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }] },
        { role: 'model', parts: [{ functionCall: { name: 'look', args: { at: 'it' } } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'look', response: { seen: true } } }] },
      ];
      await whole(generate('gemini-2.5-flash'), { contents });
      expect(sent()['contents']).toEqual(contents);
    },
  );

  test(
    proves(
      ['gencompat.system-instruction', 'gencompat.role-system', 'gencompat.role-assistant'],
      'is sent the system instruction, joined by what was said to the system',
    ),
    async () => {
      const turn = (role: string, text: string) => ({ role, parts: [{ text }] });
      await whole(generate('gemini-2.5-flash'), {
        contents: [turn('user', 'a'), turn('assistant', 'b'), turn('system', 'two'), turn('user', 'c')],
        systemInstruction: turn('user', 'one'),
      });
      expect(sent()).toEqual({
        contents: [turn('user', 'a'), turn('model', 'b'), turn('user', 'c')],
        systemInstruction: { role: 'user', parts: [{ text: 'one' }, { text: 'two' }] },
      });
      await whole(generate('gpt-x'), { contents: [turn('user', 'hi')], systemInstruction: turn('user', 'be brief') });
      expect(sent(1)['messages']).toMatchObject([{ role: 'system' }, { role: 'user' }]);
    },
  );

  test(
    proves(
      ['gencompat.tools', 'gencompat.function-declaration', 'gencompat.safety-settings'],
      'is sent declared functions with their schemas, and safety settings',
    ),
    async () => {
      const tools = [
        {
          functionDeclarations: [{ name: 'look', description: 'l', parameters: { type: 'OBJECT', properties: { at: { type: 'STRING' } }, required: ['at'] } }],
        },
      ];
      const safetySettings = [{ category: 'HARM_CATEGORY_HATE_SPEECH', threshold: 'BLOCK_NONE' }];
      await whole(generate('gemini-2.5-flash'), said('hi', { tools, safetySettings }));
      expect(sent()).toEqual(said('hi', { tools, safetySettings }));
      await whole(generate('gpt-x'), said('hi', { tools }));
      expect(sent(1)['tools']).toEqual([
        {
          type: 'function',
          function: { name: 'look', description: 'l', parameters: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] } },
        },
      ]);
    },
  );

  test('is sent what the client sent, once, with the key in its header', async () => {
    const body = said('hi', {
      safetySettings: [{ category: 'HARM_CATEGORY_HATE_SPEECH', threshold: 'BLOCK_NONE' }],
      generationConfig: { topK: 3, responseModalities: ['TEXT'] },
    });
    await whole(generate('gemini-2.5-flash'), body);
    expect(sent()).toEqual(body);
    expect(upstream.requests[0]).toMatchObject({ path: '/v1beta/models/gemini-2.5-flash:generateContent' });
    expect(upstream.requests[0]?.headers['x-goog-api-key']).toMatch(/^sk-/);
    expect(upstream.requests[0]?.headers['authorization']).toBeUndefined();
  });

  test('answers chat completions, with tools, and gets its signatures back from clients that cannot keep them', async () => {
    upstream.script(toolCalls([{ name: 'look', json: '{"at":"sky"}' }]));
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];
    const ask = async (messages: unknown[]) =>
      (await (await server.ask(chat, { model: 'gemini-2.5-flash', messages, tools })).json()) as {
        choices: { message: { tool_calls: { id: string }[]; content: string }; finish_reason: string }[];
      };
    const first = await ask([{ role: 'user', content: 'look' }]);
    expect(first.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { tool_calls: [{ type: 'function', function: { name: 'look', arguments: '{"at":"sky"}' } }] },
    });
    const [call] = first.choices[0]!.message.tool_calls;
    const second = await ask([{ role: 'user', content: 'look' }, first.choices[0]!.message, { role: 'tool', tool_call_id: call!.id, content: 'blue' }]);
    expect(second.choices[0]?.finish_reason).toBe('stop');
    expect((sent(1)['contents'] as unknown[]).slice(1)).toMatchObject([
      { role: 'model', parts: [{ functionCall: { name: 'look', args: { at: 'sky' } }, thoughtSignature: 'c2lnbmF0dXJl' }] },
      { role: 'user', parts: [{ functionResponse: { name: 'look', response: { output: 'blue' } } }] },
    ]);
  });

  test('streams chat completions', async () => {
    const answer = await server.ask(chat, { model: 'gemini-2.5-flash', stream: true, messages: [{ role: 'user', content: 'one two three' }] });
    const text = await answer.text();
    expect(text).toContain('"finish_reason":"stop"');
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });
});

interface Captured {
  readonly name: string;
  readonly url: string;
  readonly body: unknown;
}
const captured = JSON.parse(readFileSync(new URL('../../../src/dialects/gemini/recordings/requests.json', import.meta.url), 'utf8')) as Captured[];

describe.each(['a provider', 'the built-in model'])('answered by %s', (who) => {
  test.each(captured)(proves('gencompat.standard-format', 'a request of $name gets what its client can read'), async ({ name, url, body }) => {
    const at = who === 'a provider' ? server : alone;
    if (/object|response/.test(name)) upstream.script(always(ok({ text: '{"city":"Paris","n":1}' })));
    const answer = await at.ask(url, body);
    expect(answer.status).toBe(200);
    const text = await answer.text();
    if (url.includes(':countTokens')) return expect(JSON.parse(text)).toMatchObject({ totalTokens: expect.any(Number) as number });
    const chunks = url.includes('alt=sse')
      ? text
          .split('\r\n\r\n')
          .filter(Boolean)
          .map((frame) => JSON.parse(frame.slice('data: '.length)) as Answer)
      : [JSON.parse(text) as Answer];
    return expect(chunks.at(-1)).toMatchObject({
      candidates: [{ finishReason: expect.any(String) as string, index: 0, safetyRatings: [] }],
      modelVersion: expect.any(String) as string,
    });
  });
});

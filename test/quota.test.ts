/* What stops spending, and what is counted of it, at every address that spends. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { booked, tally } from './exactness.ts';
import { always, ok, startUpstream, type Upstream } from './fakes/upstream/index.ts';
import { openHouse, type House } from './house.ts';
import { administrate, fixed, fixedCost, loggedBy, newMember, type Member } from './members.ts';

const minute = 60_000;
let upstream: Upstream;
let house: House;
beforeAll(async () => {
  upstream = await startUpstream();
  const { url } = upstream;
  house = await openHouse({
    yaml: `
providers:
  fake: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [a] }
  responses: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [b] }
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [c] }
  gemini: { dialect: gemini, baseUrl: "${url}/v1beta", apiKeys: [d] }
models:
  gpt-4o-mini: { targets: [{ provider: fake }] }
  thinks: { targets: [{ provider: responses }] }
  claude: { targets: [{ provider: claude }] }
  flash: { targets: [{ provider: gemini }] }
  "*": { targets: [{ provider: fake }] }
`,
  });
}, minute);
afterEach(() => upstream.reset());
afterAll(async () => {
  await house.close();
  await upstream.close();
});

/** A POST with the first key of a member. */
function post(member: Member, path: string, body: object | string): Promise<Response> {
  const isForm = body instanceof FormData;
  const headers: Record<string, string> = { authorization: `Bearer ${member.keys[0]!}`, ...(isForm ? {} : { 'content-type': 'application/json' }) };
  return fetch(house.url + path, { method: 'POST', headers, body: isForm || typeof body === 'string' ? body : JSON.stringify(body) });
}

const messages = [{ role: 'user', content: 'Say exactly: hello' }];
const contents = [{ role: 'user', parts: [{ text: 'Say exactly: hello' }] }];
const chatcompat = '/server/chatcompat/v1';
const gencompat = '/server/gencompat/v1beta';

function recording(): FormData {
  const form = new FormData();
  form.set('model', 'gpt-4o-mini');
  form.set('file', new Blob(['RIFF']), 'a.wav');
  return form;
}

test(
  'at quota 0 every address that spends answers 429, and nothing goes upstream [Q-03]',
  async () => {
    /** A good request for each of them; the document names them, so that none can be forgotten. */
    const requests: Readonly<Record<string, readonly (() => object)[]>> = {
      [`${chatcompat}/chat/completions`]: [true, false].map((stream) => () => ({ model: 'gpt-4o-mini', stream, messages })),
      [`${chatcompat}/completions`]: [() => ({ model: 'gpt-4o-mini', prompt: 'hello' })],
      [`${chatcompat}/responses`]: [{}, { stream: true }].map((more) => () => ({ model: 'gpt-4o-mini', input: 'hello', ...more })),
      [`${chatcompat}/embeddings`]: [() => ({ model: 'text-embedding-3-small', input: ['hello', 'there'] })],
      [`${chatcompat}/moderations`]: [() => ({ model: 'gpt-4o-mini', input: 'hello' })],
      [`${chatcompat}/audio/speech`]: [() => ({ model: 'gpt-4o-mini', input: 'hello', voice: 'alloy' })],
      [`${chatcompat}/audio/transcriptions`]: [recording],
      [`${chatcompat}/images/generations`]: [() => ({ model: 'gpt-4o-mini', prompt: 'hello' })],
      '/server/messages/v1/messages': [true, false].map((stream) => () => ({ model: 'gpt-4o-mini', max_tokens: 5, stream, messages })),
      ...Object.fromEntries(
        [gencompat, '/server/gencompat/v1'].flatMap((root) =>
          ['models/{model}', 'publishers/{publisher}/models/{model}'].flatMap((at) =>
            ['generateContent', 'streamGenerateContent'].map((verb) => [`${root}/${at}:${verb}`, [() => ({ contents })]]),
          ),
        ),
      ),
    };
    const { paths } = (await (await house.ask('/openapi.json')).json()) as {
      paths: Record<string, Record<string, { parameters?: { name: string }[] }>>;
    };
    const spending = Object.entries(paths).flatMap(([path, methods]) =>
      Object.values(methods).some(({ parameters }) => parameters?.some(({ name }) => name === 'Idempotency-Key')) ? [path] : [],
    );
    expect(Object.keys(requests).toSorted()).toEqual(spending.toSorted());

    const [none, some] = [await newMember(house, { monthlyTokens: 0 }), await newMember(house, { monthlyTokens: 100_000 })];
    for (const [path, bodies] of Object.entries(requests))
      for (const body of bodies) {
        const at = path.replace('{model}', 'flash').replace('{publisher}', 'google');
        const answer = await post(none, at, body());
        const said = await answer.text();
        expect([at, answer.status, said]).toEqual([at, 429, expect.stringMatching(/insufficient_quota|RESOURCE_EXHAUSTED|rate_limit_error/)]);
        expect([at, answer.headers.get('x-should-retry')]).toEqual([at, 'false']);
        expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(60);
      }
    // in the background it is refused where it begins
    const begun = await post(none, `${chatcompat}/responses`, { model: 'gpt-4o-mini', input: 'hello', background: true });
    const { id } = (await begun.json()) as { id: string };
    const later = () => fetch(`${house.url}${chatcompat}/responses/${id}`, { headers: { authorization: `Bearer ${none.keys[0]!}` } });
    await expect
      .poll(async () => (await later()).json(), { timeout: 20_000 })
      .toMatchObject({ status: 'failed', error: { code: expect.stringMatching(/quota|rate_limit/) as string }, output: [] });
    expect(upstream.requests).toHaveLength(0);
    expect(await loggedBy(house, none.id)).toEqual([]);
    // the same requests with a quota are no refusals of another kind
    for (const [path, bodies] of Object.entries(requests)) {
      const at = path.replace('{model}', 'flash').replace('{publisher}', 'google');
      const { status } = await post(some, at, bodies[0]!());
      expect([at, status]).not.toEqual([at, expect.toBeOneOf([400, 401, 403, 429])]);
    }
  },
  minute,
);

test(
  'negative, fractional, endless and absurd numbers are refused before anything is reserved, and what is left can be spent to the last token [Q-09]',
  async () => {
    const cost = await fixedCost(house);
    const member = await newMember(house, { monthlyTokens: 10 * cost });
    upstream.reset();
    const text = JSON.stringify;
    const chat = (more: string) => `{"model":"gpt-4o-mini","messages":${text(messages)},${more}}`;
    const absurd = ['-1', '-9007199254740993', '1.5', '1e308', '-1e308', '1e999', 'null0', 'NaN', '"9"', '1e21', '[1]', 'true'];
    const fields: readonly (readonly [path: string, field: string, body: (number: string) => string])[] = [
      [`${chatcompat}/chat/completions`, 'max_tokens', (number) => chat(`"max_tokens":${number}`)],
      [`${chatcompat}/chat/completions`, 'max_completion_tokens', (number) => chat(`"max_completion_tokens":${number}`)],
      [`${chatcompat}/chat/completions`, 'n', (number) => chat(`"n":${number}`)],
      [`${chatcompat}/completions`, 'n', (number) => `{"model":"gpt-4o-mini","prompt":"hi","n":${number}}`],
      [`${chatcompat}/completions`, 'max_tokens', (number) => `{"model":"gpt-4o-mini","prompt":"hi","max_tokens":${number}}`],
      [`${chatcompat}/responses`, 'max_output_tokens', (number) => `{"model":"gpt-4o-mini","input":"hi","max_output_tokens":${number}}`],
      ['/server/messages/v1/messages', 'max_tokens', (number) => chat(`"max_tokens":${number}`)],
      [
        `${gencompat}/models/flash:generateContent`,
        'maxOutputTokens',
        (number) => `{"contents":${text(contents)},"generationConfig":{"maxOutputTokens":${number}}}`,
      ],
      [
        `${gencompat}/models/flash:generateContent`,
        'candidateCount',
        (number) => `{"contents":${text(contents)},"generationConfig":{"candidateCount":${number}}}`,
      ],
    ];
    for (const [path, field, body] of fields)
      for (const number of absurd) {
        const answer = await post(member, path, body(number));
        const said = await answer.text();
        expect([path, field, number, answer.status, said]).toEqual([path, field, number, 400, expect.stringMatching(new RegExp(`${field}|JSON|out of range`))]);
      }
    for (const body of [chat('"n":1000000000'), chat('"n":129,"max_tokens":1')])
      expect((await post(member, `${chatcompat}/chat/completions`, body)).status).toBe(400);
    const many = `{"contents":${text(contents)},"generationConfig":{"candidateCount":1000000000}}`;
    expect((await post(member, `${gencompat}/models/flash:generateContent`, many)).status).toBe(400);

    // numbers that are possible, and more than there is
    const large = [chat('"max_tokens":9007199254740991'), chat('"max_tokens":9007199254740991,"n":128'), chat('"max_tokens":2147483648')];
    for (const body of large) expect([body, (await post(member, `${chatcompat}/chat/completions`, body)).status]).toEqual([body, 429]);
    const inputs = { model: 'text-embedding-3-small', input: Array.from({ length: 256 }, () => 'word '.repeat(8000)) };
    expect((await post(member, `${chatcompat}/embeddings`, inputs)).status).toBe(429);
    expect(upstream.requests).toHaveLength(0);

    expect(await tally(Array.from({ length: 30 }, () => member.ask(fixed)))).toEqual({ 200: 10, 429: 20 });
    await booked(house, member.id, { requests: 10, planTokens: 10 * cost });
  },
  minute,
);

test(
  'of 1,000 mixed calls the upstream, the answers, the logs and the sums of the month say the same [Q-12]',
  async () => {
    const total = { input: 0, output: 0 };
    upstream.script(
      always({
        name: 'numbered',
        answer(exchange) {
          const n = Number(/call (\d+)/.exec(exchange.request.body.toString())![1]);
          const usage = { input: 3 + (n % 97), output: 1 + (n % 31) };
          total.input += usage.input;
          total.output += usage.output;
          return ok({ usage: { ...usage, total: usage.input + usage.output } }).answer(exchange);
        },
      }),
    );
    const member = await newMember(house, { monthlyTokens: 1_000_000_000, requestsPerMinute: 100_000, concurrentStreams: 1000 });
    const models = ['gpt-4o-mini', 'thinks', 'claude', 'flash'];
    const kinds: readonly ((model: string, content: string) => readonly [path: string, body: object])[] = [
      (model, content) => [`${chatcompat}/chat/completions`, { model, messages: [{ role: 'user', content }] }],
      (model, content) => [
        `${chatcompat}/chat/completions`,
        { model, messages: [{ role: 'user', content }], stream: true, stream_options: { include_usage: true } },
      ],
      (model, input) => [`${chatcompat}/responses`, { model, input, store: false }],
      (model, input) => [`${chatcompat}/responses`, { model, input, store: false, stream: true }],
      (model, content) => ['/server/messages/v1/messages', { model, max_tokens: 500, messages: [{ role: 'user', content }] }],
      (model, content) => ['/server/messages/v1/messages', { model, max_tokens: 500, messages: [{ role: 'user', content }], stream: true }],
      (model, text) => [`${gencompat}/models/${model}:generateContent`, { contents: [{ role: 'user', parts: [{ text }] }] }],
      (model, text) => [`${gencompat}/models/${model}:streamGenerateContent?alt=sse`, { contents: [{ role: 'user', parts: [{ text }] }] }],
    ];
    const answered = new Map<string, { input: number; output: number }>();
    let next = 0;
    const client = async () => {
      for (let n = next++; n < 1000; n = next++) {
        const [path, body] = kinds[n % kinds.length]!(models[Math.floor(n / kinds.length) % models.length]!, `This is call ${n} .`);
        const answer = await post(member, path, body);
        const text = await answer.text();
        expect([path, answer.status, text]).toEqual([path, 200, expect.any(String)]);
        answered.set(answer.headers.get('x-request-id')!, { input: toldIn(text, inputWords), output: toldIn(text, outputWords) });
      }
    };
    await Promise.all(Array.from({ length: 16 }, client));

    const sumOf = (numbers: Iterable<{ input: number; output: number }>) =>
      Array.from(numbers).reduce((sum, { input, output }) => ({ input: sum.input + input, output: sum.output + output }), { input: 0, output: 0 });
    expect(sumOf(answered.values())).toEqual(total);
    await expect.poll(async () => (await loggedBy(house, member.id)).length, { timeout: 20_000, interval: 500 }).toBe(1000);
    const rows = await loggedBy(house, member.id);
    expect(new Map(rows.map(({ requestId, inputTokens: input, outputTokens: output }) => [requestId, { input, output }]))).toEqual(answered);
    const { items } = await administrate<{ items: object[] }>(house, 'GET', '/usage?groupBy=user');
    expect(items).toContainEqual(
      expect.objectContaining({
        user: member.id,
        requests: 1000,
        inputTokens: total.input,
        outputTokens: total.output,
        planTokens: total.input + total.output,
      }),
    );
  },
  3 * minute,
);

const inputWords = /"(?:prompt_tokens|input_tokens|promptTokenCount)":(\d+)/g;
const outputWords = /"(?:completion_tokens|output_tokens|candidatesTokenCount)":(\d+)/g;

/** The last word about it is the largest. */
const toldIn = (text: string, words: RegExp) => Math.max(...Array.from(text.matchAll(words), ([, digits]) => Number(digits)));

/* The models that answer and the tokens of a text, in the words of the native interface. */
import { countTokens } from 'gpt-tokenizer/encoding/cl100k_base';
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { proves } from '../../support/proves.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { person, visitorsOf, type Visited } from './visitors.ts';

let server: TestServer;
let all: Visited;
beforeAll(async () => {
  server = await startTestServer({
    yaml: `
providers:
  fake: { dialect: openai-chat, baseUrl: "http://127.0.0.1:9/v1", apiKeys: [k] }
  other: { dialect: anthropic-messages, baseUrl: "http://127.0.0.1:9", apiKeys: [k] }
models:
  gpt-4: { targets: [{ provider: fake }], rate: { input: 2.5, output: 0.1 }, limits: { context: 8000, output: 1000 }, aliases: [old], abilities: [vision, tools] }
  fast-flash: { targets: [{ provider: fake }], tier: flash }
  named: { targets: [{ provider: other, model: claude-x }] }
  vectors: { kind: embedding, targets: [{ provider: fake }] }
`,
  });
  all = visitorsOf(server);
});
afterAll(() => server.close());

test(
  proves(['server.get-models', 'server.access-header'], 'POST /server/get-models lists the models that may be asked, without a body, and GET does too'),
  async () => {
    const { status, body } = await all.admin('POST', '/server/get-models');
    expect(status).toBe(200);
    expect(body).toEqual({
      response: expect.arrayContaining(['built-in', 'gpt-4', 'named']) as string[],
      object: 'list',
      data: (body['response'] as string[]).map((id) => ({ id, object: 'model', created: 'na', name: id, owned_by: expect.any(String) as string })),
      status: 200,
    });
    expect(body['response']).not.toContain('vectors');
    expect((await all.admin('GET', '/server/get-models')).body).toEqual(body);
    expect((await all.admin('POST', '/server/get-models', {})).body).toEqual(body);
    expect((await all.nobody('POST', '/server/get-models')).status).toBe(401);
  },
);

test('a parameter that is not known is ignored, also where it is repeated', async () => {
  for (const path of ['get-models', 'get-personas', 'list-agents', 'list-mcp-tools']) {
    const plain = await all.admin('GET', `/server/${path}`);
    expect(await all.admin('GET', `/server/${path}?_=1&_=2&tracked`)).toMatchObject({ status: 200, body: plain.body });
  }
});

test('the full list says what is known of each model; the address says the format before the body', async () => {
  for (const [method, path, sent] of [
    ['GET', '?format=full', undefined],
    ['POST', '', { format: 'full' }],
    ['POST', '?format=full', { format: 'keys' }],
  ] as const) {
    const { body } = await all.admin(method, `/server/get-models${path}`, sent);
    expect(body['data']).toEqual(body['response']);
    const list = body['response'] as { id: string }[];
    expect(list.find(({ id }) => id === 'gpt-4')).toEqual({
      id: 'gpt-4',
      display_name: 'gpt-4',
      vendor: 'fake',
      tier: null,
      aliases: ['old'],
      capabilities: ['text', 'vision_input'],
      cui_capable: false,
      paid_only: false,
      date_added: null,
      limits: { max_context: 8000, max_output: 1000 },
      token_conversion_rate: { prompt: 2.5, completion: 0.1 },
      deprecation: { state: 'active', message: null, replacement_id: null, sunset_at: null },
    });
    expect(list.find(({ id }) => id === 'fast-flash')).toMatchObject({
      tier: 'fast',
      aliases: [],
      limits: { max_context: Number.MAX_SAFE_INTEGER, max_output: Number.MAX_SAFE_INTEGER },
    });
  }
  const bad = await all.admin('POST', '/server/get-models', { format: 'short' });
  expect([bad.status, bad.body['error']]).toEqual([400, 'format must be "keys" or "full".']);
});

test('whoever has a good credential, of any scope, sees what it may ask and nothing else', async () => {
  const narrow = await person(all, {}, { models: ['gpt-4'], scopes: ['mcp'] });
  expect((await narrow.ask('POST', '/server/get-models')).body['response']).toEqual(['gpt-4']);
});

const text = "It's a test: 1234567, naïve façade!";

test(proves('server.tokenizer', 'POST /server/tokenizer counts the tokens of a string as the model does, and answers a decimal string'), async () => {
  const count = async (fields: object) => (await all.admin('POST', '/server/tokenizer', { content: text, ...fields })).body;
  const [cl100k, o200k] = [String(countTokens(text)), String(countO200k(text))];
  expect(await count({})).toEqual({ response: cl100k, status: 200 });
  const nulls = { model: null, convert_to_asksage: null, completion_estimate: null, app_name: null };
  expect(await count(nulls)).toEqual({ response: cl100k, status: 200 });
  expect((await all.admin('POST', '/server/tokenizer', { content: null })).body['response']).toMatch(/^content must/);
  for (const model of ['ada-002', 'text-embedding-3-small', 'gpt-4'])
    expect([model, await count({ model })]).toEqual([model, { response: cl100k, status: 200 }]);
  for (const model of ['gpt-4o-mini', 'gpt-5.2', 'built-in']) expect([model, await count({ model })]).toEqual([model, { response: o200k, status: 200 }]);
  for (const model of ['named', 'nobody-knows']) expect([model, await count({ model })]).toEqual([model, { response: o200k, estimated: true, status: 200 }]);
  const form = await fetch(`${server.url}/server/tokenizer`, {
    method: 'POST',
    headers: { 'x-access-tokens': server.key },
    body: new URLSearchParams({ content: text, convert_to_asksage: 'False', completion_estimate: '0' }),
  });
  expect(await form.json()).toEqual({ response: cl100k, status: 200 });
  expect((await all.admin('GET', `/server/tokenizer?content=${encodeURIComponent(text)}&model=gpt-4o`)).body['response']).toBe(o200k);
});

test('converted to plan tokens, the prompt and the estimated answer count by the rates of the model', async () => {
  const plan = countTokens(text) * 2.5 + 1001 * 0.1;
  for (const name of ['convert_to_asksage', 'convert_to_plan_tokens'])
    expect((await all.admin('POST', '/server/tokenizer', { content: text, model: 'gpt-4', [name]: true, completion_estimate: 1001 })).body['response']).toBe(
      String(Number(plan.toFixed(6))),
    );
  expect((await all.admin('POST', '/server/tokenizer', { content: text, model: 'gpt-4', completion_estimate: 1001 })).body['response']).toBe(
    String(countTokens(text)),
  );
});

test.each([
  [{}, 'content'],
  [{ content: '' }, 'content'],
  [{ content: 7 }, 'content'],
  [{ content: 'x', model: 7 }, 'model'],
  [{ content: 'x', completion_estimate: -1 }, 'completion_estimate'],
  [{ content: 'x', convert_to_plan_tokens: 'perhaps' }, 'convert_to_plan_tokens'],
  [{ content: 'x', convert_to_asksage: 'q' }, 'convert_to_asksage'],
  [{ content: 'x', convert_to_asksage: true, convert_to_plan_tokens: 'q' }, 'convert_to_plan_tokens'],
])('the tokenizer refuses %j with 400 and names the field', async (body, field) => {
  const { status, body: answer } = await all.admin('POST', '/server/tokenizer', body);
  expect([status, answer['error']]).toEqual([400, expect.stringMatching(new RegExp(`^${field} `))]);
});

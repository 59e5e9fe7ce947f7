import { readFileSync } from 'node:fs';
import OpenAI from 'openai';
import OpenAI7 from 'openai-7';
import { zodTextFormat } from 'openai/helpers/zod';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { altered, always, badRequest, cut, failing, hang, ok, pace, thinking, toolCalls, tooMany, type Behaviour } from '../../support/fakes/upstream/index.ts';
import { providerKey } from '../../support/server.ts';
import { proves } from '../../support/proves.ts';
import { quickest } from '../../support/quickest.ts';
import { scriptedServer } from '../../support/scripted-server.ts';

const path = '/server/chatcompat/v1/responses';

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: ["${providerKey}"] }
  resp: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: ["sk-resp"] }
  gpt: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: ["sk-gpt"] }
models:
  claude-x: { targets: [{ provider: claude }] }
  gpt-x: { targets: [{ provider: gpt }] }
  resp-x: { targets: [{ provider: resp }] }
  resp-plain: { targets: [{ provider: resp }] }
limits: { holdHeadersSeconds: 1, hangSeconds: { stream: 2, whole: 2 }, firstByteSeconds: 3, streamIdleSeconds: 2 }
routing: { cooldownSeconds: 0, retryBudget: 1 }
`,
}));

interface Answer {
  readonly id: string;
  readonly status: string;
  readonly model: string;
  readonly output: readonly {
    readonly type: string;
    readonly id: string;
    readonly status?: string;
    readonly content?: readonly { readonly type: string; readonly text: string }[];
    readonly summary?: readonly { readonly text: string }[];
    readonly encrypted_content?: string;
    readonly call_id?: string;
    readonly name?: string;
    readonly arguments?: string;
    readonly input?: string;
  }[];
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number; readonly total_tokens: number };
  readonly metadata: unknown;
  readonly store: boolean;
  readonly previous_response_id: string | null;
  readonly incomplete_details: unknown;
  readonly error: { readonly code: string; readonly type?: string; readonly param?: string; readonly message: string } | null;
  readonly data: readonly { readonly id: string; readonly type: string; readonly role?: string }[];
  readonly has_more: boolean;
}

async function json(address: string, body?: unknown, init?: RequestInit) {
  const answer = await server.ask(address, body, init);
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, body: JSON.parse(text) as Answer };
}
const create = (more: object, init?: RequestInit) => json(path, { model: 'built-in', input: 'Say exactly: hello', ...more }, init);
const read = (id: string, query = '') => json(`${path}/${id}${query}`);
const textOf = ({ output }: Answer) => output.flatMap((item) => (item.type === 'message' ? item.content!.map((part) => part.text) : [])).join('');

interface Frame {
  readonly type: string;
  readonly sequence_number: number;
  readonly delta?: string;
  readonly item?: { readonly id: string };
  readonly item_id?: string;
  readonly response?: Answer;
  readonly error?: { readonly type: string; readonly code: string; readonly message: string };
}

/** A stream as the client gets it: each frame has an `event:` line that says its type. */
function framesOf(text: string): Frame[] {
  return text
    .split('\n\n')
    .filter((frame) => frame !== '' && !frame.startsWith(':') && frame !== 'data: [DONE]')
    .map((frame) => {
      const [, type, data = ''] = /^event: ([\w.]+)\ndata: (.*)$/.exec(frame) ?? expect.fail(`no frame: ${frame}`);
      const value = JSON.parse(data) as Frame;
      expect(value.type).toBe(type);
      return value;
    });
}
async function streamed(more: object) {
  const answer = await server.ask(path, { model: 'built-in', input: 'Say exactly: one two three', stream: true, ...more });
  const text = await answer.text();
  return { status: answer.status, text, frames: framesOf(text) };
}

interface Sent {
  readonly messages: readonly Record<string, unknown>[];
  readonly input?: readonly Record<string, unknown>[];
  readonly [name: string]: unknown;
}

/** What went upstream. */
const sent = (at = 0) => upstream.requests[at]?.json as Sent;

describe.each([
  ['openai 6', OpenAI],
  ['openai 7', OpenAI7 as unknown as typeof OpenAI],
])('%s against the built-in model', (_name, Client) => {
  let client: OpenAI;
  beforeAll(() => {
    client = new Client({ apiKey: server.key, baseURL: `${server.url}/server/chatcompat/v1`, maxRetries: 0 });
  });

  test(
    proves(
      ['responses.standard-sdk', 'responses.200', 'responses.input-string', 'responses.output-text', 'responses.answer-object'],
      'a plain prompt is answered with a response object',
    ),
    async () => {
      const answer = await client.responses.create({ model: 'built-in', input: 'Say exactly: the cat is out' });
      expect(answer.output_text).toBe('the cat is out');
      expect(answer.object).toBe('response');
    },
  );

  test(proves('responses.stream-true', 'the stream helper folds the stream to the same response'), async () => {
    const stream = client.responses.stream({ model: 'built-in', input: 'Say exactly: a b c' });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    const answer = await stream.finalResponse();
    expect(answer.output_text).toBe('a b c');
    expect(types[0]).toBe('response.created');
    expect(types.at(-1)).toBe('response.completed');
    expect((await client.responses.retrieve(answer.id)).output).toEqual((await client.responses.retrieve(answer.id)).output);
  });

  test('parse gives an object of the schema', async () => {
    const format = zodTextFormat(z.object({ city: z.string(), days: z.number() }), 'trip');
    const answer = await client.responses.parse({ model: 'built-in', input: 'Plan a trip to Paris for 3 days.', text: { format } });
    expect(typeof answer.output_parsed?.city).toBe('string');
  });

  test(proves(['responses.tools-flat', 'responses.tool-function', 'responses.output-tool-call'], 'a tool loop chains by previous_response_id'), async () => {
    const tool = { type: 'function', name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } }, strict: false } as const;
    const first = await client.responses.create({ model: 'built-in', input: 'weather in Paris?', tools: [tool], tool_choice: 'required' });
    const call = first.output.find((item) => item.type === 'function_call')!;
    expect(JSON.parse(call.arguments)).toBeTypeOf('object');
    const second = await client.responses.create({
      model: 'built-in',
      previous_response_id: first.id,
      input: [{ type: 'function_call_output', call_id: call.call_id, output: 'It is sunny in Paris.' }],
    });
    expect(second.output_text).toContain('sunny');
    const items = await client.responses.inputItems.list(second.id, { order: 'asc' });
    expect(items.data.map(({ type }) => type)).toEqual(['message', 'function_call', 'function_call_output']);
  });

  test('work in the background is polled until it is done', async () => {
    const queued = await client.responses.create({ model: 'built-in', input: 'Say exactly: later', background: true });
    expect(queued.status).toBe('queued');
    await expect.poll(async () => (await client.responses.retrieve(queued.id)).status, { timeout: 30_000 }).toBe('completed');
    expect((await client.responses.retrieve(queued.id)).output_text).toBe('later');
  });

  test('a conversation keeps what was said in it', async () => {
    const conversation = await client.conversations.create({
      items: [{ type: 'message', role: 'user', content: 'My name is Ada.' }],
      metadata: { topic: 'names' },
    });
    await client.responses.create({ model: 'built-in', input: 'Say exactly: noted', conversation: conversation.id });
    const items = await client.conversations.items.list(conversation.id, { order: 'asc' });
    expect(items.data.map(({ type }) => type)).toEqual(['message', 'message', 'message']);
    expect((await client.conversations.retrieve(conversation.id)).metadata).toEqual({ topic: 'names' });
    await client.conversations.delete(conversation.id);
    await expect(client.conversations.retrieve(conversation.id)).rejects.toMatchObject({ status: 404 });
  });
});

describe.each(['gpt-x', 'claude-x', 'resp-x'])('before the wire of %s', (model) => {
  test(
    proves(
      [
        'responses.answer-id',
        'responses.answer-created-at',
        'responses.answer-model',
        'responses.answer-usage',
        'responses.status-completed',
        'responses.output-array',
      ],
      'answers with text and usage',
    ),
    async () => {
      upstream.script(ok());
      const { status, body } = await create({ model, input: 'one two three' });
      expect(status).toBe(200);
      expect(body).toMatchObject({ object: 'response', status: 'completed', model, usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 } });
      expect(body.id).toMatch(/^resp_\w{22}$/);
      expect(textOf(body)).toBe('You said: one two three');
    },
  );

  test('streams every event in order, numbered, with ids that stay', async () => {
    upstream.script(ok());
    const { frames, text } = await streamed({ model, input: 'one two three' });
    const types = frames.map(({ type }) => type);
    expect(types.filter((type) => type !== 'response.output_text.delta')).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(frames.map((frame) => frame.sequence_number)).toEqual(frames.map((_, at) => at));
    expect(new Set(frames.flatMap(({ response }) => response?.id ?? [])).size).toBe(1);
    expect(new Set(frames.flatMap(({ item, item_id }) => item?.id ?? item_id ?? [])).size).toBe(1);
    expect(frames.map(({ delta }) => delta ?? '').join('')).toBe('You said: one two three');
    expect(text.endsWith('\n\ndata: [DONE]\n\n')).toBe(true);
  });

  test('what was streamed is kept before its end is sent, and read again as it was', async () => {
    upstream.script(thinking('It says three words.'));
    const { frames } = await streamed({ model, input: 'one two three' });
    const last = frames.at(-1)!.response!;
    expect((await read(last.id)).body).toEqual(last);
    const again = framesOf((await read0(last.id)).text);
    expect(again.at(-1)).toMatchObject({ type: 'response.completed', response: last });
  });

  test(proves('responses.output-reasoning', 'thoughts are reasoning items'), async () => {
    upstream.script(thinking('It says three words.'));
    const { body } = await create({ model, input: 'one two three' });
    expect(body.output.map(({ type }) => type)).toEqual(['reasoning', 'message']);
    expect(body.output[0]!.summary![0]!.text).not.toBe('');
    expect(body.output[0]!.encrypted_content).toBeUndefined();
  });

  test('parallel tool calls go up again with the next turn, in one message', async () => {
    upstream.script(
      toolCalls([
        { name: 'look', json: '{"at":"left"}' },
        { name: 'look', json: '{"at":"right"}' },
      ]),
      ok(),
    );
    const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } } }];
    const first = (await create({ model, input: 'look', tools })).body;
    const calls = first.output.filter(({ type }) => type === 'function_call');
    expect(calls.map((call) => JSON.parse(call.arguments!) as unknown)).toEqual([{ at: 'left' }, { at: 'right' }]);
    const input = calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'a wall' }));
    const second = await create({ model, input, tools, previous_response_id: first.id });
    expect(second.status).toBe(200);
    const said = sent(1).messages ?? sent(1).input;
    expect(said).toHaveLength({ 'claude-x': 3, 'gpt-x': 4, 'resp-x': 5 }[model]!);
    expect(JSON.stringify(said).match(/a wall/g)).toHaveLength(2);
  });

  test(
    proves(['responses.instructions-string', 'responses.instructions-prepended'], 'instructions stand first, and those of an earlier turn are not taken over'),
    async () => {
      upstream.script(ok(), ok());
      const first = (await create({ model, input: 'one', instructions: 'Be terse.' })).body;
      await create({ model, input: 'two', previous_response_id: first.id });
      expect(JSON.stringify(sent(0))).toContain('Be terse.');
      expect(JSON.stringify(sent(1))).not.toContain('Be terse.');
      expect((sent(1).messages ?? sent(1).input!).map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    },
  );

  test(proves(['responses.max-output-tokens-integer', 'responses.temperature-number'], 'max_output_tokens and temperature reach the model'), async () => {
    upstream.script(ok());
    const { body } = await create({ model, input: 'one two three four five', max_output_tokens: 2, temperature: 0.5 });
    expect(sent()).toMatchObject({ temperature: 0.5 });
    expect(body).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, temperature: 0.5 });
    expect(body.output.at(-1)!.status).toBe('incomplete');
  });

  test('a stream that breaks says error, then response.failed, and nothing that means success', async () => {
    upstream.script(cut({ afterEvents: 6, how: 'reset' }));
    const { frames, text } = await streamed({ model, input: 'one two three four five six seven eight' });
    expect(frames.slice(-2).map(({ type }) => type)).toEqual(['error', 'response.failed']);
    expect(frames.at(-2)!.error).toMatchObject({ type: 'server_error', code: 'upstream_error' });
    expect(frames.at(-1)!.response).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    expect(text).not.toContain('[DONE]');
    expect(text).not.toContain('response.completed');
    expect(frames.map((frame) => frame.sequence_number)).toEqual(frames.map((_, at) => at));
  });

  test('a refusal before anything was said is a status', async () => {
    upstream.script(tooMany());
    expect((await streamed0({ model, input: 'x' })).status).toBe(429);
    upstream.script(failing(500));
    expect((await create({ model })).status).toBe(502);
  });
});

const read0 = async (id: string, query = '?stream=true') => ({ text: await (await server.ask(`${path}/${id}${query}`)).text() });
const streamed0 = (more: object) => server.ask(path, { model: 'built-in', stream: true, ...more });

test('a signature that only its own wire understands comes back with the next turn', async () => {
  upstream.script(thinking('It says three words.'), ok(), ok());
  const asked = { model: 'claude-x', input: 'one', reasoning: { effort: 'low' }, include: ['reasoning.encrypted_content'] };
  const first = (await create(asked)).body;
  await create({ ...asked, input: 'two', previous_response_id: first.id });
  const stateless = [{ role: 'user', content: 'one' }, ...first.output, { role: 'user', content: 'two' }];
  await create({ ...asked, input: stateless, store: false });
  for (const at of [1, 2])
    expect(sent(at).messages[1]).toMatchObject({ role: 'assistant', content: [{ type: 'thinking', signature: expect.any(String) as string }, {}] });
  expect(sent(1).messages).toEqual(sent(2).messages);
});

test('a provider of this interface keeps nothing, and gets its encrypted thoughts back', async () => {
  upstream.script(thinking('Hm.'), ok());
  const first = (await create({ model: 'resp-x', input: 'one', instructions: 'Be terse.', text: { verbosity: 'low' }, reasoning: { summary: 'auto' } })).body;
  await create({ model: 'resp-x', input: 'two', previous_response_id: first.id });
  expect(sent()).toMatchObject({
    store: false,
    include: ['reasoning.encrypted_content'],
    instructions: 'Be terse.',
    text: { verbosity: 'low' },
    reasoning: { summary: 'auto' },
  });
  expect(sent(1).input).toMatchObject([{ role: 'user' }, { type: 'reasoning', encrypted_content: 'gAAAAAencrypted' }, { role: 'assistant' }, { role: 'user' }]);
  expect(sent(1)).not.toHaveProperty('previous_response_id');
});

test('a model that has no encrypted thoughts is asked without them, and that is remembered', async () => {
  const noEncrypted = badRequest({ message: 'Encrypted content is not supported with this model.' });
  upstream.script(
    altered('no encrypted content', noEncrypted, (answer) => ({
      ...answer,
      body: [JSON.stringify({ error: { type: 'invalid_request_error', param: 'include', message: 'no' } })],
      framing: 'chunked',
    })),
    ok(),
    ok(),
  );
  expect((await create({ model: 'resp-plain' })).status).toBe(200);
  expect((await create({ model: 'resp-plain' })).status).toBe(200);
  expect(upstream.requests.map(({ json: body }) => 'include' in (body as object))).toEqual([true, false, false]);
});

describe('refused with 400 that names the field', () => {
  test.each<[field: string, body: object]>([
    ['model', { model: undefined }],
    ['model', { model: 5 }],
    ['model', { model: 'a\u0000b' }],
    ['input', { input: undefined }],
    ['input', { input: 7 }],
    ['input', { input: [] }],
    ['input[0]', { input: ['text'] }],
    ['input[0].type', { input: [{ type: 7, text: 'x' }] }],
    ['input[0].role', { input: [{ role: 'robot', content: 'x' }] }],
    ['input[0].role', { input: [{ type: 'message', role: 'tool', content: 'x' }] }],
    ['input[0].content', { input: [{ role: 'user' }] }],
    ['input[0].content[0].type', { input: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] }],
    ['input[0].content[0].image_url', { input: [{ role: 'user', content: [{ type: 'input_image' }] }] }],
    ['input[0].content[0].image_url', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'file:///etc/passwd' }] }] }],
    ['input[0].call_id', { input: [{ type: 'function_call_output', call_id: 'call_1', output: 'x' }] }],
    ['input[0].call_id', { input: [{ type: 'function_call_output', output: 'x' }] }],
    ['tools[0].type', { tools: [{ name: 'x' }] }],
    ['tools[0].name', { tools: [{ type: 'function', function: { name: 'x' } }] }],
    ['tools[0].parameters.type', { tools: [{ type: 'function', name: 'x', parameters: { type: 'array' } }] }],
    ['tools', { tools: {} }],
    ['tool_choice', { tool_choice: 'required' }],
    ['tool_choice.name', { tools: [{ type: 'function', name: 'x' }], tool_choice: { type: 'function', name: 'y' } }],
    ['tool_choice.mode', { tools: [{ type: 'function', name: 'x' }], tool_choice: { type: 'allowed_tools', tools: [{ type: 'function', name: 'x' }] } }],
    ['tool_choice.type', { tools: [{ type: 'function', name: 'x' }], tool_choice: { type: 'web_search' } }],
    ['temperature', { temperature: 2.1 }],
    ['temperature', { temperature: '1' }],
    ['max_output_tokens', { max_output_tokens: 0 }],
    ['max_output_tokens', { max_output_tokens: 1.5 }],
    ['stream', { stream: 'yes' }],
    ['reasoning.effort', { reasoning: { effort: 'extreme' } }],
    ['reasoning', { reasoning: 'high' }],
    ['text.format.name', { text: { format: { type: 'json_schema', schema: {} } } }],
    ['text.format.type', { text: { format: { type: 'xml' } } }],
    ['metadata', { metadata: 'x' }],
    ['metadata', { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`k${at}`, 'v'])) }],
    ['metadata', { metadata: { ['k'.repeat(65)]: 'v' } }],
    ['metadata.k', { metadata: { k: 'v'.repeat(513) } }],
    ['metadata.k', { metadata: { k: { l: ['v'.repeat(300), { m: 'v'.repeat(200) }] } } }],
    ['background', { background: true, store: false }],
    ['previous_response_id', { previous_response_id: 'resp_x', conversation: 'conv_x' }],
  ])(
    proves(
      [
        'responses.400-format',
        'responses.model-required',
        'responses.model-string',
        'responses.input-required',
        'responses.temperature-range',
        'responses.tools-array',
        'responses.stream-boolean',
        'responses.reasoning-object',
        'responses.metadata-object',
        'responses.400-missing',
      ],
      '%s in %j',
    ),
    async (field, body) => {
      const { status, body: answer } = await create(body);
      expect({ status, param: answer.error?.param, type: answer.error?.type }).toEqual({ status: 400, param: field, type: 'invalid_request_error' });
    },
  );

  test(proves('responses.401', 'no key is 401, an unknown model 404'), async () => {
    expect((await create({}, { headers: { authorization: 'Bearer nobody' } })).status).toBe(401);
    const { status, body } = await create({ model: 'no-such-model' });
    expect({ status, code: body.error?.code, param: body.error?.param }).toEqual({ status: 404, code: 'model_not_found', param: 'model' });
    expect((await create({ model: 'no-such-model', background: true })).status).toBe(404);
  });

  test.each([
    ['previous_response_id', { previous_response_id: 'resp_0000000000000000000000' }],
    ['conversation', { conversation: 'conv_0000000000000000000000' }],
    ['previous_response_id', { previous_response_id: 'a\u0000b' }],
    ['conversation', { conversation: 'a\u0000b' }],
    ['conversation', { conversation: { id: '\u0000' } }],
    ['input[0].id', { input: [{ type: 'item_reference', id: 'msg_0000000000000000000000_0' }] }],
  ])('an unknown %s is 404 and names itself', async (field, more) => {
    const { status, body } = await create(more);
    expect({ status, param: body.error?.param }).toEqual({ status: 404, param: field });
  });

  test.each([
    ['GET', 'responses/%00'],
    ['DELETE', 'responses/a%00b'],
    ['POST', 'responses/%00/cancel'],
    ['GET', 'responses/%00/input_items'],
    ['GET', 'conversations/%00'],
    ['DELETE', 'conversations/a%00b'],
    ['GET', 'conversations/%00/items'],
  ])('%s %s is 404, although the database takes no such id', async (method, path) => {
    const answer = await server.ask(`/server/chatcompat/v1/${path}`, undefined, { method });
    const { error } = (await answer.json()) as { readonly error: { readonly code: string; readonly param: string } };
    expect([answer.status, error.code, error.param]).toEqual([404, 'not_found', `${path.split('s/', 1)[0]}_id`]);
  });
});

describe('what a request says', () => {
  test(proves('responses.metadata-attached', 'metadata is given back, and {} when there was none'), async () => {
    expect((await create({ metadata: { order: '17' } })).body.metadata).toEqual({ order: '17' });
    expect((await create({})).body.metadata).toEqual({});
  });

  test(proves('responses.metadata-object', 'metadata has values of any kind: they are given back as they are, and kept; a provider gets texts'), async () => {
    const metadata = { order: 17, paid: true, tags: ['a', { b: null }], none: null, note: 'x' };
    upstream.script(ok());
    const { status, body } = await create({ model: 'gpt-x', metadata });
    expect([status, body.metadata]).toEqual([200, metadata]);
    expect((await read(body.id)).body.metadata).toEqual(metadata);
    const { status: tooLong, body: refusal } = await create({ metadata: { k: ['v'.repeat(512)] } });
    expect([tooLong, refusal.error?.param]).toEqual([400, 'metadata.k']);
  });

  test.each([{ type: 'item_reference' }, { type: null }, {}])('an item may be named by its id, with %j, whoever made it of the two', async (as) => {
    upstream.script(thinking('It says three words.'), ok());
    const first = (await create({ model: 'claude-x', input: 'one' })).body;
    const listed = (await read(first.id, '/input_items')).body.data;
    const input = [...listed, ...first.output].map(({ id }) => ({ ...as, id }));
    expect((await create({ model: 'claude-x', input: [...input, { role: 'user', content: 'two' }] })).status).toBe(200);
    expect(sent(1).messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(JSON.stringify(sent(1))).toContain('signature');
  });

  test('an item is named once: a small request would else be made of as much text as it likes', async () => {
    upstream.script(ok());
    const { id } = (await create({ model: 'gpt-x', input: 'one' })).body;
    const reference = { type: 'item_reference', id: `msg_${id.slice(5)}_i0` };
    const { status, body } = await create({ model: 'gpt-x', input: [reference, { role: 'user', content: 'two' }, reference] });
    expect({ status, param: body.error?.param }).toEqual({ status: 400, param: 'input[2].id' });
    expect(upstream.requests).toHaveLength(1);
  });

  test.each([false, true])('what it goes on from counts as text of its own, in the background: %s', async (background) => {
    const long = 'a word and '.repeat(450_000);
    let first: Answer | undefined;
    const answered = async () => {
      const { status, body } = await create({ model: 'gpt-x', input: long });
      first = body;
      return status;
    };
    await expect.poll(answered, { timeout: 60_000 }).toBe(200); // a provider that has five megabytes to read on a busy machine may be given up
    const asked = upstream.requests.length;
    const second = await create({ model: 'gpt-x', input: long, previous_response_id: first!.id, background });
    expect({ status: second.status, code: second.body.error?.code }).toEqual({ status: 413, code: 'context_length_exceeded' });
    expect(upstream.requests).toHaveLength(asked);
  });

  test(
    proves(['responses.tool-web-search', 'responses.tool-custom', 'responses.tool-choice-auto'], 'tools of other types are carried, and said to be left out'),
    async () => {
      upstream.script(ok());
      const tools = [
        { type: 'web_search', external_web_access: true },
        { type: 'namespace', name: 'n', tools: [] },
        { type: 'custom', name: 'code', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } },
      ];
      const { status, headers } = await create({ model: 'gpt-x', tools, tool_choice: 'auto' });
      expect(status).toBe(200);
      expect(headers.get('x-dragoman-warnings')).toMatch(/web_search.*namespace/);
      expect(sent()['tools']).toEqual([
        { type: 'function', function: expect.objectContaining({ name: 'code', description: expect.stringContaining('start: "x"') as string }) as object },
      ]);
    },
  );

  test(proves('responses.reasoning-controls', 'an effort reaches a model that thinks; fields that the chat wire has too reach it'), async () => {
    upstream.script(ok(), ok());
    await create({ model: 'gpt-x', reasoning: { effort: 'high' }, prompt_cache_key: 'k', text: { verbosity: 'low' } });
    expect(sent()).toMatchObject({ reasoning_effort: 'high', prompt_cache_key: 'k', verbosity: 'low' });
    await create({ model: 'claude-x', reasoning: { effort: 'high' } });
    expect(sent(1)).toHaveProperty('thinking');
  });

  test.each(['none', 'required', { type: 'function', name: 'ping' }])(
    proves(['responses.tool-choice-none', 'responses.tool-choice-required', 'responses.tool-choice-object'], 'tool_choice %j is obeyed'),
    async (choice) => {
      const tools = ['look', 'ping'].map((name) => ({ type: 'function', name, parameters: { type: 'object', properties: {} } }));
      const { body } = await create({ input: 'hello', tools, tool_choice: choice });
      const called = body.output.flatMap((item) => item.name ?? []);
      if (choice === 'none') expect(called).toEqual([]);
      else if (choice === 'required') expect(called).toHaveLength(1);
      else expect(called).toEqual(['ping']);
    },
  );
});

describe('what a request leaves out', () => {
  test(proves('responses.stream-default', 'stream: the answer is one JSON object'), async () => {
    const answer = await server.ask(path, { model: 'built-in', input: 'Say exactly: hello' });
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  test(proves('responses.temperature-default', 'temperature: nothing is sent upstream, and the response says 1'), async () => {
    upstream.script(ok());
    const { body } = await create({ model: 'gpt-x' });
    expect(sent()).not.toHaveProperty('temperature');
    expect(body).toMatchObject({ temperature: 1 });
  });
});

test(proves('responses.max-output-tokens-limits', 'no more than max_output_tokens are generated'), async () => {
  const { body } = await create({ input: 'Say exactly: one two three four five six seven eight', max_output_tokens: 3 });
  expect(body.usage.output_tokens).toBeLessThanOrEqual(3);
  expect(body).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
});

test('a client that leaves in the middle ends the call upstream, and nothing is kept', async () => {
  upstream.script(hang());
  const leaving = new AbortController();
  const answer = server.ask(path, { model: 'gpt-x', input: 'x', stream: true }, { signal: leaving.signal });
  await upstream.arrived(0);
  leaving.abort();
  await expect(answer).rejects.toThrow();
  await upstream.closed(0);
});

describe('what is kept', () => {
  test('nothing, with store false', async () => {
    const { body } = await create({ store: false });
    expect(body.store).toBe(false);
    expect((await read(body.id)).status).toBe(404);
    expect((await create({ previous_response_id: body.id })).body.error).toMatchObject({ param: 'previous_response_id' });
  });

  test('ten turns of a conversation, each with all before it', async () => {
    let previous: string | undefined;
    for (let turn = 0; turn < 10; turn++) {
      upstream.script(ok());
      const { body } = await create({ model: 'claude-x', input: `turn ${turn}`, ...(previous ? { previous_response_id: previous } : {}) });
      previous = body.id;
    }
    expect(sent(9).messages).toHaveLength(19);
    expect(sent(9).messages[0]).toMatchObject({ content: 'turn 0' });
  });

  test('lists its input in pages', async () => {
    const { body } = await create({ input: Array.from({ length: 5 }, (_, at) => ({ role: 'user', content: `Say exactly: ${at}` })) });
    const first = (await read(body.id, '/input_items?order=asc&limit=3')).body;
    const rest = (await read(body.id, `/input_items?order=asc&limit=3&after=${first.data.at(-1)!.id}`)).body;
    expect([first.data.length, first.has_more, rest.data.length, rest.has_more]).toEqual([3, true, 2, false]);
    expect((await read(body.id, '/input_items?limit=0')).body.error).toMatchObject({ param: 'limit' });
    expect((await read(body.id, '/input_items?after=nobody')).body.error).toMatchObject({ param: 'after' });
  });

  test('that can be gone on from has up to 10,000 items before it; a longer one says that it is not stored', async () => {
    const input = Array.from({ length: 9999 }, (_, at) => ({ role: 'user', content: `item ${at}` }));
    const first = await create({ input });
    expect(first.body).toMatchObject({ store: true });
    expect((await read(first.body.id, '/input_items?limit=1')).body).toMatchObject({ has_more: true });
    const { body, headers } = await create({ previous_response_id: first.body.id });
    expect(body).toMatchObject({ status: 'completed', store: false });
    expect(headers.get('x-dragoman-warnings')).toContain('store: the response could not be kept');
    expect((await read(body.id)).status).toBe(404);
    const { frames } = await streamed({ previous_response_id: first.body.id });
    expect(frames.at(-1)!.response).toMatchObject({ status: 'completed', store: false });
  });

  test('goes when it is deleted, and what went on from it cannot be gone on with', async () => {
    const first = (await create({})).body;
    const second = (await create({ previous_response_id: first.id })).body;
    expect((await json(`${path}/${first.id}`, undefined, { method: 'DELETE' })).body).toEqual({ id: first.id, object: 'response', deleted: true });
    expect((await read(first.id)).status).toBe(404);
    expect((await create({ previous_response_id: second.id })).body.error).toMatchObject({ param: 'previous_response_id' });
    expect((await json(`${path}/${first.id}`, undefined, { method: 'DELETE' })).status).toBe(404);
  });

  test.each(['x', '..%2f..%2fetc', "resp_' or 1=1--", '%00', 'resp_'.repeat(500)])('an id like %s names nothing', async (id) => {
    expect([400, 404]).toContain((await server.ask(`${path}/${encodeURIComponent(id)}`)).status);
  });
});

describe('conversations', () => {
  const conversations = '/server/chatcompat/v1/conversations';
  test.each<[field: string, body: object]>([
    ['items[0].type', { items: [{ type: 7 }] }],
    ['items[0].role', { items: [{ role: 'robot', content: 'x' }] }],
    ['items[0].call_id', { items: [{ type: 'function_call_output', call_id: 'c', output: 'x' }] }],
    ['items', { items: Array.from({ length: 21 }, () => ({ role: 'user', content: 'x' })) }],
    ['metadata', { metadata: { ['k'.repeat(65)]: 'v' } }],
    ['metadata.k', { metadata: { k: 1 } }],
  ])('are refused with 400 that names %s', async (field, body) => {
    const answer = await json(conversations, body);
    expect({ status: answer.status, param: answer.body.error?.param }).toEqual({ status: 400, param: field });
  });

  test('are changed, listed in pages, and gone on with by any model', async () => {
    const { id } = (await json(conversations, { metadata: { a: '1' } })).body;
    expect((await json(`${conversations}/${id}`, { metadata: { b: '2' } })).body.metadata).toEqual({ b: '2' });
    const added = await json(`${conversations}/${id}/items`, { items: [{ role: 'user', content: 'My name is Ada.' }] });
    expect(added.body.data).toMatchObject([{ type: 'message', role: 'user' }]);
    upstream.script(ok(), ok());
    await create({ model: 'gpt-x', input: 'one', conversation: id });
    await create({ model: 'claude-x', input: 'two', conversation: { id } });
    expect(sent(1).messages).toHaveLength(3);
    expect(JSON.stringify(sent(1))).toContain('My name is Ada.');
    expect((await json(`${conversations}/${id}/items?limit=2`)).body).toMatchObject({ has_more: true, data: [{ role: 'assistant' }, { role: 'user' }] });
    expect((await read(added.body.data[0]!.id.replace(/^msg_(\w{22}).*/, 'resp_$1'))).status).toBe(404);
  });

  test('give and lose single items, and the model sees no more of those that were taken out', async () => {
    const { id } = (await json(conversations, { items: [{ role: 'user', content: 'My name is Ada.' }] })).body;
    upstream.script(ok({ text: 'Good day.' }), ok(), ok());
    await create({ model: 'gpt-x', input: 'My age is a secret.', conversation: id });
    const list = async () => (await json(`${conversations}/${id}/items?order=asc`)).body.data as readonly { readonly id: string }[];
    const [name, age, answer] = await list();
    for (const item of [name!, age!, answer!]) expect((await json(`${conversations}/${id}/items/${item.id}`)).body).toEqual(item);
    for (const item of [age!, answer!]) {
      const taken = await server.ask(`${conversations}/${id}/items/${item.id}`, undefined, { method: 'DELETE' });
      expect({ status: taken.status, body: await taken.json() }).toMatchObject({ status: 200, body: { id, object: 'conversation' } });
      expect((await json(`${conversations}/${id}/items/${item.id}`)).body.error?.param).toBe('item_id');
    }
    expect(await list()).toEqual([name]);
    await create({ model: 'gpt-x', input: 'Who am I?', conversation: id });
    expect(sent(1).messages).toHaveLength(2);
    expect(JSON.stringify(sent(1))).toMatch(/Ada.*Who am I/s);
    expect(JSON.stringify(sent(1))).not.toMatch(/secret|Good day/);
    expect((await server.ask(`${conversations}/${id}/items/${age!.id}`, undefined, { method: 'DELETE' })).status).toBe(404);
    expect((await server.ask(`${conversations}/conv_0000000000000000000000/items/${name!.id}`)).status).toBe(404);
  });

  test('of 10,000 items take no more, and are read and gone on from no longer than that', async () => {
    const { id } = (await json(conversations, {})).body;
    const items = (many: number) => ({ items: Array.from({ length: many }, (_, at) => ({ role: 'user', content: `item ${at}` })) });
    expect((await create({ input: items(9979).items, conversation: id })).status).toBe(200);
    expect((await json(`${conversations}/${id}/items`, items(19))).status).toBe(200);
    const more = await Promise.all([1, 2, 3].map(() => json(`${conversations}/${id}/items`, items(1))));
    expect(more.toSorted((some, other) => some.status - other.status).map(({ status, body }) => [status, body.error?.param])).toEqual([
      [200, undefined],
      ...[1, 2].map(() => [400, 'items']),
    ]);
    const refused = await create({ model: 'built-in', input: 'one', conversation: id });
    expect({ status: refused.status, param: refused.body.error?.param }).toEqual({ status: 400, param: 'conversation' });
    const page = (await json(`${conversations}/${id}/items?limit=100`)).body;
    expect(page).toMatchObject({ has_more: true });
    const [last] = page.data as readonly { readonly id: string }[];
    const taken = await Promise.all([1, 2, 3, 4].map(() => server.ask(`${conversations}/${id}/items/${last!.id}`, undefined, { method: 'DELETE' })));
    expect(taken.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([200, 404, 404, 404]);
    expect((await json(`${conversations}/${id}/items`, items(2))).status).toBe(400);
    upstream.script(ok());
    expect((await create({ model: 'gpt-x', input: 'the last', conversation: id })).status).toBe(200); // with its answer one too many
    expect((await json(`${conversations}/${id}/items?limit=1`)).body.data).toMatchObject([{ role: 'assistant' }]);
    expect((await create({ model: 'built-in', input: 'two', conversation: id })).body.error?.param).toBe('conversation');
  });

  test('keep all turns and items that are added at the same time, those of a turn together', async () => {
    const { id } = (await json(conversations, {})).body;
    const whole = async (text: string) => void (await create({ model: 'built-in', input: `Say exactly: ${text}`, conversation: id }));
    const inFrames = async (text: string) => void (await streamed({ model: 'built-in', input: `Say exactly: ${text}`, conversation: id }));
    const alone = async (text: string) => void (await json(`${conversations}/${id}/items`, { items: [{ role: 'user', content: `Say exactly: ${text}` }] }));
    const names = Array.from({ length: 6 }, (_, at) => [`whole ${at}`, `streamed ${at}`, `alone ${at}`] as const);
    await Promise.all(names.flatMap(([one, other, item]) => [whole(one), inFrames(other), alone(item)]));
    const last = { model: 'built-in', input: 'Say exactly: last', conversation: id };
    expect((await create(last)).status).toBe(200);
    const { data } = (await json(`${conversations}/${id}/items?limit=100&order=asc`)).body as unknown as {
      readonly data: readonly { readonly role: string; readonly content: readonly { readonly text: string }[] }[];
    };
    const said = data.map(({ role, content }) => `${role}: ${content[0]!.text}`);
    const turns = [...names.flatMap(([one, other]) => [one, other]), 'last'];
    expect(said).toHaveLength(2 * turns.length + names.length);
    for (const text of turns) expect(said[said.indexOf(`user: Say exactly: ${text}`) + 1]).toBe(`assistant: ${text}`);
    for (const [, , text] of names) expect(said).toContain(`user: Say exactly: ${text}`);
    expect(said.slice(-1)).toEqual(['assistant: last']);
  });
});

describe('work in the background', () => {
  test('is cancelled within 100 ms, upstream too', async () => {
    const took = await quickest(100, async () => {
      upstream.reset();
      upstream.script(hang());
      const { body } = await create({ model: 'gpt-x', background: true });
      await upstream.arrived(0);
      const at = performance.now();
      const cancelled = await json(`${path}/${body.id}/cancel`, {});
      expect(cancelled.body.status).toBe('cancelled');
      const closed = await upstream.closed(0);
      expect((await read(body.id)).body.status).toBe('cancelled');
      expect((await json(`${path}/${body.id}/cancel`, {})).body.status).toBe('cancelled');
      return closed.closedEarlyAt! - at;
    });
    expect(took).toBeLessThan(100);
  });

  test('that is cancelled can still be streamed: what was said, and the end of the stream', async () => {
    upstream.script(pace(500));
    const made = await create({ model: 'gpt-x', background: true, input: 'one two three four five six seven eight nine ten' });
    const id: string = made.body.id;
    await expect.poll(async () => (await read(id)).body.status, { timeout: 30_000 }).toBe('in_progress');
    const cancelled = await json(`${path}/${id}/cancel`, {});
    expect(cancelled.body.status).toBe('cancelled');
    const { text } = await read0(id, '?stream=true');
    expect(framesOf(text).map(({ type }) => type)).toEqual(expect.arrayContaining(['response.created', 'response.in_progress', 'response.output_text.delta']));
    expect(text).not.toContain('response.completed');
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test('that fails says why', async () => {
    upstream.script(failing(500), failing(500), failing(500));
    const { body } = await create({ model: 'gpt-x', background: true });
    await expect.poll(async () => (await read(body.id)).body.status, { timeout: 30_000 }).toBe('failed');
    expect((await read(body.id)).body.error).toMatchObject({ code: 'server_error' });
  });

  test.each<[code: string, failure: Behaviour]>([
    ['invalid_prompt', badRequest({ message: "Invalid 'input'." })],
    ['rate_limit_exceeded', tooMany()],
    ['server_error', failing(500)],
  ])('has an error of the closed list of OpenAI, also in its stream: %s', async (code, failure) => {
    upstream.script(always(failure));
    const { frames } = await streamed({ model: 'gpt-x', background: true });
    const { id, error } = frames.at(-1)!.response!;
    expect(error).toMatchObject({ code });
    expect((await read(id)).body.error).toEqual(error);
    const again = framesOf((await read0(id, '?stream=true')).text);
    expect(again.at(-1)).toEqual(frames.at(-1));
  });

  test('is streamed, and its stream is gone on with from any frame', async () => {
    upstream.script(ok());
    const { frames } = await streamed({ model: 'gpt-x', background: true, input: 'one two three four' });
    const id = frames[0]!.response!.id;
    expect(frames.at(-1)).toMatchObject({ type: 'response.completed' });
    const rest = framesOf((await read0(id, '?stream=true&starting_after=4')).text);
    expect(rest).toEqual(frames.slice(5));
    expect((await read(id, '?stream=true&starting_after=-2')).status).toBe(400);
  });

  test('fails in the middle of a message with the number that its stream is gone on with from', async () => {
    upstream.script(cut({ afterEvents: 3 }));
    const { frames } = await streamed({ model: 'gpt-x', background: true, input: 'one two three four' });
    const [last, id] = [frames.at(-1)!, frames[0]!.response!.id];
    expect(last.type).toBe('response.failed');
    const rest = async (after: number) => framesOf(await (await server.ask(`${path}/${id}?stream=true&starting_after=${after}`)).text());
    expect(await rest(last.sequence_number - 1)).toEqual([last]);
    for (const more of [0, 1, 2, 3]) expect(await rest(last.sequence_number + more)).toEqual([]);
  });

  test('cannot be cancelled where there is none', async () => {
    const { body } = await create({});
    expect((await json(`${path}/${body.id}/cancel`, {})).status).toBe(400);
  });
});

const requests = new URL('../../../src/dialects/openai/responses/recordings/requests.json', import.meta.url);
interface Captured {
  readonly name: string;
  readonly body: { readonly stream?: boolean; readonly previous_response_id?: string; readonly text?: { readonly format?: { readonly strict?: boolean } } };
}

describe.each(['built-in', 'gpt-x', 'claude-x', 'resp-x'])('answered by %s', (model) => {
  test.each(JSON.parse(readFileSync(requests, 'utf8')) as Captured[])(
    proves('responses.input-array', 'a request of $name gets what its client can read'),
    async ({ body }) => {
      if (body.text?.format?.strict) upstream.script(always(ok({ text: '{"city":"Paris","n":2}' }))); // it is held against the schema
      const answer = await server.ask(path, { ...body, model });
      if (body.previous_response_id) return expect(answer.status).toBe(404); // of a conversation that was elsewhere
      expect(answer.status).toBe(200);
      const text = await answer.text();
      const last = body.stream ? framesOf(text).at(-1)!.response! : (JSON.parse(text) as Answer);
      expect(last.status).toBe('completed');
      for (const item of last.output) expect(item.id).toMatch(/^(msg|rs|fc|ctc)_/);
      return undefined;
    },
  );
});

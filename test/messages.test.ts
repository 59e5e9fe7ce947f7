import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  always,
  badKey,
  badRequest,
  cut,
  drop,
  errorEvent,
  failing,
  hang,
  noFinish,
  notFound,
  ok,
  on,
  pace,
  refusal,
  replay,
  secretWord,
  slowThinker,
  startUpstream,
  thinking,
  toolCalls,
  tooMany,
  type Behaviour,
  type Upstream,
} from './fakes/upstream/index.ts';
import { chat, openHouse, providerKey, type House } from './house.ts';

const messages = '/server/messages/v1/messages';
const secondKey = 'sk-second';

let upstream: Upstream;
let house: House;

beforeAll(async () => {
  upstream = await startUpstream();
  house = await openHouse({
    yaml: `
providers:
  claude: { dialect: anthropic-messages, baseUrl: "${upstream.url}", apiKeys: ["${providerKey}", "${secondKey}"] }
  spare: { dialect: anthropic-messages, baseUrl: "${upstream.url}/v1", apiKeys: ["sk-spare"], headers: { x-fake: spare } }
  gpt: { dialect: openai-chat, baseUrl: "${upstream.url}/v1", apiKeys: ["sk-gpt"] }
models:
  claude-x: { targets: [{ provider: claude }], limits: { context: 200000, output: 64000 } }
  claude-y: { targets: [{ provider: claude, model: claude-up }, { provider: spare, model: claude-up }] }
  claude-gone: { targets: [{ provider: claude }] }
  gpt-x: { targets: [{ provider: gpt }] }
  gpt-y: { targets: [{ provider: gpt }] }
limits: { holdHeadersSeconds: 1, hangSeconds: { stream: 1, whole: 1 }, firstByteSeconds: 2, streamIdleSeconds: 1 }
routing: { cooldownSeconds: 0, retryBudget: 1 }
`,
  });
});
afterAll(async () => {
  await house.close();
  await upstream.close();
});
afterEach(() => upstream.reset());

const request = (content: unknown = 'one two three', more: object = {}) => ({
  model: 'claude-x',
  max_tokens: 1000,
  messages: [{ role: 'user', content }],
  ...more,
});
const look = { name: 'look', input_schema: { type: 'object', properties: { at: { type: 'string' } } } };

interface Message {
  readonly type: string;
  readonly content: readonly { readonly type: string; readonly text?: string; readonly thinking?: string; readonly name?: string; readonly input?: unknown }[];
  readonly stop_reason: string;
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number };
  readonly error?: { readonly type: string; readonly message: string };
}

async function whole(body: object, init?: RequestInit) {
  const answer = await house.ask(messages, body, init);
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, text, message: JSON.parse(text) as Message };
}

interface Frame {
  readonly type: string;
  readonly message?: { readonly id: string };
  readonly delta?: { readonly text?: string; readonly thinking?: string; readonly partial_json?: string; readonly stop_reason?: string };
  readonly error?: { readonly type: string };
}

/** A stream as the client gets it. Every frame has an `event:` line that says its type: the SDKs pass over those without. */
async function streamed(body: object) {
  const answer = await house.ask(messages, { ...body, stream: true });
  const text = await answer.text();
  const frames = text
    .split('\n\n')
    .filter((frame) => frame !== '' && !frame.startsWith(':'))
    .map((frame) => {
      const [, type, data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(frame) ?? expect.fail(`no frame: ${frame}`);
      const value = JSON.parse(data) as Frame;
      expect(value.type).toBe(type);
      return value;
    });
  const joined = (name: 'text' | 'thinking' | 'partial_json') => frames.map(({ delta }) => delta?.[name] ?? '').join('');
  return { status: answer.status, headers: answer.headers, text, frames, types: frames.map(({ type }) => type), joined };
}

/** What went upstream. */
const sent = (at = 0) => upstream.requests[at]?.json as Record<string, unknown>;

describe.each(['claude-x', 'gpt-x'])('the messages interface before %s', (model) => {
  test('answers with text, usage and an end', async () => {
    upstream.script(ok());
    const { status, headers, message } = await whole(request(undefined, { model }));
    expect(status).toBe(200);
    expect(message).toMatchObject({
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text: 'You said: one two three' }],
      stop_reason: 'end_turn',
      usage: { output_tokens: 5 },
    });
    expect(headers.get('request-id')).toBe(headers.get('x-request-id'));
    expect(headers.get('x-dragoman-provider')).toBe(model === 'claude-x' ? 'claude' : 'gpt');
  });

  test('streams the same', async () => {
    upstream.script(ok());
    const { status, types, joined, frames } = await streamed(request(undefined, { model }));
    expect(status).toBe(200);
    expect(types.filter((type) => type !== 'content_block_delta')).toEqual([
      'message_start',
      'content_block_start',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
    expect(joined('text')).toBe('You said: one two three');
    expect(frames.at(-2)).toMatchObject({ delta: { stop_reason: 'end_turn' }, usage: { input_tokens: 3, output_tokens: 5 } });
  });

  test('gives thoughts in blocks of their own', async () => {
    upstream.script(always(thinking('hm, yes', 'Done.')));
    const { message } = await whole(request(undefined, { model }));
    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: 'hm, yes' },
      { type: 'text', text: 'Done.' },
    ]);
    expect((await streamed(request(undefined, { model }))).joined('thinking')).toBe('hm, yes');
  });

  test('gives parallel tool calls, whole and in pieces, nothing dropped and nothing doubled', async () => {
    const tools = [
      { name: 'look', json: '{"at":"the cat"}' },
      { name: 'listen', json: '{"to":[1,2,3]}' },
    ];
    upstream.script(always(toolCalls(tools)));
    const asked = request(undefined, { model, tools: [look, { ...look, name: 'listen' }] });
    const { message } = await whole(asked);
    expect(message).toMatchObject({
      stop_reason: 'tool_use',
      content: [
        { type: 'tool_use', name: 'look', input: { at: 'the cat' } },
        { type: 'tool_use', name: 'listen', input: { to: [1, 2, 3] } },
      ],
    });
    const { joined, frames } = await streamed(asked);
    expect(joined('partial_json')).toBe('{"at":"the cat"}{"to":[1,2,3]}');
    expect(frames.at(-2)?.delta?.stop_reason).toBe('tool_use');
  });

  test('says that the limit ended it', async () => {
    upstream.script(ok());
    expect((await whole(request(undefined, { model, max_tokens: 2 }))).message).toMatchObject({ stop_reason: 'max_tokens', content: [{ text: 'You said: ' }] });
  });

  test.each<[string, () => Behaviour]>([
    ['is cut', () => cut({ afterEvents: 6 })],
    ['ends without a stop reason', noFinish],
    ['says that it failed', () => pace(5, errorEvent({ afterEvents: 6 }))],
  ])('a stream that %s ends with an error event and no message_stop', async (_, behaviour) => {
    upstream.script(behaviour());
    const { status, types, text } = await streamed(request('one two three four five six', { model }));
    expect(status).toBe(200);
    expect(types[0]).toBe('message_start');
    expect(types.at(-1)).toBe('error');
    expect(types).not.toContain('message_stop');
    expect(text).not.toContain(secretWord);
  });
});

describe('a refusal', () => {
  test.each<[string, () => Behaviour, number, string]>([
    ['429', () => tooMany({ retryAfter: 7 }), 429, 'rate_limit_error'],
    ['529', () => failing(529), 503, 'overloaded_error'],
    ['500', () => failing(500), 502, 'api_error'],
    ['401', badKey, 502, 'api_error'],
    ['403', () => refusal(403), 502, 'api_error'],
    ['404 that names the model', () => notFound('model'), 404, 'not_found_error'],
    ['400', () => badRequest({ message: 'max_tokens: sk-secret' }), 400, 'invalid_request_error'],
    ['overload inside a 200', () => errorEvent({ status: 529 }), 503, 'overloaded_error'],
    ['nothing', drop, 503, 'overloaded_error'],
    ['silence', hang, 504, 'timeout_error'],
  ])('of the provider with %s is one in the words of this interface', async (what, behaviour, status, type) => {
    upstream.script(always(behaviour()));
    const model = what.startsWith('404') ? 'claude-gone' : 'claude-x'; // a model that a provider lacks is not asked for again soon
    // a stream that waits for so long has its head out already
    for (const stream of what === 'silence' ? [false] : [false, true]) {
      const { status: got, headers, message, text } = await whole(request(undefined, { stream, model }));
      expect([got, message.type, message.error?.type]).toEqual([status, 'error', type]);
      expect(message).toMatchObject({ request_id: headers.get('x-request-id') });
      expect(headers.get('request-id')).toBe(headers.get('x-request-id'));
      expect(text).not.toMatch(/sk-|canary|upstream/);
      expect(text).not.toContain(secretWord);
    }
  });

  test.each<[object, string]>([
    [{ max_tokens: undefined }, 'max_tokens'],
    [{ messages: [] }, 'messages'],
    [{ temperature: 2 }, 'temperature'],
    [{ model: 'nobody' }, 'model'],
  ])('of ours for %j names the field', async (more, field) => {
    const { message, status } = await whole(request(undefined, more));
    expect(status).toBe(field === 'model' ? 404 : 400);
    expect(message.error?.message).toContain(field);
    expect(upstream.requests).toHaveLength(0);
  });

  test('of an unknown key, address and method is in the words of this interface', async () => {
    const answers = [
      await whole(request(), { headers: { authorization: 'Bearer wrong' } }),
      await whole(request(), { headers: { authorization: '', 'x-api-key': 'wrong' } }),
    ];
    for (const { status, message } of answers) expect([status, message.error?.type]).toEqual([401, 'authentication_error']);
    const nowhere = await house.ask('/server/messages/v1/else');
    expect([nowhere.status, ((await nowhere.json()) as Message).error?.type]).toEqual([404, 'not_found_error']);
    const wrong = await house.ask(messages);
    expect([wrong.status, wrong.headers.get('allow'), ((await wrong.json()) as Message).error?.type]).toEqual([405, 'POST', 'invalid_request_error']);
  });
});

describe('a provider of this wire', () => {
  test('is asked with its key, the version and the betas of the client, and gets the request as it came', async () => {
    upstream.script(ok());
    const asked = request([{ type: 'text', text: 'hi', cache_control: { type: 'ephemeral' } }], {
      metadata: { user_id: 'u' },
      field_of_tomorrow: [1],
      thinking: { type: 'adaptive' },
    });
    const { headers } = await whole(asked, { headers: { 'anthropic-beta': 'files-api-2025-04-14', 'anthropic-version': '2099-01-01', 'x-other': 'mine' } });
    expect(sent()).toEqual(asked);
    expect(upstream.requests[0]).toMatchObject({
      path: '/v1/messages',
      key: expect.stringMatching(/^sk-(provider|second)/) as string,
      headers: { 'anthropic-beta': 'files-api-2025-04-14', 'anthropic-version': '2023-06-01' },
    });
    expect(upstream.requests[0]?.headers).not.toHaveProperty('x-other');
    expect(upstream.requests[0]?.headers).not.toHaveProperty('authorization');
    expect(headers.get('x-dragoman-warnings')).toBeNull();
  });

  test('is asked with its next key when one is refused', async () => {
    upstream.script(always(on({ key: secondKey }, badKey())), always(on({ key: providerKey }, ok())));
    for (let at = 0; at < 4; at++) expect((await whole(request())).status).toBe(200);
    expect(new Set(upstream.requests.map(({ key }) => key))).toEqual(new Set([providerKey, secondKey]));
  });

  test.each<[string, () => Behaviour]>([
    ['429', tooMany],
    ['529', () => failing(529)],
    ['overload inside a 200', () => errorEvent({ status: 529 })],
    ['overload after message_start', () => errorEvent({ status: 529, afterEvents: 2 })],
  ])('that answers %s is left for the next one before it has spoken', async (_, behaviour) => {
    for (const stream of [true, false]) {
      upstream.reset();
      upstream.script(behaviour(), on({ fake: 'spare' }, ok()));
      const asked = request(undefined, { model: 'claude-y' });
      const { headers, text } = stream ? await streamed(asked) : await whole(asked);
      expect([headers.get('x-dragoman-provider'), headers.get('x-dragoman-attempts')]).toEqual(['spare', '2']);
      expect(text.match(/"type":"message_start"/g)?.length ?? 0).toBe(stream ? 1 : 0);
      expect(upstream.requests.map(({ path, model }) => `${path} ${model}`)).toEqual(['/v1/messages claude-up', '/v1/messages claude-up']);
    }
  });

  test('is asked without a temperature where the model takes none, and that is remembered', async () => {
    upstream.script(badRequest({ message: '`temperature` is deprecated for this model.' }), always(ok()));
    const { headers, status } = await whole(request(undefined, { temperature: 0.5, model: 'claude-y' }));
    expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, 'temperature: this model does not take it.']);
    await whole(request(undefined, { temperature: 0.5, model: 'claude-y' }));
    expect(upstream.requests.map(({ json }) => 'temperature' in (json as object))).toEqual([true, false, false]);
  });

  test('that is silent for long has the client hear a comment', async () => {
    upstream.script(slowThinker(1.5));
    const { text, types } = await streamed(request());
    expect(text.startsWith(': ')).toBe(true);
    expect(types.at(-1)).toBe('message_stop');
  });

  test('is left at once when the client leaves', async () => {
    upstream.script(pace(200));
    const leaving = new AbortController();
    const answer = await house.ask(messages, request('one two three four five six', { stream: true }), { signal: leaving.signal });
    await answer.body!.getReader().read();
    leaving.abort();
    expect((await upstream.closed(0)).closedEarlyAt).toBeDefined();
  });

  test.each(['text', 'tool-no-args', 'web-search-tool.1', 'clear-thinking.1', 'refusal', 'json-tool.1'])(
    '%s, as it was recorded, reaches the client event for event',
    async (name) => {
      const lines = readFileSync(new URL(`../src/dialects/anthropic-messages/recordings/vercel/${name}.chunks.txt`, import.meta.url), 'utf8')
        .trim()
        .split('\n');
      upstream.script(replay(lines, { last: false }));
      const { frames, types } = await streamed(request());
      const recorded = lines.map((line) => JSON.parse(line) as Frame);
      const said = (list: readonly Frame[], field: 'text' | 'thinking' | 'partial_json') => list.map(({ delta }) => delta?.[field] ?? '').join('');
      if (name !== 'web-search-tool.1') expect(said(frames, 'partial_json') || '{}').toBe(said(recorded, 'partial_json') || '{}');
      for (const field of ['text', 'thinking'] as const) expect(said(frames, field)).toBe(said(recorded, field));
      expect(types.filter((type) => type === 'content_block_start').length).toBe(recorded.filter(({ type }) => type === 'content_block_start').length);
      expect(frames[0]?.message?.id).toBe(recorded[0]?.message?.id);
      expect(frames.at(-2)?.delta).toEqual(recorded.at(-2)?.delta);
    },
  );
});

describe('a provider of the chat wire', () => {
  test('gets system, tools, images and results of tools in its own words, and what it cannot get is said', async () => {
    upstream.script(ok());
    const { headers } = await whole({
      model: 'gpt-x',
      max_tokens: 4000,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      stop_sequences: ['END'],
      tools: [look],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      thinking: { type: 'enabled', budget_tokens: 2048 },
      top_k: 5,
      metadata: { user_id: 'u' },
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See?' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBO' } },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'x', signature: 'y' },
            { type: 'redacted_thinking', data: 'z' },
            { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'it' } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'toolu_1', content: 'a cat' },
            { type: 'text', text: 'And now?' },
          ],
        },
      ],
    });
    expect(sent()).toEqual({
      model: 'gpt-x',
      max_completion_tokens: 4000,
      reasoning_effort: 'low',
      stop: ['END'],
      tools: [{ type: 'function', function: { name: 'look', parameters: look.input_schema } }],
      tool_choice: 'required',
      parallel_tool_calls: false,
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } },
          ],
        },
        { role: 'assistant', content: null, tool_calls: [{ id: 'toolu_1', type: 'function', function: { name: 'look', arguments: '{"at":"it"}' } }] },
        { role: 'tool', tool_call_id: 'toolu_1', content: 'a cat' },
        { role: 'user', content: 'And now?' },
      ],
    });
    const warned = (headers.get('x-dragoman-warnings') ?? '').split('; ').map((line) => line.split(':', 1).join());
    expect(warned.toSorted()).toEqual(['cache_control', 'metadata', 'redacted_thinking', 'thoughts', 'topK']);
  });
});

test('a model of the chat wire that knows no effort is asked without, and that is said', async () => {
  upstream.script(badRequest({ message: 'Unrecognized request argument supplied: reasoning_effort' }), ok());
  const { status, headers } = await whole(request(undefined, { model: 'gpt-y', thinking: { type: 'disabled' } }));
  expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, 'reasoning_effort: this model does not take it.']);
  expect(upstream.requests.map(({ json }) => (json as { reasoning_effort?: string }).reasoning_effort)).toEqual(['none', undefined]);
});

describe('a chat completion of a provider of this wire', () => {
  const ask = (more: object = {}) => house.ask(chat, { model: 'claude-x', messages: [{ role: 'user', content: 'one two three' }], ...more });
  interface Completion {
    readonly choices: readonly {
      readonly message: { readonly content: string; readonly reasoning_content?: string; readonly tool_calls?: readonly object[] };
      readonly finish_reason: string;
    }[];
    readonly usage: object;
  }
  const completion = async (more: object = {}) => (await (await ask(more)).json()) as Completion;

  test('has text, thoughts, tool calls and usage', async () => {
    upstream.script(
      ok({
        thought: 'hm',
        text: 'Yes.',
        tools: [
          { name: 'look', json: '{"at":"it"}' },
          { name: 'look', json: '{}' },
        ],
      }),
    );
    expect(await completion()).toMatchObject({
      model: 'claude-x',
      choices: [
        {
          finish_reason: 'tool_calls',
          message: {
            content: 'Yes.',
            reasoning_content: 'hm',
            tool_calls: [{ function: { name: 'look', arguments: '{"at":"it"}' } }, { function: { name: 'look', arguments: '{}' } }],
          },
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    });
  });

  test('streams tool calls piece by piece, and usage where it was asked for', async () => {
    upstream.script(
      toolCalls([
        { name: 'look', json: '{"at":"the cat"}' },
        { name: 'look', json: '{"at":"it"}' },
      ]),
    );
    const text = await (await ask({ stream: true, stream_options: { include_usage: true } })).text();
    const chunks = text.split('\n\n').flatMap((frame) => (frame.startsWith('data: {') ? [JSON.parse(frame.slice(6)) as Chunk] : []));
    const calls = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
    const json = (index: number) => calls.map((call) => (call.index === index ? call.function.arguments : '')).join('');
    expect([json(0), json(1)]).toEqual(['{"at":"the cat"}', '{"at":"it"}']);
    expect(calls.filter(({ id }) => id !== undefined)).toHaveLength(2);
    expect(chunks.at(-1)?.usage).toEqual({ prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, prompt_tokens_details: { cached_tokens: 0 } });
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });
  interface Chunk {
    readonly choices: readonly {
      readonly delta: { readonly tool_calls?: readonly { readonly index: number; readonly id?: string; readonly function: { readonly arguments: string } }[] };
    }[];
    readonly usage?: object;
  }

  test('asks with the limit of the model, and in the words of the wire', async () => {
    upstream.script(ok());
    const answer = await ask({
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See?' },
            { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
          ],
        },
        { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at": "it"}' } }] },
        { role: 'tool', tool_call_id: 'call_1', content: 'a cat' },
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'And now?' },
      ],
      tools: [{ type: 'function', function: { name: 'look', parameters: look.input_schema } }],
      tool_choice: 'required',
      parallel_tool_calls: false,
      stop: ['END'],
      seed: 7,
      user: 'u',
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } },
    });
    expect(answer.status).toBe(200);
    expect(sent()).toEqual({
      model: 'claude-x',
      max_tokens: 64_000,
      system: [
        { type: 'text', text: 'Be brief.' },
        { type: 'text', text: 'Be kind.' },
      ],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See?' },
            { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
          ],
        },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'look', input: { at: 'it' } }] },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'call_1', content: 'a cat' },
            { type: 'text', text: 'And now?' },
          ],
        },
      ],
      tools: [{ name: 'look', input_schema: look.input_schema }],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      stop_sequences: ['END'],
      output_config: { format: { type: 'json_schema', schema: { type: 'object' } } },
    });
    expect(answer.headers.get('x-dragoman-warnings')).toMatch(/user: .*system: .*seed: /);
  });

  test('is refused where it is strict and something would be lost', async () => {
    const answer = await house.ask(
      chat,
      { model: 'claude-x', messages: [{ role: 'user', content: 'x' }], seed: 7 },
      { headers: { 'x-dragoman-strict': 'true' } },
    );
    expect([answer.status, upstream.requests.length]).toEqual([400, 0]);
  });

  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['refusal', 'content_filter'],
  ])('that ended with %s ended with %s', async (raw, word) => {
    upstream.script(ok({ finish: raw }));
    expect((await completion()).choices[0]?.finish_reason).toBe(word);
  });

  test('thinks by budget, or by effort where the model takes no budget', async () => {
    upstream.script(ok(), badRequest({ message: '"thinking.type.enabled" is not supported for this model.' }), always(ok()));
    for (let at = 0; at < 3; at++)
      expect((await ask({ model: at === 0 ? 'claude-x' : 'claude-y', reasoning_effort: 'low', max_tokens: 3000 })).status).toBe(200);
    const thinking = upstream.requests.map(({ json }) => (json as { thinking: object }).thinking);
    expect(thinking).toEqual([{ type: 'enabled', budget_tokens: 2048 }, { type: 'enabled', budget_tokens: 2048 }, { type: 'adaptive' }, { type: 'adaptive' }]);
    expect(sent(3)).toMatchObject({ output_config: { effort: 'low' } });
  });
});

describe('the built-in model behind the messages interface', () => {
  const built = (content: unknown, more: object = {}) => whole(request(content, { model: 'built-in', ...more }));

  test('calls a tool and answers with its result', async () => {
    const asked = { tools: [look], tool_choice: { type: 'tool', name: 'look' } };
    const { message } = await built('Look at the cat.', asked);
    expect(message).toMatchObject({ stop_reason: 'tool_use', content: [{ type: 'tool_use', name: 'look' }] });
    const [use] = message.content as readonly (Message['content'][number] & { readonly id: string })[];
    const loop = [
      { role: 'user', content: 'Look at the cat.' },
      { role: 'assistant', content: message.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: use?.id, content: 'It sleeps.' }] },
    ];
    expect((await built('', { ...asked, tool_choice: undefined, messages: loop })).message.content[0]?.text).toContain('It sleeps.');
  });

  test('thinks when it is told to, and sees what kind of image it is shown', async () => {
    const { message } = await built('Say exactly: yes', { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 2000 });
    expect(message.content.map(({ type }) => type)).toEqual(['thinking', 'text']);
    const gif = 'R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==';
    const image = await built([
      { type: 'text', text: 'What is this?' },
      { type: 'image', source: { type: 'base64', media_type: 'image/gif', data: gif } },
    ]);
    expect(image.message.content[0]?.text).toMatch(/gif/i);
  });

  test('counts a prompt as it bills it', async () => {
    const asked = { model: 'built-in', system: 'Be brief.', tools: [look], messages: [{ role: 'user', content: 'Grüße an alle 🐉' }] };
    const counted = (await (await house.ask(`${messages}/count_tokens`, asked)).json()) as { input_tokens: number };
    const { message } = await built('', asked);
    expect(counted).toEqual({ input_tokens: message.usage.input_tokens });
    expect((await house.ask(`${messages}/count_tokens`, { ...asked, model: 'nobody' })).status).toBe(404);
    expect((await house.ask(`${messages}/count_tokens`, { model: 'built-in' })).status).toBe(400);
  });
});

describe('the list of models', () => {
  const list = async (query = '') => {
    const answer = await house.ask(`/server/messages/v1/models${query}`);
    return { status: answer.status, body: (await answer.json()) as { data: { id: string }[]; has_more: boolean; first_id: string; last_id: string } };
  };

  test('has every chat model, in pages', async () => {
    const { body } = await list();
    expect(body).toMatchObject({ has_more: false, first_id: body.data[0]?.id, last_id: body.data.at(-1)?.id });
    const ids = body.data.map(({ id }) => id);
    expect(ids.toSorted()).toEqual(['built-in', 'claude-gone', 'claude-x', 'claude-y', 'gpt-x', 'gpt-y']);
    const first = (await list('?limit=3')).body;
    expect([first.has_more, first.data.map(({ id }) => id)]).toEqual([true, ids.slice(0, 3)]);
    expect((await list(`?limit=5&after_id=${first.last_id}`)).body).toMatchObject({ has_more: false, data: [{ id: ids[3] }, { id: ids[4] }, { id: ids[5] }] });
    expect((await list(`?limit=2&before_id=${ids[3]}`)).body.data.map(({ id }) => id)).toEqual(ids.slice(1, 3));
    for (const query of ['?limit=0', '?limit=x', '?after_id=nobody']) expect((await list(query)).status).toBe(400);
  });

  test('says the limits of each', async () => {
    const answer = await house.ask('/server/messages/v1/models/claude-x');
    expect(await answer.json()).toMatchObject({ type: 'model', id: 'claude-x', max_input_tokens: 200_000, max_tokens: 64_000 });
    expect((await house.ask('/server/messages/v1/models/nobody')).status).toBe(404);
  });
});

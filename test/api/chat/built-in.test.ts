import OpenAI from 'openai';
import OpenAI7 from 'openai-7';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chat, startTestServer, type TestServer } from '../../support/server.ts';
import { proves } from '../../support/proves.ts';

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

describe.each([
  ['openai 6', OpenAI],
  ['openai 7', OpenAI7 as unknown as typeof OpenAI],
])('%s against the built-in model', (_name, Client) => {
  let client: OpenAI;
  beforeAll(() => {
    client = new Client({ apiKey: server.key, baseURL: `${server.url}/server/chatcompat/v1`, maxRetries: 0 });
  });
  const say = (content: string, more: object = {}) => client.chat.completions.create({ model: 'built-in', messages: [{ role: 'user', content }], ...more });

  test(proves(['chat.standard-sdk', 'chat.standard-format', 'chat.200'], 'a completion is answered in the public format'), async () => {
    const answer = await say('Say exactly: the cat is out');
    expect(answer.choices[0]?.message).toMatchObject({ role: 'assistant', content: 'the cat is out' });
  });

  test(
    proves(
      ['chat.answer-id', 'chat.answer-object', 'chat.answer-created', 'chat.answer-model', 'chat.answer-choices', 'chat.answer-usage'],
      'it has id, object, created, model, choices and usage',
    ),
    async () => {
      const answer = await say('Say exactly: hello');
      expect(answer.id).toMatch(/^chatcmpl-\w{10,}$/);
      expect(answer).toMatchObject({ object: 'chat.completion', model: 'built-in', choices: [{ index: 0, finish_reason: 'stop' }] });
      expect(Math.abs(answer.created - Date.now() / 1000)).toBeLessThan(60);
      expect(answer.usage!.total_tokens).toBe(answer.usage!.prompt_tokens + answer.usage!.completion_tokens);
      expect(answer.usage!.completion_tokens).toBeGreaterThan(0);
    },
  );

  test('a stream says the same in pieces, and usage where it was asked for', async () => {
    const stream = await client.chat.completions.create({
      model: 'built-in',
      messages: [{ role: 'user', content: 'Say exactly: one two three' }],
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = '';
    let usage = 0;
    const reasons: string[] = [];
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      if (chunk.choices[0]?.finish_reason) reasons.push(chunk.choices[0].finish_reason);
      usage = chunk.usage?.total_tokens ?? usage;
    }
    expect({ text, reasons }).toEqual({ text: 'one two three', reasons: ['stop'] });
    expect(usage).toBeGreaterThan(0);
  });

  test('the stream helper folds it to one completion', async () => {
    const answer = await client.chat.completions.stream({ model: 'built-in', messages: [{ role: 'user', content: 'Repeat: a b c' }] }).finalChatCompletion();
    expect(answer.choices[0]?.message.content).toBe('a b c');
  });

  test('parse() gives a value that conforms to the schema', async () => {
    const answer = await client.chat.completions.parse({
      model: 'built-in',
      messages: [{ role: 'user', content: 'city: Paris, population: 2100000' }],
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'city',
          strict: true,
          schema: {
            type: 'object',
            properties: { city: { type: 'string' }, population: { type: 'integer' } },
            required: ['city', 'population'],
            additionalProperties: false,
          },
        },
      },
    });
    expect(answer.choices[0]?.message.parsed).toEqual({ city: 'Paris', population: 2100000 });
  });

  test('runTools() goes round: the tool is called and its result is answered with', async () => {
    const asked: unknown[] = [];
    const runner = client.chat.completions.runTools({
      model: 'built-in',
      messages: [{ role: 'user', content: 'Use get_weather for city: Oslo' }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            description: 'The weather of a city.',
            parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
            parse: JSON.parse,
            function: (args: unknown) => {
              asked.push(args);
              return 'minus four and snow';
            },
          },
        },
      ],
    });
    expect(await runner.finalContent()).toContain('minus four and snow');
    expect(asked).toEqual([{ city: 'Oslo' }]);
  });

  test('n: 2 gives two choices', async () => {
    const answer = await say('Say exactly: twice', { n: 2 });
    expect(answer.choices.map(({ index }) => index)).toEqual([0, 1]);
  });

  test(proves('chat.message-content', 'an image is looked at'), async () => {
    const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const answer = await client.chat.completions.create({
      model: 'built-in',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${pixel}` } },
          ],
        },
      ],
    });
    expect(answer.choices[0]?.message.content).toMatch(/png/i);
  });

  test(proves('chat.401', 'a wrong key is an AuthenticationError'), async () => {
    const stranger = new Client({ apiKey: 'x'.repeat(64), baseURL: `${server.url}/server/chatcompat/v1`, maxRetries: 0 });
    await expect(stranger.chat.completions.create({ model: 'built-in', messages: [{ role: 'user', content: 'hi' }] })).rejects.toMatchObject({
      constructor: Client.AuthenticationError,
      status: 401,
      code: 'invalid_api_key',
      type: 'invalid_request_error',
    });
  });

  test('an unknown model is a NotFoundError', async () => {
    await expect(say('hi', { model: 'no-such-model-xyz' })).rejects.toMatchObject({
      constructor: Client.NotFoundError,
      code: 'model_not_found',
      param: 'model',
    });
  });

  test('a body over the limit is refused with 413', async () => {
    await expect(say('x'.repeat(34 * 1024 * 1024))).rejects.toMatchObject({ status: 413 });
  });

  test('an aborted stream ends', async () => {
    const stream = await client.chat.completions.create({
      model: 'built-in',
      messages: [{ role: 'user', content: `Say exactly: ${'word '.repeat(2000)}` }],
      stream: true,
    });
    let chunks = 0;
    for await (const _chunk of stream) if (++chunks === 3) stream.controller.abort();
    expect(chunks).toBeLessThan(1000);
  });

  test(proves('models.standard-sdk', 'the models are listed and found one by one'), async () => {
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toContain('built-in');
    expect(await client.models.retrieve('built-in')).toMatchObject({ id: 'built-in', object: 'model', owned_by: 'dragoman' });
    await expect(client.models.retrieve('nope')).rejects.toBeInstanceOf(Client.NotFoundError);
  });
});

describe('the fields of a chat completion request', () => {
  const message = { role: 'user', content: 'Say exactly: yes' };
  const good = { model: 'built-in', messages: [message] };
  const tools = [
    {
      type: 'function',
      function: {
        name: 'look_up',
        description: 'Looks up.',
        parameters: { type: 'object', properties: { word: { type: 'string', enum: ['a', 'b'] } }, required: ['word'] },
      },
    },
  ];

  test.each([
    ['a missing model', { messages: [message] }, 'model', 'missing_required_parameter'],
    ['a model that is no string', { ...good, model: 7 }, 'model', 'invalid_value'],
    ['missing messages', { model: 'built-in' }, 'messages', 'missing_required_parameter'],
    ['messages that are no array', { ...good, messages: 'hi' }, 'messages', 'invalid_value'],
    ['a message without role', { ...good, messages: [{ content: 'hi' }] }, 'messages[0].role', 'missing_required_parameter'],
    ['an unknown role', { ...good, messages: [{ role: 'wizard', content: 'hi' }] }, 'messages[0].role', 'invalid_value'],
    ['a temperature in words', { ...good, temperature: 'hot' }, 'temperature', 'invalid_value'],
    ['a temperature of 2.1', { ...good, temperature: 2.1 }, 'temperature', 'invalid_value'],
    ['a temperature below 0', { ...good, temperature: -0.1 }, 'temperature', 'invalid_value'],
    ['half a max_tokens', { ...good, max_tokens: 1.5 }, 'max_tokens', 'invalid_value'],
    ['a max_tokens of 0', { ...good, max_tokens: 0 }, 'max_tokens', 'invalid_value'],
    ['a top_p in words', { ...good, top_p: 'all' }, 'top_p', 'invalid_value'],
    ['a top_p of 1.1', { ...good, top_p: 1.1 }, 'top_p', 'invalid_value'],
    ['a frequency_penalty in words', { ...good, frequency_penalty: '1' }, 'frequency_penalty', 'invalid_value'],
    ['a frequency_penalty of -2.1', { ...good, frequency_penalty: -2.1 }, 'frequency_penalty', 'invalid_value'],
    ['a presence_penalty in words', { ...good, presence_penalty: '1' }, 'presence_penalty', 'invalid_value'],
    ['a presence_penalty of 2.1', { ...good, presence_penalty: 2.1 }, 'presence_penalty', 'invalid_value'],
    ['tools that are no array', { ...good, tools: {} }, 'tools', 'invalid_value'],
    ['a flat function tool', { ...good, tools: [{ type: 'function', name: 'x' }] }, 'tools[0].function', 'missing_required_parameter'],
    ['a tool_choice that names no declared tool', { ...good, tools, tool_choice: 'other' }, 'tool_choice', 'invalid_value'],
    ['tool_choice required without tools', { ...good, tool_choice: 'required' }, 'tool_choice', 'invalid_value'],
  ])(
    proves(
      [
        'chat.model-required',
        'chat.400-missing',
        'chat.model-string',
        'chat.messages-required',
        'chat.messages-array',
        'chat.message-role',
        'chat.temperature-number',
        'chat.temperature-range',
        'chat.max-tokens-integer',
        'chat.top-p-number',
        'chat.top-p-range',
        'chat.frequency-penalty-number',
        'chat.frequency-penalty-range',
        'chat.presence-penalty-number',
        'chat.presence-penalty-range',
        'chat.tools-array',
        'chat.tools-nested',
      ],
      '%s is refused with 400 that names the field',
    ),
    async (_what, body, field, code) => {
      const answer = await server.ask(chat, body);
      expect(answer.status).toBe(400);
      const { error } = (await answer.json()) as { error: { param: string; code: string; type: string; message: string } };
      expect(error).toMatchObject({ param: field, code, type: 'invalid_request_error' });
      expect(error.message).toContain(field);
    },
  );

  test(proves('chat.400-format', 'a body that is no JSON is refused with 400'), async () => {
    expect((await server.ask(chat, '{"model": "built-in", ')).status).toBe(400);
  });

  test.each([
    ['system', 'user', 'assistant'].map((role) => ({ role, content: 'x' })),
    [...['system', 'developer', 'user', 'assistant'].map((role) => ({ role, content: 'x' })), message],
  ])(proves(['chat.role-system', 'chat.role-user', 'chat.role-assistant'], 'the roles system, user and assistant are accepted'), async (...messages) => {
    expect((await server.ask(chat, { ...good, messages })).status).toBe(200);
  });

  test.each([
    { temperature: 0 },
    { temperature: 2 },
    { top_p: 0 },
    { top_p: 1 },
    { frequency_penalty: -2 },
    { frequency_penalty: 2 },
    { presence_penalty: -2 },
    { presence_penalty: 2 },
    { temperature: null, max_tokens: null },
    { tools },
    { tools, tool_choice: 'auto' },
    { tool_choice: 'none' },
    { tool_choice: 'auto' },
    { something_new: { a: 1 } },
  ])(
    proves(
      ['chat.temperature-default', 'chat.max-tokens-optional', 'chat.top-p-default', 'chat.frequency-penalty-default', 'chat.presence-penalty-default'],
      '%j is accepted',
    ),
    async (more) => {
      expect((await server.ask(chat, { ...good, ...more })).status).toBe(200);
    },
  );

  const answered = async (body: object) => ((await (await server.ask(chat, body)).json()) as OpenAI.ChatCompletion).choices[0]!;

  test(proves('chat.max-tokens-limits', 'no more than max_tokens tokens are generated'), async () => {
    const answer = (await (
      await server.ask(chat, { model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: one two three four five six seven' }], max_tokens: 3 })
    ).json()) as OpenAI.ChatCompletion;
    expect(answer.usage!.completion_tokens).toBe(3);
    expect(answer.choices[0]).toMatchObject({ finish_reason: 'length' });
  });

  test(proves('chat.tool-choice-none', 'tool_choice none calls no tool, whatever the message says'), async () => {
    expect((await answered({ ...good, messages: [{ role: 'user', content: 'Use look_up' }], tools, tool_choice: 'none' })).message.tool_calls).toBeUndefined();
  });

  test(proves(['chat.tool-choice-auto', 'chat.tool-choice-default'], 'with auto, and without a tool_choice, the model chooses'), async () => {
    for (const choice of [{ tool_choice: 'auto' }, {}]) {
      expect((await answered({ ...good, tools, ...choice })).message.tool_calls).toBeUndefined();
      expect((await answered({ ...good, messages: [{ role: 'user', content: 'Use look_up' }], tools, ...choice })).message.tool_calls).toHaveLength(1);
    }
  });

  test.each(['look_up', { type: 'function', function: { name: 'look_up' } }])(
    proves(['chat.tool-choice-specific', 'chat.tool-parameters'], 'a tool that tool_choice names as %j is called, with arguments of its schema'),
    async (choice) => {
      const { message: answer, finish_reason } = await answered({ ...good, tools, tool_choice: choice });
      expect(finish_reason).toBe('tool_calls');
      const call = answer.tool_calls?.[0];
      expect(call).toMatchObject({ type: 'function', function: { name: 'look_up' } });
      expect(['a', 'b']).toContain(JSON.parse((call as { function: { arguments: string } }).function.arguments).word);
    },
  );
});

describe('content of a type that is not known', () => {
  const novel = { type: 'novel_20300101', novel: 'x' };
  const text = 'Say exactly: heron';
  const interfaces: readonly [string, string, (only: boolean) => object][] = [
    ['chat', '/server/chatcompat/v1/chat/completions', (only) => ({ messages: [{ role: 'user', content: only ? [novel] : [novel, { type: 'text', text }] }] })],
    [
      'messages',
      '/server/messages/v1/messages',
      (only) => ({ max_tokens: 9, messages: [{ role: 'user', content: only ? [novel] : [novel, { type: 'text', text }] }] }),
    ],
    [
      'gencompat',
      '/server/gencompat/v1beta/models/built-in:generateContent',
      (only) => ({ contents: [{ parts: only ? [{ novel: {} }] : [{ novel: {} }, { text }] }] }),
    ],
  ];

  test('and nothing else is refused for responses clients, too', async () => {
    const answer = await server.ask('/server/chatcompat/v1/responses', { model: 'built-in', input: [novel] });
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('built-in model can read nothing of')]);
    expect((await server.ask('/server/chatcompat/v1/responses', { model: 'built-in', input: [novel, { role: 'user', content: text }] })).status).toBe(200);
  });

  test.each(interfaces)('of %s clients is said, refused where the client is strict, and where there is nothing else', async (_name, path, body) => {
    const ask = (only: boolean, headers: Record<string, string> = {}) => server.ask(path, { model: 'built-in', ...body(only) }, { headers });
    const told = await ask(false);
    expect([told.status, told.headers.get('x-dragoman-warnings'), await told.text()]).toEqual([
      200,
      expect.stringContaining('the built-in model does not know this type of content'),
      expect.stringContaining('heron'),
    ]);
    for (const strict of ['true', 'True']) expect((await ask(false, { 'x-dragoman-strict': strict })).status).toBe(400);
    expect((await ask(false, { 'x-dragoman-strict': 'False' })).status).toBe(200);
    const neither = await ask(false, { 'x-dragoman-strict': '1' });
    expect([neither.status, await neither.text()]).toEqual([400, expect.stringContaining('x-dragoman-strict must be true or false.')]);
    const nothing = await ask(true);
    expect([nothing.status, await nothing.text()]).toEqual([400, expect.stringContaining('built-in model can read nothing of')]);
  });
});

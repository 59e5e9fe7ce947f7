import { describe, expect, test } from 'vitest';
import { askFace, type Face } from '../support/all-faces.ts';
import { always, body, ok, replay } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** What chat clients send beside the public description, and what the chat wire demands of everybody's conversations. */
const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

const wires = ['chat', 'responses', 'messages', 'gemini'] as const;
const others = ['responses', 'messages', 'gemini'] as const;
const sent = (at = 0) => upstream.requests[at]!.json as Readonly<Record<string, unknown>>;
const messagesSent = () => sent()['messages'] as readonly Readonly<Record<string, unknown>>[];
/** The warnings, but for the limit that messages providers require. */
const warned = ({ headers }: { readonly headers: Headers }) =>
  (headers.get('x-dragoman-warnings') ?? '').replace(/max_tokens: the provider requires [^;]*(?:; )?/, '');

/** @param rebuilt the request is decoded and encoded, which a name for the books brings about */
async function ask(
  model: string,
  more: object,
  { face = 'chat', rebuilt = false, headers = {} }: { face?: Face; rebuilt?: boolean; headers?: Readonly<Record<string, string>> } = {},
) {
  upstream.script(always(ok()));
  return askFace(server, face, { model, content: 'hi', stream: false, headers, more: { ...more, ...(rebuilt ? { app_name: 'books' } : {}) } });
}

describe('content of a type that only some vendors know', () => {
  const parts = [
    { type: 'video_url', video_url: { url: 'https://example.org/a.mp4' } },
    { type: 'document_url', document_url: 'https://example.org/a.pdf' },
    { type: 'input_text', text: 'Read it.' },
    { type: 'image_url', image_url: 'https://example.org/a.png' },
    { type: 'smell', strength: 3 },
  ];
  const messages = [
    { role: 'user', content: [{ type: 'text', text: 'See this.' }, ...parts] },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
        { type: 'text', text: 'I see.' },
      ],
    },
    { role: 'user', content: 'And now?' },
  ];

  test.each([false, true])('reaches chat providers as it came (rebuilt: %s)', async (rebuilt) => {
    expect(warned(await ask('chat', { messages }, { rebuilt }))).toBe('');
    expect(messagesSent()).toEqual(messages);
  });

  test.each(others)('is named in a warning elsewhere (%s)', async (model) => {
    const answer = await ask(model, { messages });
    expect(answer.status).toBe(200);
    for (const type of ['video_url', 'document_url', 'input_text', 'image_url', 'smell', 'thinking']) expect(warned(answer)).toContain(`${type}: `);
    expect((await ask(model, { messages }, { headers: { 'x-dragoman-strict': 'true' } })).status).toBe(400);
  });
});

test.each([
  ['chat', 501],
  ['responses', 501],
  ['messages', 400],
] as const)('a message that loses all that it has is refused, with what it was, and nothing is sent (%s)', async (model, status) => {
  const contents = [{ role: 'user', parts: [{ inlineData: { mimeType: 'video/mp4', data: 'AAAA' } }] }];
  const answer = await ask(model, { contents }, { face: 'gencompat' });
  expect([answer.status, answer.raw]).toEqual([status, expect.stringMatching(/contents.*video/)]);
  expect(upstream.requests).toHaveLength(0);
});

describe('a tool call without a result', () => {
  const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }];
  const use = (id: string) => ({ type: 'tool_use', id, name: 'look', input: {} });
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: [use('a'), use('b')] },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'b', content: 'seen' },
        { type: 'text', text: 'go on' },
      ],
    },
  ];
  const asked = { tools, messages, max_tokens: 50 };

  test('gets an empty one, with a warning (chat)', async () => {
    expect(warned(await ask('chat', asked, { face: 'messages' }))).toContain('tool result: a tool call without a result is sent with an empty one.');
    expect(messagesSent().map(({ role, tool_call_id: id, content }) => [role, id, content])).toEqual([
      ['user', undefined, 'hi'],
      ['assistant', undefined, null],
      ['tool', 'a', ''],
      ['tool', 'b', 'seen'],
      ['user', undefined, 'go on'],
    ]);
  });

  test('gets an empty one, with a warning (responses)', async () => {
    expect(warned(await ask('responses', asked, { face: 'messages' }))).toContain('tool result: ');
    const items = sent()['input'] as readonly Readonly<Record<string, unknown>>[];
    expect(items.filter(({ type }) => type === 'function_call_output')).toEqual([
      { type: 'function_call_output', call_id: 'a', output: '' },
      { type: 'function_call_output', call_id: 'b', output: 'seen' },
    ]);
  });

  test('gets an empty one, with a warning (messages)', async () => {
    const call = (id: string) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } });
    const conversation = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] },
      { role: 'tool', tool_call_id: 'b', content: 'seen' },
      { role: 'user', content: 'go on' },
    ];
    expect(warned(await ask('messages', { messages: conversation }))).toContain('tool result: ');
    expect(messagesSent().map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect(messagesSent()[2]!['content']).toMatchObject([
      { type: 'tool_result', tool_use_id: 'a' },
      { type: 'tool_result', tool_use_id: 'b' },
      { type: 'text', text: 'go on' },
    ]);
  });
});

test('the result of a tool that takes free text is of its own type on the Responses API', async () => {
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'custom', custom: { name: 'run', input: 'ls' } }] },
    { role: 'tool', tool_call_id: 'a', content: 'files' },
  ];
  await ask('responses', { messages });
  expect(sent()['input']).toMatchObject([{}, { type: 'custom_tool_call', call_id: 'a' }, { type: 'custom_tool_call_output', call_id: 'a', output: 'files' }]);
});

test.each(wires)('our own answer may be sent back, even in strict mode (%s)', async (model) => {
  const answer = { role: 'assistant', content: 'ho', refusal: null, annotations: [], audio: null };
  const messages = [{ role: 'user', content: 'hi' }, answer, { role: 'user', content: 'hi' }];
  const said = await ask(model, { messages }, { headers: { 'x-dragoman-strict': 'true' } });
  expect([said.status, warned(said)]).toEqual([200, '']);
});

describe('how a model is to think', () => {
  const asked = [
    ['thinking off', { thinking: { type: 'disabled' } }, { thinking: { type: 'disabled' } }],
    ['reasoning off', { reasoning: { enabled: false } }, { thinking: { type: 'disabled' } }],
    ['an effort in reasoning', { reasoning: { effort: 'high' } }, { thinking: expect.objectContaining({ type: 'enabled' }) as unknown }],
    ['Groq’s default', { reasoning_effort: 'default' }, { thinking: expect.objectContaining({ type: 'enabled' }) as unknown }],
  ] as const;

  test.each(asked)('is read from %s', async (_, more, wanted) => {
    expect(warned(await ask('messages', { ...more, max_tokens: 50_000 }))).toBe('');
    expect(sent()).toMatchObject(wanted);
  });

  test.each(asked)('reaches chat providers as it came: %s', async (_, more) => {
    for (const rebuilt of [false, true]) await ask('chat', more, { rebuilt });
    for (const at of [0, 1]) {
      const { model: _model, messages: _messages, stream: _stream, ...fields } = sent(at);
      expect(fields).toEqual(more);
    }
  });

  test('may be a number of tokens', async () => {
    await ask('gemini', { thinking: { type: 'enabled', budget_tokens: 9000 } });
    expect(JSON.stringify(sent())).toMatch(/"thinking(?:Budget":\d{4}|Level":"medium")/i);
  });
});

test('top_k reaches providers that have it', async () => {
  for (const model of ['messages', 'gemini']) expect(warned(await ask(model, { top_k: 7 }))).toBe('');
  expect([sent(0)['top_k'], sent(1)['generationConfig']]).toEqual([7, expect.objectContaining({ topK: 7 })]);
  for (const rebuilt of [false, true]) await ask('chat', { top_k: 7 }, { rebuilt });
  expect([sent(2)['top_k'], sent(3)['top_k']]).toEqual([7, 7]);
  expect(warned(await ask('responses', { top_k: 7 }))).toContain('top_k: ');
});

describe('web_search_options', () => {
  test.each([
    ['responses', expect.objectContaining({ type: 'web_search' })],
    ['messages', expect.objectContaining({ name: 'web_search' })],
    ['gemini', expect.objectContaining({ googleSearch: expect.anything() as unknown })],
  ] as const)('is the search of %s', async (model, tool) => {
    const answer = await ask(model, { web_search_options: {} });
    expect([answer.status, warned(answer), sent()['tools']]).toEqual([200, '', [tool]]);
  });

  test.each([false, true])('is left to the chat provider (rebuilt: %s)', async (rebuilt) => {
    const options = { search_context_size: 'low', user_location: { type: 'approximate', approximate: { country: 'CH' } } };
    const tools = [{ type: 'function', function: { name: 'look' } }];
    expect(warned(await ask('chat', { web_search_options: options, tools, tool_choice: 'auto' }, { rebuilt }))).toBe('');
    expect(sent()).toMatchObject({ web_search_options: options, tools, tool_choice: 'auto' });
  });

  test('has terms that others do not know', async () => {
    expect(warned(await ask('messages', { web_search_options: { search_context_size: 'low' } }))).toContain('search_context_size');
  });
});

describe('the results of tools follow their calls at once', () => {
  const call = (id: string) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } });
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBO' } };

  test('before the image of one of them', async () => {
    const messages = [
      { role: 'user', content: 'look' },
      { role: 'assistant', content: null, tool_calls: [call('a'), call('b')] },
      { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'this' }, image] },
      { role: 'tool', tool_call_id: 'b', content: 'that' },
    ];
    await ask('chat', { messages }, { rebuilt: true });
    expect(messagesSent().slice(2)).toEqual([
      { role: 'tool', tool_call_id: 'a', content: 'this' },
      { role: 'tool', tool_call_id: 'b', content: 'that' },
      { role: 'user', content: [image] },
    ]);
  });

  test('also where a responses client put words between them', async () => {
    const input = [
      { role: 'user', content: 'look' },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'I look.' }] },
      { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Wait.' }] },
      { type: 'message', role: 'developer', content: 'Hurry.' },
      { type: 'function_call_output', call_id: 'a', output: 'a wall' },
      { type: 'message', role: 'user', content: 'And?' },
    ];
    expect((await ask('chat', { input }, { face: 'responses' })).status).toBe(200);
    const seen = messagesSent().map(({ role, tool_calls: calls }) => [role, calls === undefined ? 0 : 1]);
    expect(seen.slice(0, 3)).toEqual([
      ['user', 0],
      ['assistant', 1],
      ['tool', 0],
    ]);
    expect(JSON.stringify(messagesSent()[1])).toMatch(/I look\..*Wait\./);
  });
});

test('a PDF has a name, whoever sends it', async () => {
  const source = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' };
  await ask('chat', { messages: [{ role: 'user', content: [{ type: 'document', source }] }] }, { face: 'messages' });
  await ask('chat', { contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'application/pdf', data: 'JVBERi0=' } }] }] }, { face: 'gencompat' });
  for (const at of [0, 1])
    expect(sent(at)).toMatchObject({
      messages: [{ content: [{ type: 'file', file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' } }] }],
    });
});

test.each(['cached_tokens', 'prompt_cache_hit_tokens'])('cached tokens are read from %s', async (name) => {
  const message = { index: 0, message: { role: 'assistant', content: 'ho' }, finish_reason: 'stop' };
  upstream.script(body(JSON.stringify({ id: 'x', choices: [message], usage: { prompt_tokens: 100, completion_tokens: 1, total_tokens: 101, [name]: 60 } })));
  const { raw } = await askFace(server, 'messages', { model: 'chat', content: 'hi', stream: false });
  expect(JSON.parse(raw)).toMatchObject({ usage: { input_tokens: 40, cache_read_input_tokens: 60 } });
});

test.each(['chat', 'messages'] as const)('the usage of a stream is read from the choice, where Moonshot has it, for a client of %s', async (face) => {
  const usage = { prompt_tokens: 100, completion_tokens: 17, total_tokens: 117, cached_tokens: 60 };
  const frames = [{ delta: { role: 'assistant', content: 'ho' } }, { delta: {}, finish_reason: 'stop', usage }];
  upstream.script(replay(frames.map((choice) => JSON.stringify({ id: 'x', object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }] }))));
  const more = face === 'chat' ? { stream_options: { include_usage: true } } : {};
  const { raw } = await askFace(server, face, { model: 'chat', content: 'hi', stream: true, more });
  expect(raw).toMatch(
    face === 'chat'
      ? /"choices":\[\],"usage":\{"prompt_tokens":100,"completion_tokens":17/
      : /"input_tokens":40,"cache_read_input_tokens":60,"output_tokens":17/,
  );
});

test('the usage of one choice is not that of all: with several, it is estimated', async () => {
  const usage = { prompt_tokens: 100, completion_tokens: 17, total_tokens: 117 };
  const choices = [0, 1].flatMap((index) => [
    { index, delta: { role: 'assistant', content: 'ho ho ho ho' } },
    { index, delta: {}, finish_reason: 'stop', usage },
  ]);
  upstream.script(replay(choices.map((choice) => JSON.stringify({ id: 'x', object: 'chat.completion.chunk', choices: [choice] }))));
  const { raw } = await askFace(server, 'chat', { model: 'chat', content: 'hi', stream: true, more: { n: 2, stream_options: { include_usage: true } } });
  expect(raw).toMatch(/"choices":\[\],"usage":\{"prompt_tokens":\d,/);
});

test('empty arguments of a call become an empty object, and a long id a short one', async () => {
  const input = [
    { role: 'user', content: 'look' },
    { type: 'function_call', call_id: 'x'.repeat(60), name: 'look', arguments: '' },
    { type: 'function_call_output', call_id: 'x'.repeat(60), output: 'a wall' },
  ];
  await ask('chat', { input }, { face: 'responses' });
  const [, { tool_calls: calls }, { tool_call_id: id }] = messagesSent() as unknown as readonly [
    object,
    { tool_calls: { id: string }[] },
    { tool_call_id: string },
  ];
  expect([calls, id.length]).toEqual([[expect.objectContaining({ id, function: { name: 'look', arguments: '{}' } })], 29]);
});

test('an empty text beside a tool call is not sent to a provider of responses, and empty arguments are an empty object', async () => {
  const call = { id: 'c1', type: 'function', function: { name: 'look', arguments: '' } };
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: '', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c1', content: 'Rain.' },
  ];
  expect((await ask('responses', { messages })).status).toBe(200);
  const { input } = upstream.requests.at(-1)!.json as { input: readonly object[] };
  expect(input.slice(1)).toEqual([
    { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1', output: 'Rain.' },
  ]);
});

test('the call of a tool of free text is streamed as one by the built-in model', async () => {
  const more = { stream: true, tools: [{ type: 'custom', custom: { name: 'run' } }], messages: [{ role: 'user', content: 'run: ls' }] };
  const frames = await (await server.ask('/v1/chat/completions', { model: 'built-in', ...more })).text();
  const calls = [...frames.matchAll(/"tool_calls":\[(.*?)\]/g)].map(([, call]) => JSON.parse(call!) as { custom?: { input: string }; function?: object });
  expect([calls.map((call) => call.custom?.input).join(''), calls.filter((call) => call.function)]).toEqual(['ls', []]);
});

describe('content in parts, as Mistral answers', () => {
  const parts = [
    { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
    { type: 'text', text: 'Yes.' },
  ];

  test('is text and thoughts in a whole answer', async () => {
    const message = { role: 'assistant', content: parts };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    upstream.script(body(JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices, usage })));
    const { raw } = await askFace(server, 'chat', { model: 'chat', content: 'hi', stream: false });
    expect(JSON.parse(raw)).toMatchObject({ choices: [{ message: { content: 'Yes.', reasoning_content: 'Hm.' } }], usage });
  });

  test('is text and thoughts in a stream', async () => {
    const choices = [{ delta: { role: 'assistant', content: parts } }, { delta: { content: ' Sure.' } }, { delta: {}, finish_reason: 'stop' }];
    upstream.script(replay(choices.map((choice) => JSON.stringify({ id: 'x', object: 'chat.completion.chunk', choices: [{ index: 0, ...choice }] }))));
    const { raw, text, complete } = await askFace(server, 'chat', { model: 'chat', content: 'hi', stream: true });
    expect([text, complete]).toEqual(['Yes. Sure.', true]);
    expect(raw).toContain('"reasoning_content":"Hm."');
  });
});

describe('Cursor', () => {
  const format = { type: 'grammar', syntax: 'lark', definition: 'start: /a+/' };
  const patch = { type: 'custom', name: 'ApplyPatch', description: 'Edits.', format };
  const read = { type: 'function', name: 'Read', parameters: { type: 'object', properties: {} } };
  const nestedRead = { type: 'function', function: { name: 'Read', parameters: { type: 'object', properties: {} } } };
  const nestedPatch = {
    type: 'custom',
    custom: { name: 'ApplyPatch', description: 'Edits.', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: /a+/' } } },
  };

  test('writes tools of free text flat, and they are tools (chat)', async () => {
    const answer = await ask('chat', { tools: [nestedRead, patch], tool_choice: { type: 'custom', name: 'ApplyPatch' } });
    expect([answer.status, warned(answer)]).toEqual([200, '']);
    expect(sent()).toMatchObject({ tools: [nestedRead, nestedPatch], tool_choice: { type: 'custom', custom: { name: 'ApplyPatch' } } });
  });

  test.each(wires)('asks for a chat completion with the body of a request for a response, and gets one (%s)', async (model) => {
    const body = {
      model,
      input: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'input_text', text: 'hi' }] },
        { type: 'function_call', call_id: 'call_1', name: 'Read', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_1', output: 'text' },
      ],
      tools: [read],
      include: ['reasoning.encrypted_content'],
      reasoning: { effort: 'medium', summary: 'auto' },
      text: { verbosity: 'low' },
      store: false,
    };
    upstream.script(always(ok({ text: 'ho' })));
    const whole = await (await server.ask('/v1/chat/completions', body)).json();
    expect(whole).toMatchObject({ object: 'chat.completion', choices: [{ message: { role: 'assistant', content: 'ho' }, finish_reason: 'stop' }] });
    const frames = await (await server.ask('/v1/chat/completions', { ...body, messages: [], stream: true, stream_options: { include_usage: true } })).text();
    expect(frames).toMatch(/"delta":\{"role":"assistant".*"choices":\[\],"usage":\{"prompt_tokens".*\[DONE\]/s);
    for (const { json } of upstream.requests) expect(JSON.stringify(json)).toMatch(/Be brief\..*hi.*Read.*text|hi.*Read.*text.*Be brief\./);
  });

  test.each<[field: string, body: object]>([
    ['messages', {}],
    ['input[0].role', { input: [{ role: 'robot', content: 'hi' }] }],
    ['previous_response_id', { input: 'hi', previous_response_id: 'resp_1' }],
    ['tool_choice', { input: 'ho', messages: [{ role: 'user', content: 'hi' }], tools: [patch], tool_choice: 7 }],
  ])('is told %s where its request is wrong', async (field, body) => {
    const answer = await server.ask('/v1/chat/completions', { model: 'chat', ...body });
    expect([answer.status, (await answer.json()) as object]).toEqual([400, { error: expect.objectContaining({ param: field }) as object }]);
  });
});

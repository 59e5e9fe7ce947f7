import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { askFace, faces, type Face } from '../support/all-faces.ts';
import { on, stream as pieces, type Behaviour } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((upstream) => ({ yaml: everyWire(upstream) }));

const whole = (body: object): Behaviour =>
  on({}, { name: 'whole', answer: () => ({ ...pieces([JSON.stringify(body)]), headers: { 'content-type': 'application/json' } }) });

const framed = (frames: readonly object[]): Behaviour =>
  on({}, { name: 'framed', answer: () => pieces(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`)) });

/** The arguments of the calls in a whole answer, in their order. */
function argumentsIn(raw: string): readonly unknown[] {
  const found: unknown[] = [];
  JSON.parse(raw, (name, value: unknown) => {
    if (name === 'args' || name === 'input') found.push(value);
    if (name === 'arguments') found.push(JSON.parse(value as string));
    return value;
  });
  return found;
}

const called = (city: string) => ({ id: 'call_1', type: 'function', function: { name: 'weather', arguments: JSON.stringify({ city }) } });
const cities = [{ city: 'Rome' }, { city: 'Oslo' }];

test.each(faces)('calls with one ID in a whole answer are different calls to a client of %s', async (face) => {
  const message = { role: 'assistant', content: null, tool_calls: [called('Rome'), called('Oslo')] };
  upstream.script(whole({ id: 'c1', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }));
  const { status, raw } = await askFace(server, face, { model: 'chat', content: 'hello', stream: false });
  expect({ status, calls: argumentsIn(raw) }).toEqual({ status: 200, calls: cities });
});

test('calls with one ID in one chunk without indexes are different calls, and a chunk with that ID goes on with one', async () => {
  const chunk = (delta: object, finish: string | null = null) => ({ id: 'c1', model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] });
  const begun = { id: 'call_2', function: { name: 'weather', arguments: '{"city":' } };
  const more = { id: 'call_2', function: { name: 'weather', arguments: '"Bern"}' } };
  upstream.script(
    framed([chunk({ tool_calls: [called('Rome'), called('Oslo')] }), chunk({ tool_calls: [begun] }), chunk({ tool_calls: [more] }), chunk({}, 'tool_calls')]),
  );
  const { raw, complete } = await askFace(server, 'gencompat', { model: 'chat', content: 'hello', stream: true });
  expect(complete).toBe(true);
  const calls = [...raw.matchAll(/"args":(\{.*?\})/g)].map(([, args]) => JSON.parse(args!) as unknown);
  expect(calls).toEqual([...cities, { city: 'Bern' }]);
});

const item = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'weather', arguments: { city: 'Rome' }, status: 'completed' };
const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', status: 'completed', output: [item], usage: null };

test.each(faces)('arguments that a provider of the Responses API sends as an object reach a client of %s', async (face) => {
  upstream.script(whole(response));
  const { status, raw } = await askFace(server, face, { model: 'responses', content: 'hello', stream: false });
  expect({ status, calls: argumentsIn(raw) }).toEqual({ status: 200, calls: [{ city: 'Rome' }] });
});

test('arguments that are streamed as an object reach the client', async () => {
  upstream.script(
    framed([
      { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { ...item, arguments: {} } },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response },
    ]),
  );
  const { raw, complete } = await askFace(server, 'gencompat', { model: 'responses', content: 'hello', stream: true });
  expect(complete).toBe(true);
  expect(raw).toContain('"args":{"city":"Rome"}');
});

const started = { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } };
const over = (output: readonly object[] = []) => ({ type: 'response.completed', response: { ...response, output } });
const ended = (output_index: number, content_index: number, text: string) => ({ type: 'response.output_text.done', output_index, content_index, text });
const spoken = (...texts: readonly string[]) => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  content: texts.map((text) => ({ type: 'output_text', text })),
});

describe.each(faces)('a client of %s reads a stream of the Responses API that has no pieces', (face) => {
  test.each([
    ['but the ends of its parts', [started, ended(0, 0, 'one '), ended(0, 1, 'two'), over()]],
    ['but the ends of its parts and all else once more', [started, ended(0, 0, 'one '), ended(0, 1, 'two'), over([spoken('one ', 'two')])]],
    ['but its item', [started, { type: 'response.output_item.done', output_index: 0, item: spoken('one ', 'two') }, over()]],
    ['but its end', [over([spoken('one ', 'two')])]],
  ])('%s', async (_, frames) => {
    upstream.script(framed(frames));
    const { text, complete } = await askFace(server, face, { model: 'responses', content: 'hello', stream: true });
    expect({ text, complete }).toEqual({ text: 'one two', complete: true });
  });

  test('but the end of the arguments of a call', async () => {
    const begun = { ...item, arguments: '' };
    const frames = [
      started,
      { type: 'response.output_item.added', output_index: 0, item: begun },
      { type: 'response.function_call_arguments.done', output_index: 0, arguments: '{"city":"Rome"}' },
      { type: 'response.output_item.done', output_index: 0, item: begun },
      over(),
    ];
    upstream.script(framed(frames));
    const { raw, complete } = await askFace(server, face, { model: 'responses', content: 'hello', stream: true });
    expect(complete).toBe(true);
    expect(raw).toMatch(/\{\\?"city\\?":\\?"Rome\\?"\}/);
  });
});

describe.each(['text/plain; charset=utf-8', 'application/octet-stream', 'application/json'])('a stream of events whose type is %s', (type) => {
  const answer = [
    { id: 'c1', model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: 'Hi ' } }] },
    { id: 'c1', model: 'm', choices: [{ index: 0, delta: { content: 'there' }, finish_reason: 'stop' }] },
  ];
  const text = `\uFEFF: hello\r\n\r\n${answer.map((frame) => `event: x\r\ndata: ${JSON.stringify(frame)}\r\n\r\n`).join('')}data: [DONE]\r\n\r\n`;

  test.each(faces)('is one to a client of %s, in however small pieces it comes', async (face) => {
    upstream.script(on({}, { name: 'events', answer: () => ({ ...pieces(eachByte(text)), headers: { 'content-type': type } }) }));
    const { text: said, complete } = await askFace(server, face, { model: 'chat', content: 'hello', stream: true });
    expect({ said, complete }).toEqual({ said: 'Hi there', complete: true });
  });
});

const eachByte = (text: string): readonly Buffer[] => Array.from(Buffer.from(text), (byte) => Buffer.from([byte]));

test.each(['', ' ', '  \n\n  {"no": "answer"}', 'data', 'No such model.', '<html>'])('what is no stream of events is none: %j', async (text) => {
  upstream.script(on({}, { name: 'text', answer: () => ({ ...pieces([text]), headers: { 'content-type': 'text/plain' } }) }));
  const { status, error } = await askFace(server, 'chat', { model: 'chat', content: 'hello', stream: true });
  expect({ status, error }).toEqual({ status: 502, error: 'upstream_error' });
});

test.each([false, true])('token ids of Gemini reach a client of Gemini (streamed: %s)', async (stream) => {
  const chosen = { token: 'Yes', tokenId: 3553, logProbability: -0.5 };
  const logprobsResult = { topCandidates: [{ candidates: [chosen, { token: 'No', tokenId: 2301, logProbability: -1 }] }], chosenCandidates: [chosen] };
  const candidates = [{ content: { role: 'model', parts: [{ text: 'Yes' }] }, finishReason: 'STOP', index: 0, logprobsResult }];
  upstream.script(stream ? framed([{ candidates }]) : whole({ candidates }));
  const { raw } = await askFace(server, 'gencompat', { model: 'gemini', content: 'hello', stream });
  expect(raw).toContain(JSON.stringify(logprobsResult));
});

const chunk = (delta: object, finish: string | null = null) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/v1`, maxRetries: 0 });
const hello = { model: 'chat', messages: [{ role: 'user' as const, content: 'hello' }] };
const call = (city: string) => ({ id: expect.stringMatching(/^call_/), type: 'function', function: { name: 'weather', arguments: JSON.stringify({ city }) } });
const [rome, oslo] = cities.map((args, at) => ({ id: `call_${at}`, type: 'function', function: { name: 'weather', arguments: JSON.stringify(args) } })) as [
  ReturnType<typeof called>,
  ReturnType<typeof called>,
];

describe("OpenAI's SDK puts together what a server of the chat API streams", () => {
  test.each([
    ['without ids and types', [{ tool_calls: [{ index: 0, function: rome.function }] }, { tool_calls: [{ index: 1, function: oslo.function }] }]],
    ['without indexes', [{ tool_calls: [rome] }, { tool_calls: [oslo] }]],
    ['with one index for all', [{ tool_calls: [{ index: 0, ...rome }] }, { tool_calls: [{ index: 0, ...oslo }] }]],
    ['with indexes from 1 on', [{ tool_calls: [{ index: 1, ...rome }] }, { tool_calls: [{ index: 2, ...oslo }] }]],
    [
      'with arguments as objects',
      [{ tool_calls: cities.map((args, index) => ({ ...rome, id: `call_${index}`, index, function: { name: 'weather', arguments: args } })) }],
    ],
    [
      'with names that come again with each piece',
      [
        { tool_calls: [{ index: 0, ...rome, function: { name: 'weather', arguments: '{"city":' } }] },
        { tool_calls: [{ index: 0, ...rome, function: { name: 'weather', arguments: '"Rome"}' } }] },
        { tool_calls: [{ index: 1, ...oslo }] },
      ],
    ],
  ])('calls %s', async (_, deltas) => {
    upstream.script(framed([chunk({ role: 'assistant', content: null }), ...deltas.map((delta) => chunk(delta)), chunk({}, 'tool_calls')]));
    const { message } = (await client.chat.completions.stream(hello).finalChatCompletion()).choices[0]!;
    expect(message.tool_calls).toEqual([call('Rome'), call('Oslo')]);
  });

  test.each([
    [
      'no role',
      [
        { index: 0, delta: { content: 'Hi ' } },
        { index: 0, delta: { content: 'there' } },
        { index: 0, delta: {}, finish_reason: 'stop' },
      ],
    ],
    ['choices without an index', [{ delta: { role: 'assistant', content: 'Hi ' } }, { delta: { content: 'there' }, finish_reason: 'stop' }]],
    ['a message in the place of a delta', [{ index: 0, message: { role: 'assistant', content: 'Hi there' } }]],
  ])('%s', async (_, choices) => {
    upstream.script(framed(choices.map((choice) => ({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice] }))));
    const [choice] = (await client.chat.completions.stream(hello).finalChatCompletion()).choices;
    expect(choice).toMatchObject({ message: { content: 'Hi there' }, finish_reason: 'stop' });
  });

  test('frames without choices among its chunks', async () => {
    const said = [{ type: 'ping' }, chunk({ role: 'assistant', content: 'Hi ' }), {}, chunk({ content: 'there' }), { choices: null }, chunk({}, 'stop')];
    upstream.script(framed([...said, { id: 'c1', model: 'm', usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 } }]));
    const whole = await client.chat.completions.stream({ ...hello, stream_options: { include_usage: true } }).finalChatCompletion();
    expect(whole).toMatchObject({ choices: [{ message: { content: 'Hi there' } }], usage: { total_tokens: 3 } });
  });
});

test.each([
  ['no id', { ...rome, id: undefined }, rome.function.arguments],
  ['no type', { ...rome, type: undefined }, rome.function.arguments],
  ['arguments as an object', { ...rome, function: { name: 'weather', arguments: { city: 'Rome' } } }, rome.function.arguments],
  ['no arguments', { ...rome, function: { name: 'weather' } }, '{}'],
])('a call of a whole chat completion that has %s is whole for a client of the same interface', async (_, one, json) => {
  const said = { role: 'assistant', content: null, tool_calls: [one] };
  upstream.script(whole({ id: 'c1', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message: said, finish_reason: 'tool_calls' }] }));
  const [made] = (await client.chat.completions.create(hello)).choices[0]!.message.tool_calls ?? [];
  expect(made).toEqual({ ...call('Rome'), function: { name: 'weather', arguments: json } });
});

const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', stop_reason: 'tool_use', usage: { input_tokens: 1, output_tokens: 1 } };
const ofGemini = (functionCall: object) => ({ candidates: [{ content: { role: 'model', parts: [{ functionCall }] }, finishReason: 'STOP' }] });

describe.each(faces)('a client of %s', (face) => {
  test.each([
    ['messages', { ...message, content: [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: '{"city":"Rome"}' }] }],
    ['gemini', ofGemini({ name: 'weather', args: '{"city":"Rome"}' })],
  ])('gets arguments that a provider of %s sends as text', async (model, body) => {
    upstream.script(whole(body));
    const { status, raw } = await askFace(server, face, { model, content: 'hello', stream: false });
    expect({ status, calls: argumentsIn(raw) }).toEqual({ status: 200, calls: [{ city: 'Rome' }] });
  });

  test('is told that a call of Gemini without a name is no answer', async () => {
    upstream.script(whole(ofGemini({ args: { city: 'Rome' } })));
    expect((await askFace(server, face, { model: 'gemini', content: 'hello', stream: false })).status).toBe(502);
  });

  test('reads a message of the Responses API whose content is a text', async () => {
    upstream.script(whole({ ...response, output: [{ type: 'message', role: 'assistant', content: 'Hi there' }] }));
    expect((await askFace(server, face, { model: 'responses', content: 'hello', stream: false })).text).toBe('Hi there');
  });
});

describe('an answer that ends for its tools without a call ends as any other', () => {
  const claude = { ...message, content: [{ type: 'text', text: 'Hi there' }] };
  const chunks = [chunk({ role: 'assistant', content: 'Hi there' }), chunk({}, 'tool_calls')];
  const [block] = claude.content;
  const events = [
    { type: 'message_start', message: { ...claude, content: [], stop_reason: null } },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ];

  test.each<[Face, string, boolean, Behaviour, string]>([
    ['chat', 'messages', false, whole(claude), '"finish_reason":"stop"'],
    ['chat', 'messages', true, framed(events), '"finish_reason":"stop"'],
    ['gencompat', 'messages', false, whole(claude), '"finishReason":"STOP"'],
    ['messages', 'chat', true, framed(chunks), '"stop_reason":"end_turn"'],
  ])('(to a client of %s, from a provider of %s, streamed: %s)', async (face, model, stream, answer, end) => {
    upstream.script(answer);
    const { raw, text } = await askFace(server, face, { model, content: 'hello', stream });
    expect(text).toBe('Hi there');
    expect(raw).toContain(end);
    expect(raw).not.toMatch(/"tool_calls"|"tool_use"/);
  });
});

test.each([
  ['messages', false],
  ['messages', true],
  ['gencompat', false],
  ['gencompat', true],
] as const)('arguments that are null are none to a client of %s (streamed: %s)', async (face, stream) => {
  const one = { index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: 'null' } };
  const said = { role: 'assistant', content: null, tool_calls: [one] };
  const choices = [{ index: 0, message: said, finish_reason: 'tool_calls' }];
  upstream.script(stream ? framed([chunk(said), chunk({}, 'tool_calls')]) : whole({ id: 'c1', model: 'm', choices }));
  const { raw, complete } = await askFace(server, face, { model: 'chat', content: 'hello', stream });
  expect(complete).toBe(true);
  expect(raw).toMatch(/"(?:input|args)":\{\}/);
  expect(raw).not.toContain('null"');
});

test.each([
  ['chat', '"finish_reason":"content_filter"'],
  ['responses', '"incomplete_details":{"reason":"content_filter"}'],
  ['messages', '"stop_reason":"refusal"'],
  ['gencompat', '"finishReason":"PROHIBITED_CONTENT"'],
] as const)('what Gemini blocks in the middle of its answer is refused to a client of %s', async (face, refused) => {
  const begun = { candidates: [{ content: { role: 'model', parts: [{ text: 'Well, ' }] }, index: 0 }] };
  upstream.script(framed([begun, { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }]));
  const { raw, text, error } = await askFace(server, face, { model: 'gemini', content: 'hello', stream: true });
  expect({ text, error }).toEqual({ text: 'Well, ', error: '' });
  expect(raw).toContain(refused);
});

test('a long text in the place of a delta is left out, and does not grow on its way to the client', async () => {
  const odd = { id: 'c1', model: 'm', choices: [{ delta: 'a'.repeat(500_000) }] };
  upstream.script(framed([odd, chunk({ role: 'assistant', content: 'Hi' }), chunk({}, 'stop')]));
  const { raw, text, complete } = await askFace(server, 'chat', { model: 'chat', content: 'hello', stream: true });
  expect({ text, complete }).toEqual({ text: 'Hi', complete: true });
  expect(raw.length).toBeLessThan(600_000);
});

test('a part of the Responses API whose end comes twice is said once', async () => {
  const done = { type: 'response.output_text.done', output_index: 0, content_index: 0, text: 'Hi' };
  upstream.script(framed([done, done, { type: 'response.completed', response: { ...response, output: [] } }]));
  const { text } = await askFace(server, 'chat', { model: 'responses', content: 'hello', stream: true });
  expect(text).toBe('Hi');
});

test('summary and content of a thought of the Responses API that come whole are both thought', async () => {
  const summary = { type: 'response.reasoning_summary_text.done', output_index: 0, summary_index: 0, text: 'In short.' };
  const thought = { type: 'response.reasoning_text.done', output_index: 0, content_index: 0, text: 'At length.' };
  const said = { type: 'response.output_text.done', output_index: 1, content_index: 0, text: 'Hi' };
  upstream.script(framed([summary, thought, said, { type: 'response.completed', response: { ...response, output: [] } }]));
  const { raw, text } = await askFace(server, 'messages', { model: 'responses', content: 'hello', stream: true });
  expect([text, raw.includes('In short.'), raw.includes('At length.')]).toEqual(['Hi', true, true]);
});

test('empty arguments of a Gemini call are an empty object', async () => {
  const call = { functionCall: { name: 'weather', args: '' } };
  upstream.script(whole({ candidates: [{ content: { role: 'model', parts: [call] }, finishReason: 'STOP', index: 0 }] }));
  const { raw } = await askFace(server, 'chat', { model: 'gemini', content: 'hello', stream: false });
  expect(argumentsIn(raw)).toEqual([{}]);
});

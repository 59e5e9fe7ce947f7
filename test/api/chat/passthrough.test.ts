import { describe, expect, test } from 'vitest';
import { body, errorEvent, html, ok, replay, secretWord } from '../../support/fakes/upstream/index.ts';
import { chat } from '../../support/server.ts';
import { scriptedServer } from '../../support/scripted-server.ts';

const { upstream, server } = await scriptedServer(({ url }) => ({ upstream: url, yaml: 'routing: { cooldownSeconds: 0 }\n' }));

const request = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'hello' }] };
const tools = [
  { type: 'function', function: { name: 'f', parameters: { type: 'object' } } },
  { type: 'custom', custom: { name: 'c' } },
];
const named = { type: 'function', function: { name: 'f' } };

/** What arrives upstream, byte for byte. */
async function arrived(more: object): Promise<string> {
  upstream.script(ok());
  const answer = await server.ask(chat, { ...request, ...more });
  await answer.text();
  expect(answer.status).toBe(200);
  return upstream.requests[0]!.body.toString();
}

describe('what arrives at the provider', () => {
  test.each([
    ['"auto"', 'auto'],
    ['"none"', 'none'],
    ['"required"', 'required'],
    ['a function', named],
    ['a custom tool', { type: 'custom', custom: { name: 'c' } }],
    ['allowed tools', { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [named] } }],
  ])('is the same bytes with a tool_choice that is %s', async (_name, tool_choice) => {
    expect(await arrived({ tools, tool_choice })).toBe(JSON.stringify({ ...request, tools, tool_choice }));
  });

  test("names a tool in the provider's words where the client wrote its bare name", async () => {
    expect(JSON.parse(await arrived({ tools, tool_choice: 'f' }))).toEqual({ ...request, tools, tool_choice: named });
    upstream.reset();
    expect(JSON.parse(await arrived({ tools, tool_choice: 'c' }))).toMatchObject({ tool_choice: { type: 'custom', custom: { name: 'c' } } });
  });

  test.each(['auto', 'none'])('has no tool_choice %s without tools', async (tool_choice) => {
    expect(JSON.parse(await arrived({ tool_choice }))).toEqual(request);
  });

  test('has no null that the client sent for absent', async () => {
    expect(JSON.parse(await arrived({ tool_choice: null, temperature: null, max_tokens: 7 }))).toEqual({ ...request, max_tokens: 7 });
  });
});

describe('a stream whose JSON has spaces', () => {
  const loose = (value: object) => JSON.stringify(value, undefined, 1).replaceAll(/\n\s*/g, ' ');
  const chunk = (delta: object, finish_reason: string | null) =>
    loose({ id: 'x', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta, finish_reason }] });
  const usage = loose({
    id: 'x',
    object: 'chat.completion.chunk',
    model: 'm',
    choices: [],
    usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 },
  });
  const spaced = [chunk({ role: 'assistant', content: 'one' }, null), chunk({ content: ' two' }, null), chunk({}, 'stop'), usage, '[DONE]'];

  test('arrives whole, without the usage that nobody asked for', async () => {
    upstream.script(body(spaced.map((line) => `data: ${line}\n\n`).join(''), 'text/event-stream'));
    const answer = await server.ask(chat, { ...request, stream: true });
    const text = await answer.text();
    expect(text).toContain(' two');
    expect(text).not.toContain('prompt_tokens');
    expect(text).not.toContain('"error"');
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
  });
});

test('of two choices in a chunk, the one without a delta has an empty one', async () => {
  const delta = { content: 'one', role: 'assistant' };
  const choices = [0, 1].map((index) => ({ index, delta, finish_reason: null }));
  const odd = [
    { index: 0, delta: { content: ' two' }, finish_reason: null },
    { index: 1, finish_reason: null, content_filter_offsets: {} },
  ];
  const ends = [0, 1].map((index) => ({ index, delta: {}, finish_reason: 'stop' }));
  const chunks = [choices, odd, ends].map((list) => JSON.stringify({ id: 'x', object: 'chat.completion.chunk', model: 'm', choices: list }));
  upstream.script(replay(chunks));
  const answer = await server.ask(chat, { ...request, stream: true, n: 2 });
  const sent = (await answer.text()).split('\n\n').filter((frame) => frame.startsWith('data: {'));
  expect(sent.map((frame) => JSON.parse(frame.slice(6)) as object)).toMatchObject([
    { choices },
    { choices: [odd[0], { ...odd[1], delta: {} }] },
    { choices: ends },
  ]);
});

describe('a chunk in the middle of a stream without a delta', () => {
  const choices = [
    { index: 0, delta: { role: 'assistant', content: 'one' }, finish_reason: null },
    { index: 0, finish_reason: null, content_filter_results: { hate: { filtered: false } }, content_filter_offsets: { check_offset: 44 } },
    { index: 0, delta: null, finish_reason: null },
    { index: 0, delta: { content: ' two' }, finish_reason: null },
    { index: 0, finish_reason: 'stop' },
  ];
  const framed = choices.map((choice) => `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', model: 'm', choices: [choice] })}\n\n`);

  test('such as a verdict of Azure on its content, has an empty one', async () => {
    upstream.script(body(`${framed.join('')}data: [DONE]\n\n`, 'text/event-stream'));
    const answer = await server.ask(chat, { ...request, stream: true });
    const frames = (await answer.text()).split('\n\n').flatMap((frame) => (frame.startsWith('data: {') ? [JSON.parse(frame.slice(6)) as object] : []));
    expect(frames).toMatchObject(choices.map((choice) => ({ choices: [{ ...choice, delta: choice.delta ?? {} }] })));
  });
});

test.each([
  [{ content: 'one' }, { role: 'assistant', content: 'one' }],
  [
    { role: 'assistant', refusal: 'no' },
    { role: 'assistant', content: null, refusal: 'no' },
  ],
])('a whole message without a role or content, %o, has both', async (message, said) => {
  const choices = [{ index: 0, message, finish_reason: 'stop' }];
  upstream.script(body(JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices }), 'application/json'));
  const answer = await server.ask(chat, request);
  expect(await answer.json()).toMatchObject({ choices: [{ index: 0, message: said, finish_reason: 'stop' }], usage: { completion_tokens: 1 } });
});

describe('an answer to a stream request that is no stream', () => {
  test('but a page is a 502 without its words', async () => {
    upstream.script(html());
    const answer = await server.ask(chat, { ...request, stream: true });
    expect(answer.status).toBe(502);
    expect(await answer.text()).not.toContain(secretWord);
  });

  test('but a page that says it is one is a 502', async () => {
    upstream.script(body(`<html>${secretWord}</html>`, 'text/event-stream'));
    const answer = await server.ask(chat, { ...request, stream: true });
    expect(answer.status).toBe(502);
    expect(await answer.text()).not.toContain(secretWord);
  });

  test.each(['application/json', 'text/event-stream'])('but a JSON error in a 200 of type %s is that error', async (type) => {
    upstream.script(body('{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}', type));
    const answer = await server.ask(chat, { ...request, stream: true });
    expect(answer.status).toBe(429);
  });

  test('but an error event first has the status of the error', async () => {
    upstream.script(errorEvent({ status: 503 }));
    const answer = await server.ask(chat, { ...request, stream: true });
    expect(answer.status).toBeGreaterThanOrEqual(500);
  });
});

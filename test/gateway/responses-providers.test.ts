import { describe, expect, test } from 'vitest';
import { badKey, cut, failing, headersThenHang, noFinish, ok, secretWord, thinking, toolCalls, tooMany } from '../support/fakes/upstream/index.ts';
import { chat } from '../support/server.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** Other interfaces before a provider that speaks the responses wire. */

const messages = '/server/messages/v1/messages';

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  resp: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: ["sk-one", "sk-two"] }
models:
  resp-x: { targets: [{ provider: resp }] }
limits: { holdHeadersSeconds: 1, hangSeconds: { stream: 2, whole: 2 }, firstByteSeconds: 2, streamIdleSeconds: 1 }
routing: { cooldownSeconds: 0, retryBudget: 1 }
`,
}));

const say = (content: string, more: object = {}) => ({ model: 'resp-x', messages: [{ role: 'user', content }], ...more });
const sent = (at = 0) => upstream.requests[at]!.json as Record<string, unknown>;
const look = { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } } } };

async function asked(path: string, body: object) {
  const answer = await server.ask(path, body);
  const text = await answer.text();
  return { status: answer.status, text, warnings: answer.headers.get('x-dragoman-warnings') };
}

test('a chat completion is answered, with only the requested fields sent upstream', async () => {
  upstream.script(ok());
  const { status, text, warnings } = await asked(chat, say('one two three', { max_tokens: 100, user: 'u', verbosity: 'low' }));
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({ choices: [{ message: { content: 'You said: one two three' }, finish_reason: 'stop' }], usage: { total_tokens: 8 } });
  expect(warnings).toBeNull();
  expect(upstream.requests[0]!.path).toBe('/v1/responses');
  expect(sent()).toEqual({
    model: 'resp-x',
    input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'one two three' }] }],
    max_output_tokens: 100,
    user: 'u',
    text: { verbosity: 'low' },
    include: ['reasoning.encrypted_content'],
    store: false,
  });
});

test('tool calls arrive in chat form, and their results are sent upstream', async () => {
  upstream.script(toolCalls([{ name: 'look', json: '{"at":"left"}' }]), ok());
  const first = JSON.parse((await asked(chat, say('look', { tools: [look], tool_choice: 'required' }))).text) as {
    choices: readonly [{ message: { tool_calls: readonly [{ id: string; function: object }] }; finish_reason: string }];
  };
  const [{ message, finish_reason }] = first.choices;
  expect(finish_reason).toBe('tool_calls');
  expect(message.tool_calls[0].function).toEqual({ name: 'look', arguments: '{"at":"left"}' });
  expect(sent()).toMatchObject({ tools: [{ type: 'function', name: 'look', strict: false }], tool_choice: 'required' });
  const turn = [...say('look').messages, message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'a wall' }];
  expect((await asked(chat, { model: 'resp-x', messages: turn, tools: [look] })).status).toBe(200);
  expect((sent(1)['input'] as readonly object[]).slice(1)).toMatchObject([
    { type: 'function_call', name: 'look', arguments: '{"at":"left"}' },
    { type: 'function_call_output', output: 'a wall' },
  ]);
});

test('thoughts appear in chat form', async () => {
  upstream.script(thinking('Hm, three words.'));
  expect(JSON.parse((await asked(chat, say('x'))).text)).toMatchObject({ choices: [{ message: { reasoning_content: 'Hm, three words.' } }] });
});

test('a chat stream has the same content', async () => {
  upstream.script(ok());
  const { text } = await asked(chat, say('one two three', { stream: true }));
  const said = text.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g);
  expect(Array.from(said, ([, piece]) => piece).join('')).toBe('You said: one two three');
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
});

test('fields that the Responses API lacks are named, and refused if the client is strict', async () => {
  upstream.script(ok());
  const more = { n: 2, seed: 7, logit_bias: { 1: 1 }, frequency_penalty: 1 };
  const { warnings } = await asked(chat, say('x', more));
  for (const name of Object.keys(more)) expect(warnings).toContain(`${name}:`);
  const strict = await server.ask(chat, say('x', more), { headers: { 'x-dragoman-strict': 'true' } });
  expect(strict.status).toBe(400);
});

test('messages are answered too', async () => {
  upstream.script(thinking('Hm.'));
  const { status, text } = await asked(messages, say('one', { max_tokens: 50, system: 'Be terse.' }));
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({
    content: [
      { type: 'thinking', thinking: 'Hm.' },
      { type: 'text', text: 'You said: one' },
    ],
    stop_reason: 'end_turn',
  });
  expect(sent()['input']).toMatchObject([{ role: 'system' }, { role: 'user' }]);
});

test('a rejected key is skipped for the next one', async () => {
  upstream.script(badKey(), ok());
  expect((await asked(chat, say('x'))).status).toBe(200);
  expect(new Set(upstream.requests.map(({ key }) => key)).size).toBe(2);
});

describe('failures of the provider', () => {
  test.each([
    ['429', tooMany(), 429],
    ['500', failing(500), 502],
    ['503', failing(503), 503],
  ])('%s is reported by its class, without the message of the provider', async (_name, behaviour, status) => {
    upstream.script(behaviour);
    const answer = await asked(chat, say('x'));
    expect(answer.status).toBe(status);
    expect(answer.text).not.toContain(secretWord);
  });

  test.each([
    ['cut', cut({ afterEvents: 6 })],
    ['without an end', noFinish()],
    ['silent', headersThenHang({ afterEvents: 6 })],
  ])('a stream that is %s ends with an error and no [DONE]', async (_name, behaviour) => {
    upstream.script(behaviour);
    const { text } = await asked(chat, say('one two three four five six', { stream: true }));
    expect(text).toContain('"error":');
    expect(text).not.toContain('[DONE]');
  });
});

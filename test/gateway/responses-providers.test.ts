import { describe, expect, test } from 'vitest';
import { badKey, body, cut, failing, headersThenHang, noFinish, ok, secretWord, thinking, toolCalls, tooMany } from '../support/fakes/upstream/index.ts';
import { chat } from '../support/server.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** Other interfaces before a provider that speaks the responses wire. */

const messages = '/server/messages/v1/messages';
const responses = '/server/chatcompat/v1/responses';

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

/** A response with these members, whole or streamed. */
function response(stream: boolean, members: object) {
  const content = [{ type: 'output_text', text: 'said', annotations: [], logprobs: [] }];
  const usage = {
    input_tokens: 1,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 1,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 2,
  };
  const output = [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }];
  const whole = { id: 'resp_up', object: 'response', created_at: 1, model: 'm', status: 'completed', output, usage, ...members };
  if (!stream) return body(JSON.stringify(whole));
  const events = [
    { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
    { type: `response.${whole.status}`, response: whole },
  ];
  return body(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''), 'text/event-stream');
}

test.each([false, true])('members of the response that only the provider knows are passed on (stream %s)', async (stream) => {
  const moderation = { input: { type: 'moderation_results', model: 'omni-moderation-latest', results: [] } };
  upstream.script(response(stream, { moderation, content_filters: [{ blocked: false }], billing: { payer: 'developer' } }));
  const { text } = await asked(responses, { model: 'resp-x', input: 'x', stream });
  const [, id] = /"id":"(resp_\w+)"/.exec(text)!;
  const kept = (await (await server.ask(`${responses}/${id}`, undefined, { method: 'GET' })).json()) as object;
  expect(kept).toMatchObject({ status: 'completed', moderation, content_filters: [{ blocked: false }] });
  expect(kept).not.toHaveProperty('billing');
  expect(text).toContain(`"moderation":${JSON.stringify(moderation)}`);
});

describe('failures of the provider', () => {
  describe.each([false, true])('that are a failed response (stream %s)', (stream) => {
    test.each([
      ['bio_policy', 'content_policy_violation'],
      ['cyber_policy', 'content_policy_violation'],
      ['misalignment_policy_violation', 'content_policy_violation'],
      ['image_content_policy_violation', 'content_policy_violation'],
      ['invalid_image', 'invalid_value'],
      ['invalid_base64_image', 'invalid_value'],
      ['image_too_small', 'invalid_value'],
      ['image_parse_error', 'invalid_value'],
      ['image_file_not_found', 'invalid_value'],
      ['unsupported_image_media_type', 'invalid_value'],
      ['empty_image_file', 'invalid_value'],
      ['failed_to_download_image', 'invalid_value'],
    ])('of %s are those of the request', async (code, told) => {
      upstream.script(response(stream, { status: 'failed', error: { code, message: 'Not this.' }, output: [] }), ok());
      const { status, text } = await asked(chat, say('x', { stream }));
      expect([status, JSON.parse(text)]).toMatchObject([400, { error: { type: 'invalid_request_error', code: told } }]);
      expect(text).toContain('Not this.');
      expect(upstream.requests).toHaveLength(1);
    });

    test('of a server_error are those of the provider', async () => {
      upstream.script(response(stream, { status: 'failed', error: { code: 'server_error', message: 'x' }, output: [] }));
      expect((await asked(chat, say('x', { stream }))).status).toBe(502);
    });
  });

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

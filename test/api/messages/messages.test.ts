import { describe, expect, test } from 'vitest';
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
  pace,
  refusal,
  secretWord,
  thinking,
  tooMany,
  toolCalls,
  type Behaviour,
} from '../../support/fakes/upstream/index.ts';
import { look, messages, messagesServer, request, type Message } from '../../support/messages-server.ts';

const here = await messagesServer();

describe.each(['claude-x', 'gpt-x'])('the messages interface before %s', (model) => {
  test('answers with text, usage and an end', async () => {
    here.upstream.script(ok());
    const { status, headers, message } = await here.whole(request(undefined, { model }));
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
    here.upstream.script(ok());
    const { status, types, joined, frames } = await here.streamed(request(undefined, { model }));
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
    here.upstream.script(always(thinking('hm, yes', 'Done.')));
    const { message } = await here.whole(request(undefined, { model }));
    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: 'hm, yes' },
      { type: 'text', text: 'Done.' },
    ]);
    expect((await here.streamed(request(undefined, { model }))).joined('thinking')).toBe('hm, yes');
  });

  test('gives parallel tool calls, whole and in pieces, nothing dropped and nothing doubled', async () => {
    const tools = [
      { name: 'look', json: '{"at":"the cat"}' },
      { name: 'listen', json: '{"to":[1,2,3]}' },
    ];
    here.upstream.script(always(toolCalls(tools)));
    const asked = request(undefined, { model, tools: [look, { ...look, name: 'listen' }] });
    const { message } = await here.whole(asked);
    expect(message).toMatchObject({
      stop_reason: 'tool_use',
      content: [
        { type: 'tool_use', name: 'look', input: { at: 'the cat' } },
        { type: 'tool_use', name: 'listen', input: { to: [1, 2, 3] } },
      ],
    });
    const { joined, frames } = await here.streamed(asked);
    expect(joined('partial_json')).toBe('{"at":"the cat"}{"to":[1,2,3]}');
    expect(frames.at(-2)?.delta?.stop_reason).toBe('tool_use');
  });

  test('says that the limit ended it', async () => {
    here.upstream.script(ok());
    expect((await here.whole(request(undefined, { model, max_tokens: 2 }))).message).toMatchObject({
      stop_reason: 'max_tokens',
      content: [{ text: 'You said: ' }],
    });
  });

  test.each<[string, () => Behaviour]>([
    ['is cut', () => cut({ afterEvents: 6 })],
    ['ends without a stop reason', noFinish],
    ['says that it failed', () => pace(5, errorEvent({ afterEvents: 6 }))],
  ])('a stream that %s ends with an error event and no message_stop', async (_, behaviour) => {
    here.upstream.script(behaviour());
    const { status, types, text } = await here.streamed(request('one two three four five six', { model }));
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
    here.upstream.script(always(behaviour()));
    const model = what.startsWith('404') ? 'claude-gone' : 'claude-x'; // a model that a provider lacks is not asked for again soon
    // a stream that waits for so long has its head out already
    for (const stream of what === 'silence' ? [false] : [false, true]) {
      const { status: got, headers, message, text } = await here.whole(request(undefined, { stream, model }));
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
    const { message, status } = await here.whole(request(undefined, more));
    expect(status).toBe(field === 'model' ? 404 : 400);
    expect(message.error?.message).toContain(field);
    expect(here.upstream.requests).toHaveLength(0);
  });

  test('of an unknown key, address and method is in the words of this interface', async () => {
    const answers = [
      await here.whole(request(), { headers: { authorization: 'Bearer wrong' } }),
      await here.whole(request(), { headers: { authorization: '', 'x-api-key': 'wrong' } }),
    ];
    for (const { status, message } of answers) expect([status, message.error?.type]).toEqual([401, 'authentication_error']);
    const nowhere = await here.server.ask('/server/messages/v1/else');
    expect([nowhere.status, ((await nowhere.json()) as Message).error?.type]).toEqual([404, 'not_found_error']);
    const wrong = await here.server.ask(messages);
    expect([wrong.status, wrong.headers.get('allow'), ((await wrong.json()) as Message).error?.type]).toEqual([405, 'POST', 'invalid_request_error']);
  });
});

describe('the built-in model behind the messages interface', () => {
  const built = (content: unknown, more: object = {}) => here.whole(request(content, { model: 'built-in', ...more }));

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

  test('says at which stop sequence it ended', async () => {
    const body = request('Say exactly: one two three four', { model: 'built-in', stop_sequences: ['four', 'three'] });
    const ended = { stop_reason: 'stop_sequence', stop_sequence: 'three' };
    expect((await here.whole(body)).message).toMatchObject({ content: [{ text: 'one two ' }], ...ended });
    expect((await here.streamed(body)).frames.at(-2)).toMatchObject({ delta: ended });
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
    const counted = (await (await here.server.ask(`${messages}/count_tokens`, asked)).json()) as { input_tokens: number };
    const { message } = await built('', asked);
    expect(counted).toEqual({ input_tokens: message.usage.input_tokens });
    expect((await here.server.ask(`${messages}/count_tokens`, { ...asked, model: 'nobody' })).status).toBe(404);
    expect((await here.server.ask(`${messages}/count_tokens`, { model: 'built-in' })).status).toBe(400);
  });
});

describe('the list of models', () => {
  const list = async (query = '') => {
    const answer = await here.server.ask(`/server/messages/v1/models${query}`);
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
    const answer = await here.server.ask('/server/messages/v1/models/claude-x');
    expect(await answer.json()).toMatchObject({ type: 'model', id: 'claude-x', max_input_tokens: 200_000, max_tokens: 64_000 });
    expect((await here.server.ask('/server/messages/v1/models/nobody')).status).toBe(404);
  });

  test('has every member that the SDK declares', async () => {
    const declared = { lifecycle: 'active', line: null, deprecated_at: null, retires_at: null, capabilities: null };
    expect(await (await here.server.ask('/server/messages/v1/models/claude-x')).json()).toMatchObject(declared);
    const { data } = (await (await here.server.ask('/server/messages/v1/models')).json()) as { readonly data: readonly object[] };
    for (const model of data) expect(model).toMatchObject(declared);
  });
});

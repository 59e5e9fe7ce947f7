import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  always,
  badKey,
  badRequest,
  errorEvent,
  failing,
  ok,
  on,
  pace,
  replay,
  slowThinker,
  tooMany,
  toolCalls,
  type Behaviour,
} from '../support/fakes/upstream/index.ts';
import { whole } from '../support/fakes/upstream/answer.ts';
import { chat, providerKey } from '../support/server.ts';
import { look, messages, messagesServer, request, secondKey, type Frame } from '../support/messages-server.ts';
import { recordingOf } from '../support/recordings.ts';

const here = await messagesServer();

describe('a provider of the Messages API', () => {
  test('is asked with its key, the version and the betas of the client, and receives the request unchanged', async () => {
    here.upstream.script(ok());
    const asked = request([{ type: 'text', text: 'hi', cache_control: { type: 'ephemeral' } }], {
      metadata: { user_id: 'u' },
      field_of_tomorrow: [1],
      thinking: { type: 'adaptive' },
    });
    const { headers } = await here.whole(asked, {
      headers: { 'anthropic-beta': 'files-api-2025-04-14', 'anthropic-version': '2099-01-01', 'x-other': 'mine' },
    });
    expect(here.sent()).toEqual(asked);
    expect(here.upstream.requests[0]).toMatchObject({
      path: '/v1/messages',
      key: expect.stringMatching(/^sk-(provider|second)/) as string,
      headers: { 'anthropic-beta': 'files-api-2025-04-14', 'anthropic-version': '2023-06-01' },
    });
    expect(here.upstream.requests[0]?.headers).not.toHaveProperty('x-other');
    expect(here.upstream.requests[0]?.headers).not.toHaveProperty('authorization');
    expect(headers.get('x-dragoman-warnings')).toBeNull();
  });

  test('its whole answers of text go to clients of the same wire as they came', async () => {
    const spaced = `{ "id":"msg_1", "type":"message","role":"assistant","model":"claude-sonnet-4-5", "content":[{"type":"text","text":"Hi \\u00e9"}],
      "stop_reason":"end_turn","stop_sequence":null, "usage":{"input_tokens":1e1,"output_tokens":2}, "field_of_tomorrow":1.0 }`;
    here.upstream.script({ name: 'spaced', answer: () => whole(200, spaced, { 'content-type': 'application/json' }) });
    const { text, headers } = await here.whole(request());
    expect(text).toBe(spaced);
    expect(headers.get('x-dragoman-provider')).not.toBeNull();
  });

  test('is asked with its next key when one is rejected', async () => {
    here.upstream.script(always(on({ key: secondKey }, badKey())), always(on({ key: providerKey }, ok())));
    for (let at = 0; at < 4; at++) expect((await here.whole(request())).status).toBe(200);
    expect(new Set(here.upstream.requests.map(({ key }) => key))).toEqual(new Set([providerKey, secondKey]));
  });

  test.each<[string, () => Behaviour]>([
    ['429', tooMany],
    ['529', () => failing(529)],
    ['overload inside a 200', () => errorEvent({ status: 529 })],
    ['overload after message_start', () => errorEvent({ status: 529, afterEvents: 2 })],
  ])('that answers %s is replaced by the next one before its first content', async (_, behaviour) => {
    for (const stream of [true, false]) {
      here.upstream.reset();
      here.upstream.script(behaviour(), on({ fake: 'spare' }, ok()));
      const asked = request(undefined, { model: 'claude-y' });
      const { headers, text } = stream ? await here.streamed(asked) : await here.whole(asked);
      expect([headers.get('x-dragoman-provider'), headers.get('x-dragoman-attempts')]).toEqual(['spare', '2']);
      expect(text.match(/"type":"message_start"/g)?.length ?? 0).toBe(stream ? 1 : 0);
      expect(here.upstream.requests.map(({ path, model }) => `${path} ${model}`)).toEqual(['/v1/messages claude-up', '/v1/messages claude-up']);
    }
  });

  test('is asked without a temperature if the model accepts none, and that is remembered', async () => {
    here.upstream.script(badRequest({ message: '`temperature` is deprecated for this model.' }), always(ok()));
    const { headers, status } = await here.whole(request(undefined, { temperature: 0.5, model: 'claude-y' }));
    expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, 'temperature: this model does not take it.']);
    await here.whole(request(undefined, { temperature: 0.5, model: 'claude-y' }));
    const { dragoman } = (await (await here.server.ask('/server/chatcompat/v1/models/claude-y')).json()) as { dragoman: { targets: { fields: object }[] } };
    expect(dragoman.targets[0]!.fields).toMatchObject({ temperature: { fate: 'ignored', note: 'this model does not take it.' } });
    expect(here.upstream.requests.map(({ json }) => 'temperature' in (json as object))).toEqual([true, false, false]);
  });

  test('that is silent for long makes the gateway send a comment to the client', async () => {
    here.upstream.script(slowThinker(1.5));
    const { text, types } = await here.streamed(request());
    expect(text.startsWith(': ')).toBe(true);
    expect(types.at(-1)).toBe('message_stop');
  });

  test('is disconnected as soon as the client disconnects', async () => {
    here.upstream.script(pace(200));
    const leaving = new AbortController();
    const answer = await here.server.ask(messages, request('one two three four five six', { stream: true }), { signal: leaving.signal });
    await answer.body!.getReader().read();
    leaving.abort();
    expect((await here.upstream.closed(0)).closedEarlyAt).toBeDefined();
  });

  test.each(['text', 'tool-no-args', 'web-search-tool.1', 'clear-thinking.1', 'refusal', 'json-tool.1'])(
    '%s, as recorded, reaches the client event by event',
    async (name) => {
      const lines = readFileSync(recordingOf('anthropic-messages', `vercel/${name}.chunks.txt`), 'utf8')
        .trim()
        .split('\n');
      here.upstream.script(replay(lines, { last: false }));
      const { frames, types } = await here.streamed(request());
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

describe('a chat completion by a provider of the Messages API', () => {
  const ask = (more: object = {}) => here.server.ask(chat, { model: 'claude-x', messages: [{ role: 'user', content: 'one two three' }], ...more });
  interface Completion {
    readonly choices: readonly {
      readonly message: { readonly content: string; readonly reasoning_content?: string; readonly tool_calls?: readonly object[] };
      readonly finish_reason: string;
    }[];
    readonly usage: object;
  }
  const completion = async (more: object = {}) => (await (await ask(more)).json()) as Completion;

  test('has text, thoughts, tool calls and usage', async () => {
    here.upstream.script(
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

  test('streams tool calls piece by piece, and usage if requested', async () => {
    here.upstream.script(
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

  test('sends the output limit of the model, in the form of the API', async () => {
    here.upstream.script(ok());
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
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object', additionalProperties: false } } },
    });
    expect(answer.status).toBe(200);
    expect(here.sent()).toEqual({
      model: 'claude-x',
      max_tokens: 64_000,
      system: 'Be brief.',
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
            { type: 'text', text: 'Be kind.' },
            { type: 'text', text: 'And now?' },
          ],
        },
      ],
      tools: [{ name: 'look', input_schema: look.input_schema }],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      stop_sequences: ['END'],
      output_config: { format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } } },
      metadata: { user_id: 'u' },
    });
    expect(answer.headers.get('x-dragoman-warnings')).toMatch(/^seed: .*system: /);
  });

  test('is refused if it is strict and a field would be lost', async () => {
    const answer = await here.server.ask(
      chat,
      { model: 'claude-x', messages: [{ role: 'user', content: 'x' }], seed: 7 },
      { headers: { 'x-dragoman-strict': 'true' } },
    );
    expect([answer.status, here.upstream.requests.length]).toEqual([400, 0]);
  });

  test.each([{ store: false }, { service_tier: 'auto' }, { service_tier: 'default' }, { modalities: ['text'] }, { verbosity: 'medium' }, { metadata: {} }])(
    'loses nothing with the default %j, so that it is accepted where it is strict, and no warning is given',
    async (more) => {
      here.upstream.script(ok());
      const body = { model: 'claude-x', messages: [{ role: 'user', content: 'x' }], ...more };
      const answer = await here.server.ask(chat, body, { headers: { 'x-dragoman-strict': 'true' } });
      expect([answer.status, answer.headers.get('x-dragoman-warnings') ?? '']).toEqual([200, expect.not.stringContaining(Object.keys(more)[0]!)]);
    },
  );

  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['refusal', 'content_filter'],
  ])('that ended with %s ended with %s', async (raw, word) => {
    here.upstream.script(ok({ finish: raw }));
    expect((await completion()).choices[0]?.finish_reason).toBe(word);
  });

  test('thinks by budget, or by effort if the model accepts no budget', async () => {
    here.upstream.script(ok(), badRequest({ message: '"thinking.type.enabled" is not supported for this model.' }), always(ok()));
    for (let at = 0; at < 3; at++)
      expect((await ask({ model: at === 0 ? 'claude-x' : 'claude-y', reasoning_effort: 'low', max_tokens: 3000 })).status).toBe(200);
    const thinking = here.upstream.requests.map(({ json }) => (json as { thinking: object }).thinking);
    const shown = { type: 'adaptive', display: 'summarized' };
    expect(thinking).toEqual([{ type: 'enabled', budget_tokens: 2048 }, { type: 'enabled', budget_tokens: 2048 }, shown, shown]);
    expect(here.sent(3)).toMatchObject({ output_config: { effort: 'low' } });
  });
});

import { describe, expect, test } from 'vitest';
import { askFace } from '../support/all-faces.ts';
import { always, ok, replay } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** What clients of the Messages API say and read that other wires, or older versions of this one, have no words for. */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

const ask = (model: string, more: object, { stream = false, headers = {} } = {}) =>
  askFace(server, 'messages', { model, content: 'hi', stream, more, headers });
const sent = (at = 0) => upstream.requests[at]!.json as Readonly<Record<string, unknown>>;
const others = ['chat', 'responses', 'gemini'] as const;

const found = { type: 'search_result', title: 'Cats', source: 'https://example.com/cats', content: [{ type: 'text', text: 'They sleep.' }] };
const documents = {
  type: 'document',
  title: 'Dogs',
  source: {
    type: 'content',
    content: [
      { type: 'text', text: 'They bark.' },
      { type: 'text', text: 'Loudly.' },
    ],
  },
};
const reference = { type: 'tool_reference', tool_name: 'look' };
const look = { name: 'look', input_schema: { type: 'object', properties: {} } };
const loop = (content: readonly object[]) => [
  { role: 'user', content: 'hi' },
  { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content }] },
];

describe('search results, documents of content and references to tools', () => {
  test.each(others)('are text in a message (%s)', async (model) => {
    upstream.script(ok());
    const { status, headers } = await ask(model, { messages: [{ role: 'user', content: [found, documents, reference] }] });
    expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, null]);
    for (const text of ['Cats\\nhttps://example.com/cats\\n\\nThey sleep.', 'Dogs\\n\\nThey bark.\\nLoudly.', 'Tool: look'])
      expect(JSON.stringify(sent())).toContain(text);
  });

  test.each(others)('are text in the result of a tool, with no empty message behind it (%s)', async (model) => {
    upstream.script(ok());
    const { status } = await ask(model, { tools: [look], messages: loop([found]) });
    expect(status).toBe(200);
    expect(JSON.stringify(sent())).toContain('They sleep.');
    expect(((sent()['messages'] ?? sent()['input'] ?? sent()['contents']) as readonly unknown[]).length).toBe(3);
  });

  test.each(others)('of plain text keep their titles, in messages and in results of tools (%s)', async (model) => {
    upstream.script(always(ok()));
    const plain = { type: 'document', title: 'Birds', context: 'From a book.', source: { type: 'text', media_type: 'text/plain', data: 'They sing.' } };
    for (const messages of [[{ role: 'user', content: [plain] }], loop([plain])]) {
      const { status, headers } = await ask(model, { tools: [look], messages });
      expect([status, headers.get('x-dragoman-warnings')]).toEqual([200, null]);
      expect(JSON.stringify(upstream.requests.at(-1)!.json)).toMatch(/Birds\\nFrom a book\..*They sing\./);
      await ask('messages', { tools: [look], messages });
      expect((upstream.requests.at(-1)!.json as { messages: object[] }).messages).toEqual(messages);
    }
  });

  test('name what of them is lost', async () => {
    upstream.script(ok());
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };
    const content = { ...documents, source: { type: 'content', content: [{ type: 'text', text: 'See:' }, image] }, citations: { enabled: true } };
    const { headers } = await ask('chat', { messages: [{ role: 'user', content: [content] }] });
    expect(headers.get('x-dragoman-warnings')).toMatch(/image: .*citations: /);
  });

  test('go to a provider of the same API as they came', async () => {
    upstream.script(always(ok()));
    const messages = [{ role: 'user', content: [found, documents] }];
    await ask('messages', { messages });
    await ask('messages', { tools: [look], messages: loop([found, reference]) });
    expect(sent()['messages']).toEqual(messages);
    expect(sent(1)['messages']).toEqual(loop([found, reference]));
  });
});

describe('blocks of newer types', () => {
  test('are named where another provider answers', async () => {
    upstream.script(ok());
    const { status, headers } = await ask('chat', {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'hi' },
            { type: 'mcp_tool_listing', tools: [] },
          ],
        },
      ],
    });
    expect([status, headers.get('x-dragoman-warnings')]).toMatchObject([200, expect.stringContaining('mcp_tool_listing') as string]);
  });

  test.each(others)('a system message that only changes the effort leaves no message behind (%s)', async (model) => {
    upstream.script(always(ok()));
    for (const content of [{ content: [] }, {}]) {
      const messages = [
        { role: 'user', content: 'hi' },
        { role: 'system', ...content, output_config: { effort: 'low' } },
      ];
      const { status, headers } = await ask(model, { messages });
      expect([status, headers.get('x-dragoman-warnings')]).toMatchObject([200, expect.stringContaining('output_config') as string]);
      expect(((sent()['messages'] ?? sent()['input'] ?? sent()['contents']) as readonly unknown[]).length).toBe(1);
    }
  });

  test('a system message that only changes the effort arrives at Claude as it came, and no other message is without content', async () => {
    upstream.script(always(ok()));
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'system', output_config: { effort: 'low' } },
    ];
    expect((await ask('messages', { messages })).status).toBe(200);
    expect(sent()['messages']).toEqual(messages);
    for (const bare of [{ role: 'user' }, { role: 'system' }]) {
      const { status, raw } = await ask('messages', { messages: [...messages, bare] });
      expect([status, raw]).toEqual([400, expect.stringContaining('messages[2].content is required.')]);
    }
  });
});

describe('a schema under the name that it had in the beta', () => {
  const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };
  const format = { type: 'json_schema', schema };
  /** As LiteLLM sends it for models of Claude. */
  const headers = { 'anthropic-beta': 'structured-outputs-2025-11-13' };

  test.each([
    ['chat', { response_format: { type: 'json_schema', json_schema: { schema } } }],
    ['responses', { text: { format } }],
    ['messages', { output_config: { format } }],
    ['gemini', { generationConfig: { responseMimeType: 'application/json', responseJsonSchema: schema } }],
  ])('arrives in the words of the provider (%s)', async (model, expected) => {
    upstream.script(ok({ text: '{"city":"Oslo"}' }));
    const { status, headers: answered } = await ask(model, { output_format: format }, { headers });
    expect([status, answered.get('x-dragoman-warnings')]).toEqual([200, null]);
    expect(sent()).toMatchObject(expected);
    expect(sent()).not.toHaveProperty('output_format');
  });

  test('is read only where the newer name is absent, and a mistake in it is named as it was written', async () => {
    upstream.script(ok());
    await ask('messages', { output_config: { format }, output_format: { ...format, schema: {} } });
    expect(sent()).toMatchObject({ output_config: { format } });
    const refused = await ask('chat', { output_format: { type: 'json_schema' } });
    expect([refused.status, refused.raw]).toEqual([400, expect.stringContaining('output_format.schema')]);
  });
});

describe('an answer of a provider of the same API', () => {
  const usage = { input_tokens: 1234, cache_read_input_tokens: 1000, cache_creation_input_tokens: 300 };
  const lines = [
    {
      type: 'message_start',
      message: { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, stop_sequence: null, usage },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'compaction', content: null } },
    { type: 'content_block_delta', index: 0, delta: { type: 'compaction_delta', content: 'They said ', encrypted_content: 'a' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'compaction_delta', content: 'hello.', encrypted_content: 'b' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'compaction', stop_sequence: null }, usage: { ...usage, output_tokens: 5 } },
    { type: 'message_stop' },
  ].map((line) => JSON.stringify(line));

  test('keeps members that newer deltas add, and a newer stop reason; it begins with the tokens that were counted', async () => {
    upstream.script(replay(lines, { last: false }));
    const { raw } = await ask('messages', {}, { stream: true });
    expect(raw).toContain('"content_block":{"type":"compaction","content":"They said hello.","encrypted_content":"b"}');
    expect(raw).toContain('"stop_reason":"compaction"');
    const [start] = raw.split('\n\n');
    expect(start).toMatch(/"input_tokens":1234,"cache_creation_input_tokens":300,"cache_read_input_tokens":1000/);
  });

  test('shows a client of chat completions what was read from the cache and written to it', async () => {
    upstream.script(replay(lines, { last: false }));
    const { raw } = await askFace(server, 'chat', { model: 'messages', content: 'hi', stream: true, more: { stream_options: { include_usage: true } } });
    expect(raw).toContain('"prompt_tokens":2534');
    expect(raw).toMatch(/"cached_tokens":1000,"cache_write_tokens":300/);
    expect(raw).toContain('"finish_reason":"stop"');
  });
});

test('a budget below what the API accepts is between the client and the provider', async () => {
  upstream.script(ok());
  const { status } = await ask('messages', { thinking: { type: 'enabled', budget_tokens: 500 } });
  expect([status, sent()['thinking']]).toEqual([200, { type: 'enabled', budget_tokens: 500 }]);
});

test('a budget of another interface reaches the provider as it is', async () => {
  upstream.script(ok());
  const more = { generationConfig: { maxOutputTokens: 20_000, thinkingConfig: { thinkingBudget: 8192 } } };
  await askFace(server, 'gencompat', { model: 'messages', content: 'hi', stream: false, more });
  expect(sent()['thinking']).toEqual({ type: 'enabled', budget_tokens: 8192 });
});

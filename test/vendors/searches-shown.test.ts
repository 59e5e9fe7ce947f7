import { expect, test } from 'vitest';
import { body, replay } from '../support/fakes/upstream/index.ts';
import { askFace } from '../support/all-faces.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Searches of the provider are shown to messages clients as those of the gateway: Claude Code counts them. https://github.com/router-for-me/CLIProxyAPI/issues/121 */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

const usage = { input_tokens: 10, output_tokens: 10, total_tokens: 20 };
const search = {
  id: 'ws_1',
  type: 'web_search_call',
  status: 'completed',
  action: { type: 'search', query: 'weather', sources: [{ type: 'url', url: 'https://weather.example' }] },
};
const message = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Sun.', annotations: [] }] };
const response = { id: 'resp_1', object: 'response', created_at: 1, status: 'completed', model: 'm', output: [search, message], usage };
const frames = [
  { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
  { type: 'response.output_item.added', output_index: 0, item: { ...search, status: 'in_progress' } },
  { type: 'response.output_item.done', output_index: 0, item: search },
  { type: 'response.output_item.added', output_index: 1, item: { ...message, content: [] } },
  { type: 'response.output_text.delta', output_index: 1, item_id: 'msg_1', content_index: 0, delta: 'Sun.' },
  { type: 'response.output_item.done', output_index: 1, item: message },
  { type: 'response.completed', response },
].map((frame) => JSON.stringify(frame));
const content = {
  candidates: [
    {
      content: { role: 'model', parts: [{ text: 'Sun.' }] },
      finishReason: 'STOP',
      index: 0,
      groundingMetadata: {
        webSearchQueries: ['weather'],
        groundingChunks: [{ web: { uri: 'https://weather.example', title: 'Weather' } }],
        groundingSupports: [],
      },
    },
  ],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
  modelVersion: 'm',
};

test.each([
  ['responses', false],
  ['responses', true],
  ['gemini', false],
  ['gemini', true],
] as const)('of a provider of %s, streamed: %s', async (model, stream) => {
  if (model === 'responses') upstream.script(stream ? replay(frames) : body(JSON.stringify(response)));
  else upstream.script(stream ? replay([JSON.stringify(content)]) : body(JSON.stringify(content)));
  const tools = [{ type: 'web_search_20250305', name: 'web_search' }];
  const { raw, text, status } = await askFace(server, 'messages', { model, content: 'weather?', stream, more: { tools } });
  expect({ status, text }).toEqual({ status: 200, text: 'Sun.' });
  expect(usageIn(raw, stream)).toMatchObject({ server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 } });
  const blocks = stream
    ? [...raw.matchAll(/"content_block":(\{.*\})\}$/gm)].map(([, json]) => JSON.parse(json!) as object)
    : (JSON.parse(raw) as { readonly content: readonly object[] }).content;
  expect(blocks).toContainEqual({
    type: 'server_tool_use',
    id: expect.stringMatching(/^srvtoolu_/) as string,
    name: 'web_search',
    input: stream ? {} : { query: 'weather' },
  });
  expect(raw.includes(inputDelta)).toBe(stream); // clients take the input of a streamed call from its deltas
  expect(blocks).toContainEqual(
    expect.objectContaining({
      type: 'web_search_tool_result',
      content: [expect.objectContaining({ type: 'web_search_result', url: 'https://weather.example' })],
    }),
  );
});

const inputDelta = String.raw`"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"weather\"}"}`;

/** The usage at the end of an answer to a messages client. */
const usageIn = (raw: string, stream: boolean): unknown => {
  const last = stream ? /^data: (.*"type":"message_delta".*)$/m.exec(raw)![1]! : raw;
  return (JSON.parse(last) as { readonly usage: unknown }).usage;
};

const ofClaude = [
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'weather' } },
  {
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: [{ type: 'web_search_result', url: 'https://weather.example', title: 'Weather', encrypted_content: 'c', page_age: null }],
  },
  { type: 'text', text: 'Sun.' },
];

test.each([false, true])('of Claude are shown to clients of other APIs too, and its own get them as they came, streamed: %s', async (stream) => {
  const answer = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: ofClaude, stop_reason: 'end_turn', stop_sequence: null };
  const ran = { web_search_requests: 1, web_fetch_requests: 2, other_requests: 3 };
  const counted = { input_tokens: 10, output_tokens: 10, server_tool_use: ran };
  const parts = ofClaude.flatMap((block, index) => [
    { type: 'content_block_start', index, content_block: block.input ? { ...block, input: {} } : block },
    ...(block.input ? [{ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: JSON.stringify(block.input) } }] : []),
    { type: 'content_block_stop', index },
  ]);
  const streamed = [
    { type: 'message_start', message: { ...answer, content: [], stop_reason: null, usage: counted } },
    ...parts,
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: counted },
    { type: 'message_stop' },
  ];
  const ask = (face: 'responses' | 'messages' | 'gencompat', more: object) => {
    upstream.script(stream ? replay(streamed.map((frame) => JSON.stringify(frame))) : body(JSON.stringify({ ...answer, usage: counted })));
    return askFace(server, face, { model: 'messages', content: 'weather?', stream, more });
  };
  const responses = await ask('responses', { tools: [{ type: 'web_search' }] });
  expect(responses.raw).toMatch(/"type":"web_search_call","status":"completed","action":\{"type":"search","query":"weather"/);
  const gencompat = await ask('gencompat', { tools: [{ googleSearch: {} }] });
  expect(gencompat.raw).toContain('"webSearchQueries":["weather"]');
  if (!stream) {
    const { output } = JSON.parse(responses.raw) as { readonly output: readonly object[] };
    for (const model of ['messages', 'responses', 'chat', 'gemini']) {
      const input = [{ role: 'user', content: 'weather?' }, ...output, { role: 'user', content: 'and tomorrow?' }];
      const next = await server.ask('/v1/responses', { model, input });
      expect([next.status, next.headers.get('x-dragoman-warnings')]).toEqual([200, expect.stringContaining('web_search_call: ')]);
      expect(JSON.stringify(upstream.requests.at(-1)!.json)).not.toContain('web_search');
    }
  }
  const own = await ask('messages', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] });
  expect(own.raw).toContain('"id":"srvtoolu_1"');
  expect(own.raw).toContain('"encrypted_content":"c"');
  expect(own.raw.includes(inputDelta)).toBe(stream);
  expect(own.raw).not.toContain('srvtoolu_gateway');
  expect(usageIn(own.raw, stream)).toMatchObject({ server_tool_use: ran });
});

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
  const blocks = stream
    ? [...raw.matchAll(/"content_block":(\{.*\})\}$/gm)].map(([, json]) => JSON.parse(json!) as object)
    : (JSON.parse(raw) as { readonly content: readonly object[] }).content;
  expect(blocks).toContainEqual({
    type: 'server_tool_use',
    id: expect.stringMatching(/^srvtoolu_/) as string,
    name: 'web_search',
    input: { query: 'weather' },
  });
  expect(blocks).toContainEqual(
    expect.objectContaining({
      type: 'web_search_tool_result',
      content: [expect.objectContaining({ type: 'web_search_result', url: 'https://weather.example' })],
    }),
  );
});

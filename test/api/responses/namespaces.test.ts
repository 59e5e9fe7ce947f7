import { expect, test } from 'vitest';
import { scriptedServer } from '../../support/scripted-server.ts';

/** Namespaces of tools, as Codex has them, with the built-in model: its calls name the namespace. */

const { server } = await scriptedServer();

const path = '/server/chatcompat/v1/responses';
const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = [
  { type: 'namespace', name: 'mcp__weather', description: 'Weather.', tools: [{ type: 'function', name: 'forecast', parameters, strict: false }] },
];
const call = { type: 'function_call', name: 'forecast', namespace: 'mcp__weather', arguments: '{"city":"Rome"}' };

test.each(['required', { type: 'function', name: 'forecast', namespace: 'mcp__weather' }])(
  'tool_choice %o calls a tool of a namespace',
  async (tool_choice) => {
    const answer = await server.ask(path, { model: 'built-in', input: 'What about city: Rome?', tools, tool_choice });
    expect(answer.headers.get('x-dragoman-warnings')).toBeNull();
    expect(await answer.json()).toMatchObject({ status: 'completed', output: [call] });
  },
);

test('a tool of a namespace that the message names is called, streamed too', async () => {
  const asked = { model: 'built-in', input: 'Please call forecast with city: Rome', tools };
  expect(await (await server.ask(path, asked)).json()).toMatchObject({ output: [call] });
  const text = await (await server.ask(path, { ...asked, stream: true })).text();
  const done = text.split('\n\n').find((frame) => frame.startsWith('event: response.output_item.done'));
  expect(JSON.parse(done!.slice(done!.indexOf('data: ') + 6))).toMatchObject({ item: call });
});

test('the schema of a tool in a namespace that nothing satisfies is named by its place', async () => {
  const impossible = { type: 'object', properties: { a: false }, required: ['a'] };
  const inner = [{ type: 'function', name: 'f', parameters: impossible, strict: false }];
  const answer = await server.ask(path, {
    model: 'built-in',
    input: 'hi',
    tools: [{ type: 'namespace', name: 'ns', description: '', tools: inner }],
    tool_choice: 'required',
  });
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: { param: 'tools[0]' } }]);
});

import { expect, test } from 'vitest';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { askFace } from '../support/all-faces.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Conversations in the order in which codex sends them. https://github.com/BerriAI/litellm/pull/32536 */

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

type Json = Readonly<Record<string, unknown>>;
const sent = () => upstream.requests.at(-1)!.json as Json;

const message = (role: string, text: string) => ({ type: 'message', role, content: text });
const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'look', arguments: '{}' });
const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: `seen ${id}` });
const ask = (model: string, input: readonly object[]) => {
  upstream.script(always(ok()));
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
  return askFace(server, 'responses', { model, content: '', stream: false, more: { input, tools } });
};

const messageBetween = [message('user', 'hi'), message('assistant', 'I look.'), call('a'), message('assistant', 'I looked.'), output('a')];

test('a message between a call and its result is in the message of the call', async () => {
  await ask('chat', messageBetween);
  expect(sent()['messages']).toMatchObject([
    { role: 'user' },
    { role: 'assistant', content: [{ text: 'I look.' }, { text: 'I looked.' }], tool_calls: [{ id: 'a' }] },
    { role: 'tool', tool_call_id: 'a' },
  ]);
});

test('it is in the turn of the call on the other wires', async () => {
  await ask('gemini', messageBetween);
  const contents = sent()['contents'] as readonly { readonly role: string; readonly parts: readonly object[] }[];
  expect(contents.map(({ role }) => role)).toEqual(['user', 'model', 'user']);
  expect(contents[2]!.parts).toMatchObject([{ functionResponse: { name: 'look' } }]);
  await ask('messages', messageBetween);
  expect((sent()['messages'] as readonly { readonly role: string }[]).map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
});

test('results follow their calls whatever the user says in between', async () => {
  await ask('chat', [message('user', 'hi'), call('a'), call('b'), output('b'), message('user', 'Wait.'), output('a')]);
  expect((sent()['messages'] as readonly Json[]).map(({ role, tool_call_id: id }) => id ?? role)).toEqual(['user', 'assistant', 'b', 'a', 'user']);
});

test('messages of their own stay messages of their own on the same wire', async () => {
  await ask('responses', [
    message('user', 'hi'),
    message('assistant', 'One.'),
    message('assistant', 'Two.'),
    call('a'),
    message('assistant', 'Three.'),
    output('a'),
  ]);
  expect((sent()['input'] as readonly Json[]).map(({ type }) => type)).toEqual([
    'message',
    'message',
    'message',
    'function_call',
    'message',
    'function_call_output',
  ]);
});

/** Newer models get their tools as an item of the conversation: what codex 0.169 sends for gpt-6-sol. */
const declaration = {
  type: 'additional_tools',
  role: 'developer',
  tools: [
    { type: 'namespace', name: 'functions', description: '', tools: [{ type: 'custom', name: 'exec', description: 'Runs it.' }] },
    { type: 'function', name: 'wait', description: 'Waits.', strict: false, parameters: { type: 'object', properties: {} } },
  ],
};
const declared = (model: string) => {
  upstream.script(always(ok()));
  const more = { input: [declaration, message('user', 'hi')], tool_choice: 'auto', parallel_tool_calls: false };
  return askFace(server, 'responses', { model, content: '', stream: false, more });
};

test('tools that an item of the conversation declares reach a provider of the same wire in that item', async () => {
  expect((await declared('responses')).status).toBe(200);
  expect(sent()).toMatchObject({ input: [declaration, { role: 'user' }], tool_choice: 'auto', parallel_tool_calls: false });
  expect(sent()).not.toHaveProperty('tools');
});

test.each([
  ['chat', (body: Json) => (body['tools'] as readonly { readonly function: Json }[]).map((tool) => tool.function['name'])],
  ['messages', (body: Json) => (body['tools'] as readonly Json[]).map(({ name }) => name)],
  ['gemini', (body: Json) => (body['tools'] as readonly { readonly functionDeclarations: readonly Json[] }[])[0]!.functionDeclarations.map(({ name }) => name)],
])('they are tools like others on the wire %s', async (model, namesIn) => {
  const { status, headers } = await declared(model);
  expect([status, namesIn(sent())]).toEqual([200, [expect.stringMatching(/exec$/), 'wait']]);
  expect(JSON.stringify(sent())).not.toContain('additional_tools');
  expect(headers.get('x-dragoman-warnings') ?? '').not.toContain('additional_tools');
});

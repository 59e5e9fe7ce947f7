import { expect, test } from 'vitest';
import { ok, toolCalls } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

/** Items of a response that come back in the input of a request that continues it: the conversation has each once. */

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

interface Answer {
  readonly id: string;
  readonly output: readonly { readonly id: string; readonly call_id?: string }[];
}
interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly id: string }[];
}

async function create(body: object): Promise<Answer> {
  const answer = await server.ask('/server/chatcompat/v1/responses', { model: 'chat', input: 'hello', ...body });
  expect(answer.status).toBe(200);
  return (await answer.json()) as Answer;
}
const sent = () => (upstream.requests.at(-1)!.json as { readonly messages: readonly Message[] }).messages;

const said = { role: 'assistant', content: 'You said: hello' };

type Echo = (output: Answer['output']) => readonly unknown[];
const echoes: readonly (readonly [string, Echo])[] = [
  ['as they are', (output) => output],
  ['as references', (output) => output.map(({ id }) => ({ type: 'item_reference', id }))],
  ['as bare ids', (output) => output.map(({ id }) => ({ id }))],
];

test.each(echoes)('a call that comes back with its result is one call (%s)', async (_, echo) => {
  upstream.script(toolCalls([{ name: 'look', json: '{}' }]), ok());
  const first = await create({ tools: [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }] });
  const { call_id: id } = first.output[0]!;
  await create({ previous_response_id: first.id, input: [...echo(first.output), { type: 'function_call_output', call_id: id, output: 'go' }] });
  expect(sent()).toMatchObject([{ role: 'user' }, { role: 'assistant', tool_calls: [{ id }] }, { role: 'tool', content: 'go' }]);
});

test.each(echoes)('a text that comes back is said once, in a conversation too (%s)', async (_, echo) => {
  const first = await create({});
  await create({ previous_response_id: first.id, input: [...echo(first.output), { role: 'user', content: 'and then' }] });
  expect(sent()).toMatchObject([{ role: 'user' }, said, { role: 'user' }]);
  const { id: conversation } = (await (await server.ask('/server/chatcompat/v1/conversations', {})).json()) as Answer;
  const { output } = await create({ conversation });
  await create({ conversation, input: echo(output) });
  expect(sent()).toMatchObject([{ role: 'user' }, said]);
});

test('the input items of a response are there once, too', async () => {
  const first = await create({ input: [{ role: 'user', content: 'hello' }] });
  const { data } = (await (await server.ask(`/server/chatcompat/v1/responses/${first.id}/input_items`)).json()) as { readonly data: readonly unknown[] };
  await create({ previous_response_id: first.id, input: [...data, ...first.output, { role: 'user', content: 'and then' }] });
  expect(sent()).toMatchObject([{ role: 'user' }, said, { role: 'user' }]);
});

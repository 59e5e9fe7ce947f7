import { expect, test } from 'vitest';
import { always, toolCalls } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

/** Servers that call a function without parameters may send no arguments at all; the arguments of a response are always JSON. */

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

// oxlint-disable-next-line typescript/no-explicit-any -- answers are read as a client in JavaScript does
type Any = any;
const tools = [{ type: 'function', name: 'now', parameters: { type: 'object', properties: {} } }];
const ask = async (model: string, stream: boolean) => (await server.ask('/v1/responses', { model, input: 'What time is it?', tools, stream })).text();

test.each(['chat', 'responses'])('a call without arguments of a %s provider has an empty object', async (model) => {
  upstream.script(always(toolCalls([{ name: 'now', json: '' }])));
  const { output } = JSON.parse(await ask(model, false)) as { readonly output: readonly Any[] };
  expect(output).toMatchObject([{ type: 'function_call', name: 'now', arguments: '{}' }]);
});

test.each(['chat', 'responses'])('so it has in a stream of a %s provider', async (model) => {
  upstream.script(always(toolCalls([{ name: 'now', json: '' }])));
  const frames = (await ask(model, true)).split('\n').flatMap((line): Any[] => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []));
  const of = (type: string) => frames.filter((frame) => frame.type === type);
  expect(of('response.function_call_arguments.delta').map(({ delta }) => delta)).toEqual(['{}']);
  expect(of('response.function_call_arguments.done')).toMatchObject([{ arguments: '{}' }]);
  expect(of('response.output_item.done')).toMatchObject([{ item: { arguments: '{}' } }]);
  expect(of('response.completed')[0].response.output).toMatchObject([{ arguments: '{}' }]);
});

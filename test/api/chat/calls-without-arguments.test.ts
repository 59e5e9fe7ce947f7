import { expect, test } from 'vitest';
import { always, toolCalls } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

/** Servers that call a function without parameters may send no arguments at all; clients parse what they get as JSON. */

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

interface Call {
  readonly index?: number;
  readonly id?: string;
  readonly function: { readonly name?: string; readonly arguments: string };
}
interface Choice {
  readonly message: { readonly tool_calls: readonly Call[] };
  readonly delta: { readonly tool_calls?: readonly Call[] };
  readonly finish_reason: string | null;
}

const tools = ['now', 'look'].map((name) => ({ type: 'function', function: { name, parameters: { type: 'object', properties: {} } } }));
const ask = async (model: string, stream: boolean) => {
  upstream.script(
    always(
      toolCalls([
        { name: 'now', json: '' },
        { name: 'look', json: '{"at":1}' },
      ]),
    ),
  );
  return (await server.ask('/v1/chat/completions', { model, messages: [{ role: 'user', content: 'What time is it?' }], tools, stream })).text();
};

test.each(['chat', 'responses'])('a call without arguments of a %s provider has an empty object', async (model) => {
  const { choices } = JSON.parse(await ask(model, false)) as { readonly choices: readonly Choice[] };
  expect(choices.map(({ message, finish_reason: why }) => [message.tool_calls.map((call) => call.function.arguments), why])).toEqual([
    [['{}', '{"at":1}'], 'tool_calls'],
  ]);
});

test.each(['chat', 'responses'])('so it has in a stream of a %s provider', async (model) => {
  const frames = (await ask(model, true))
    .split('\n')
    .flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6)) as { choices: Choice[] }] : []));
  const choices = frames.flatMap((frame) => frame.choices);
  const json = ['', ''];
  for (const { index, function: called } of choices.flatMap(({ delta }) => delta.tool_calls ?? [])) json[index!] += called.arguments;
  expect(json).toEqual(['{}', '{"at":1}']);
  expect(choices.map((choice) => choice.finish_reason).filter(Boolean)).toEqual(['tool_calls']);
});

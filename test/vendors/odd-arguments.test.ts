import { expect, test } from 'vitest';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';
import { loopClients } from './tool-loop.ts';

/** Models may write arguments that are no object: a client of the messages interface, which has objects alone, can return its call all the same. */
const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

const client = loopClients.find(({ name }) => name === 'messages')!;
const written: readonly (readonly [string, object])[] = [
  ['[1]', { arguments: '[1]' }],
  ['"s"', { arguments: '"s"' }],
  ['look at it', { arguments: 'look at it' }],
  ['null', {}],
  ['', {}],
  [' {"city":"Rome"}', { city: 'Rome' }],
];
test.each(written.flatMap(([json, input]) => ['chat', 'responses'].map((model) => ({ json, input, model }))))(
  'the arguments $json of a provider of $model are $input, whole and streamed, and come back',
  async ({ json, input, model }) => {
    for (const stream of [false, true]) {
      upstream.reset();
      const calls = [json, '{"city":"Oslo"}'].map((one, at) => ({ id: `call_${at}`, name: 'look', json: one }));
      upstream.script(always(ok({ text: '', tools: calls })));
      const { path, second, answer } = await client.first(server, model, stream);
      const uses = (answer as { type: string; input: object }[]).filter(({ type }) => type === 'tool_use');
      expect(uses.map((use) => use.input)).toEqual([input, { city: 'Oslo' }]);
      const again = await server.ask(path, second);
      await again.text();
      expect(again.status).toBe(200);
    }
  },
);

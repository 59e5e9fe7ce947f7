import { describe, expect, test } from 'vitest';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Some servers give all calls of an answer one id; clients that find results by their ids would lose one. */
const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

const cities = ['Rome', 'Oslo', 'Riga'];
const parameters = { type: 'object', properties: { city: { type: 'string' } } };
const asked = {
  messages: (model: string, stream: boolean): readonly [string, object] => [
    '/server/messages/v1/messages',
    { model, max_tokens: 1000, messages: [{ role: 'user', content: 'Look.' }], tools: [{ name: 'look', input_schema: parameters }], stream },
  ],
  gencompat: (model: string, stream: boolean): readonly [string, object] => [
    `/server/gencompat/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ parts: [{ text: 'Look.' }] }], tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: parameters }] }] },
  ],
};

describe.each(['messages', 'gencompat'] as const)('a client of %s', (face) => {
  test.each(['chat', 'responses', 'messages'].flatMap((wire) => [false, true].map((stream) => ({ wire, stream }))))(
    'gets an id of its own for each call of a provider of $wire, streamed $stream',
    async ({ wire, stream }) => {
      upstream.script(always(ok({ text: '', tools: cities.map((city) => ({ id: 'x', name: 'look', json: JSON.stringify({ city }) })) })));
      const text = await (await server.ask(...asked[face](wire, stream))).text();
      expect(text.match(/"id":"x\w*"/g)).toEqual(['"id":"x"', '"id":"x_2"', '"id":"x_3"']);
    },
  );
});

test('Anthropic is sent distinct ids by a client of its own interface, each result with that of its call', async () => {
  upstream.script(always(ok()));
  const messages = [
    { role: 'user', content: 'Look.' },
    { role: 'assistant', content: cities.map((city) => ({ type: 'tool_use', id: 'x', name: 'look', input: { city } })) },
    { role: 'user', content: cities.map((city) => ({ type: 'tool_result', tool_use_id: 'x', content: city })) },
  ];
  for (const stream of [false, true]) {
    expect((await server.ask('/server/messages/v1/messages', { model: 'messages', max_tokens: 100, messages, stream })).status).toBe(200);
    const sent = (upstream.requests.at(-1)!.json as { messages: { content: object[] }[] }).messages;
    expect(sent[1]!.content).toMatchObject(['x', 'x_2', 'x_3'].map((id, at) => ({ id, input: { city: cities[at] } })));
    expect(sent[2]!.content).toMatchObject(['x', 'x_2', 'x_3'].map((id, at) => ({ tool_use_id: id, content: cities[at] })));
  }
});

import { expect, test } from 'vitest';
import { whole } from '../support/fakes/upstream/answer.ts';
import { badRequest, type Behaviour } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** The number of tokens is the provider's own where it has an endpoint for that. */

const { upstream, server } = await scriptedServer((one) => ({
  yaml: everyWire(one).replace('models:\n', `models:\n  absent: { targets: [{ provider: messages }] }\n  refusing: { targets: [{ provider: messages }] }\n`),
}));

const says = (value: object): Behaviour => ({
  name: 'count',
  answer: () => whole(200, JSON.stringify(value), { 'content-type': 'application/json' }),
});

const count = async (model: string, more: object = {}): Promise<number> => {
  const body = { model, messages: [{ role: 'user', content: 'one two three' }], ...more };
  const answer = await server.ask('/server/messages/v1/messages/count_tokens', body);
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { input_tokens: number }).input_tokens;
};

test('Claude is asked, with what it counts and nothing else', async () => {
  upstream.script(says({ input_tokens: 777 }));
  const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }];
  expect(await count('messages', { system: 'Be brief.', tools, thinking: { type: 'enabled', budget_tokens: 2000 } })).toBe(777);
  const { path, json } = upstream.requests[0]!;
  expect(path).toBe('/v1/messages/count_tokens');
  expect(json).toEqual({
    model: 'messages',
    messages: [{ role: 'user', content: 'one two three' }],
    system: 'Be brief.',
    tools,
    thinking: { type: 'enabled', budget_tokens: 2000 },
  });
});

test('Gemini is asked, through either interface', async () => {
  upstream.script(says({ totalTokens: 88 }), says({ totalTokens: 99 }));
  expect(await count('gemini', { system: 'Be brief.' })).toBe(88);
  expect(upstream.requests[0]).toMatchObject({
    path: '/v1beta/models/gemini:countTokens',
    json: { generateContentRequest: { model: 'models/gemini', contents: [{ role: 'user' }], systemInstruction: {} } },
  });
  const answer = await server.ask('/server/gencompat/v1beta/models/gemini:countTokens', { contents: [{ parts: [{ text: 'hi' }] }] });
  expect(await answer.json()).toEqual({ totalTokens: 99 });
});

test('a provider without the endpoint is asked once, and the number is an estimate', async () => {
  const estimate = await count('chat');
  expect(upstream.requests).toHaveLength(0);
  for (let at = 0; at < 3; at++) expect(await count('absent')).toBe(estimate);
  expect(upstream.requests).toHaveLength(1);
});

test('a conversation that the provider refuses to count is estimated', async () => {
  upstream.script(badRequest({ message: 'messages.0: something is wrong' }));
  expect(await count('refusing')).toBe(await count('chat'));
});

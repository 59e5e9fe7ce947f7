import { describe, expect, test } from 'vitest';
import { always, body, ok, replay, type Behaviour } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';
import { loopClients, type LoopClient } from './tool-loop.ts';

/** Thoughts of Claude that only Claude can read come back to it as all others do: https://platform.claude.com/docs/en/build-with-claude/extended-thinking */
const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

// oxlint-disable-next-line typescript/no-explicit-any -- bodies are read as a provider reads them
type Any = any;

const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'c2lnbmF0dXJl' };
const redacted = { type: 'redacted_thinking', data: 'cmVkYWN0ZWQ=' };
const call = { type: 'tool_use', id: 'toolu_0123456789abcdef0123', name: 'look', input: { city: 'Paris' } };

const message = (content: readonly object[], more: object = {}) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content,
  stop_reason: 'tool_use',
  stop_sequence: null,
  usage: { input_tokens: 10, output_tokens: 10 },
  ...more,
});
const framesOf = (content: readonly object[]) =>
  [
    { type: 'message_start', message: message([], { stop_reason: null }) },
    ...content.flatMap((block, index) => [
      { type: 'content_block_start', index, content_block: block },
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 10 } },
    { type: 'message_stop' },
  ].map((frame) => JSON.stringify(frame));

const claude = (content: readonly object[]): Behaviour =>
  always({
    name: 'Claude',
    answer(exchange) {
      const { messages, stream } = exchange.request.json as Any;
      if (messages.some(({ role }: Any) => role === 'assistant')) return ok({ text: 'It rains.' }).answer(exchange);
      return (stream ? replay(framesOf(content)) : body(JSON.stringify(message(content)))).answer(exchange);
    },
  });

const ways = loopClients.flatMap((client) => [
  { client, name: client.name, how: 'whole', stream: false },
  { client, name: client.name, how: 'streamed', stream: true },
]);

async function second(client: LoopClient, stream: boolean, content: readonly object[]) {
  upstream.script(claude(content));
  const { path, second: sent } = await client.first(server, 'messages', stream);
  const given = await server.ask(path, sent);
  await given.text();
  return { status: given.status, warnings: given.headers.get('x-dragoman-warnings') ?? '', sent: upstream.requests.at(-1)!.json as Any };
}

describe.each([
  { what: 'behind a thought that can be read', content: [thinking, redacted, call] },
  { what: 'before one', content: [redacted, thinking, call] },
  { what: 'alone', content: [redacted, redacted, call] },
])('a redacted thought $what', ({ content }) => {
  test.each(ways)('comes back from a client of $name, $how', async ({ client, stream }) => {
    const { status, warnings, sent } = await second(client, stream, content);
    expect([status, warnings]).toEqual([200, expect.not.stringContaining('think')]);
    expect(sent.messages[1].content).toEqual(content);
  });
});

test('a redacted thought before a text comes back from a client of gencompat that asked for thoughts', async () => {
  const content = [redacted, { type: 'text', text: 'It rains.' }];
  upstream.script(claude(content));
  const path = '/server/gencompat/v1beta/models/messages:generateContent';
  const question = { role: 'user', parts: [{ text: 'What is the weather in Rome?' }] };
  const generationConfig = { thinkingConfig: { includeThoughts: true } };
  const { candidates } = (await (await server.ask(path, { contents: [question], generationConfig })).json()) as Any;
  const given = await server.ask(path, { generationConfig, contents: [question, candidates[0].content, { role: 'user', parts: [{ text: 'Thanks.' }] }] });
  await given.text();
  expect((upstream.requests.at(-1)!.json as Any).messages[1].content).toEqual(content);
});

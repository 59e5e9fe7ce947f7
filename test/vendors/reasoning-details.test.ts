import { describe, expect, test } from 'vitest';
import { always, body, ok, replay, type Behaviour } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';
import { loopClients, type LoopClient } from './tool-loop.ts';

/** OpenRouter wants the `reasoning_details` of its answers back: https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks */
const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

// oxlint-disable-next-line typescript/no-explicit-any -- bodies are read as a provider reads them
type Any = any;

const thought = 'The user wants to know the weather. ';
const signed = { type: 'reasoning.text', text: thought, signature: 'c2lnbmF0dXJl', format: 'anthropic-claude-v1', index: 0 };
const encrypted = { type: 'reasoning.encrypted', data: 'ZW5jcnlwdGVk', format: 'google-gemini-v1', id: 'tool_1', index: 1 };
const call = { id: 'tool_0123456789abcdef0123', type: 'function', function: { name: 'look', arguments: '{"city":"Paris"}' } };
const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
const answer = (choice: object, more: object = {}) =>
  JSON.stringify({ id: 'gen-1', object: 'chat.completion', created: 1, model: 'm', choices: [choice], ...more });
const chunk = (delta: object, reason: string | null = null, more: object = {}) => answer({ index: 0, delta, finish_reason: reason }, more);

const whole = answer(
  {
    index: 0,
    message: { role: 'assistant', content: null, reasoning: thought, reasoning_details: [signed, encrypted], tool_calls: [call] },
    finish_reason: 'tool_calls',
  },
  { usage },
);
/** The text of a detail in pieces with the signature in the last one; Gemini's signature comes behind the call that it belongs to. */
const pieces = [
  chunk({ role: 'assistant', content: '', reasoning: 'The user wants ', reasoning_details: [{ ...signed, text: 'The user wants ', signature: null }] }),
  chunk({ reasoning: 'to know the weather. ', reasoning_details: [{ ...signed, text: 'to know the weather. ', signature: null }] }),
  chunk({ reasoning_details: [{ ...signed, text: undefined }] }),
  chunk({ tool_calls: [{ index: 0, ...call }] }),
  chunk({ reasoning_details: [encrypted] }),
  chunk({ content: '' }, 'tool_calls', { usage }),
  '[DONE]',
];

const openrouter: Behaviour = always({
  name: 'OpenRouter',
  answer(exchange) {
    const { messages, stream } = exchange.request.json as Any;
    if (messages.some(({ role }: Any) => role === 'assistant')) return ok({ text: 'It rains.' }).answer(exchange);
    return (stream ? replay(pieces) : body(whole)).answer(exchange);
  },
});

const ways = loopClients.flatMap((client) => [
  { client, name: client.name, how: 'whole', stream: false },
  { client, name: client.name, how: 'streamed', stream: true },
]);

async function second(client: LoopClient, stream: boolean) {
  upstream.script(openrouter);
  const { path, second: sent } = await client.first(server, 'chat', stream);
  const given = await server.ask(path, sent);
  return {
    status: given.status,
    text: await given.text(),
    message: (upstream.requests.at(-1)!.json as Any).messages.find(({ role }: Any) => role === 'assistant'),
  };
}

describe('reasoning_details', () => {
  test.each(ways)('come back from a client of $name, $how', async ({ client, stream }) => {
    const { status, message } = await second(client, stream);
    expect(status).toBe(200);
    expect(message.reasoning_details).toEqual([signed, encrypted]);
    expect(message.tool_calls).toEqual([call]);
  });

  test('of a client that returns them itself are not doubled', async () => {
    upstream.script(openrouter);
    const path = '/server/chatcompat/v1/chat/completions';
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }];
    const messages = [{ role: 'user', content: 'What is the weather today?' }];
    const { choices } = (await (await server.ask(path, { model: 'chat', tools, messages })).json()) as Any;
    const result = { role: 'tool', tool_call_id: call.id, content: 'Rain.' };
    const given = await server.ask(path, { model: 'chat', tools, messages: [...messages, choices[0].message, result] });
    await given.text();
    expect((upstream.requests.at(-1)!.json as Any).messages[1].reasoning_details).toEqual([signed, encrypted]);
  });
});

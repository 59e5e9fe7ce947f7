import Anthropic, { APIError, AuthenticationError, BadRequestError, NotFoundError, RateLimitError } from '@anthropic-ai/sdk';
import { describe, expect, test } from 'vitest';
import { always, cut, errorEvent, ok, pace, sliced, slowThinker, tooMany } from '../support/fakes/upstream/index.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** The real SDK against the real server, before a model of each wire and the built-in one. */
const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: ["sk-claude"] }
  gpt: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: ["sk-gpt"] }
models:
  claude-x: { targets: [{ provider: claude }] }
  gpt-x: { targets: [{ provider: gpt }] }
limits: { holdHeadersSeconds: 1 }
routing: { cooldownSeconds: 0 }
`,
}));
const client = new Anthropic({ apiKey: server.key, baseURL: `${server.url}/server/messages`, maxRetries: 0 });

const tools: Anthropic.Tool[] = [
  { name: 'look', description: 'Looks at something.', input_schema: { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] } },
];
const asking = (model: string, content = 'Grüße an alle 🐉') => ({ model, max_tokens: 1000, messages: [{ role: 'user' as const, content }] });

describe.each(['claude-x', 'gpt-x'])('the SDK before %s', (model) => {
  test('reads a whole message', async () => {
    upstream.script(ok({ thought: 'hm' }));
    const message = await client.messages.create(asking(model));
    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: 'hm' },
      { type: 'text', text: 'You said: Grüße an alle 🐉' },
    ]);
    expect(message).toMatchObject({ role: 'assistant', stop_reason: 'end_turn', usage: { input_tokens: 4, output_tokens: 7 } });
    expect(message._request_id).toMatch(/^req_/);
  });

  test('adds up a stream of one-byte packets', async () => {
    upstream.script(
      sliced(
        ok({
          thought: 'hm, yes',
          tools: [
            { name: 'look', json: '{"at":"the 🐉"}' },
            { name: 'look', json: '{"at":"it"}' },
          ],
        }),
      ),
    );
    const stream = client.messages.stream({ ...asking(model), tools });
    let text = '';
    stream.on('text', (piece) => (text += piece));
    const message = await stream.finalMessage();
    expect(text).toBe('You said: Grüße an alle 🐉');
    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: 'hm, yes' },
      { type: 'text', text },
      { type: 'tool_use', name: 'look', input: { at: 'the 🐉' } },
      { type: 'tool_use', name: 'look', input: { at: 'it' } },
    ]);
    expect(message).toMatchObject({ stop_reason: 'tool_use', usage: { input_tokens: 4, output_tokens: 10 } });
  });

  test('raises when a stream breaks, whether the provider says so or not', async () => {
    upstream.script(cut({ afterEvents: 6 }), pace(5, errorEvent({ afterEvents: 6 })));
    for (let at = 0; at < 2; at++) await expect(client.messages.stream(asking(model, 'one two three four five')).finalMessage()).rejects.toThrow(APIError);
  });

  test('takes a keep-alive before the first event', async () => {
    upstream.script(slowThinker(1.5));
    expect((await client.messages.stream(asking(model)).finalMessage()).stop_reason).toBe('end_turn');
  });

  test('knows a refusal by its kind', async () => {
    upstream.script(always(tooMany({ retryAfter: 1 })));
    const error = await client.messages.create(asking(model)).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ status: 429, type: 'rate_limit_error', requestID: expect.stringMatching(/^req_/) as string });
  });
});

describe('the SDK before the built-in model', () => {
  test('finishes a tool loop', async () => {
    const first = await client.messages.create({ ...asking('built-in', 'Look at the cat.'), tools, tool_choice: { type: 'any' } });
    const use = first.content.find((block) => block.type === 'tool_use');
    expect(use).toMatchObject({ name: 'look' });
    const last = await client.messages.create({
      ...asking('built-in'),
      tools,
      messages: [
        { role: 'user', content: 'Look at the cat.' },
        { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: use!.id, content: 'It sleeps.' }] },
      ],
    });
    expect(last.content).toMatchObject([{ type: 'text', text: expect.stringContaining('It sleeps.') as string }]);
  });

  test('counts tokens and lists models', async () => {
    const { input_tokens } = await client.messages.countTokens({ model: 'built-in', messages: asking('').messages });
    expect(input_tokens).toBe((await client.messages.create(asking('built-in'))).usage.input_tokens);
    const ids: string[] = [];
    for await (const { id } of client.models.list({ limit: 1 })) ids.push(id);
    expect(ids.toSorted()).toEqual(['built-in', 'claude-x', 'gpt-x']);
    expect(await client.models.retrieve('claude-x')).toMatchObject({ type: 'model', id: 'claude-x' });
  });

  test('knows what was wrong', async () => {
    await expect(client.messages.create({ ...asking('built-in'), max_tokens: 0.5 })).rejects.toThrow(BadRequestError);
    await expect(client.messages.create(asking('nobody'))).rejects.toThrow(NotFoundError);
    const stranger = new Anthropic({ apiKey: 'wrong', baseURL: `${server.url}/server/messages`, maxRetries: 0 });
    await expect(stranger.messages.create(asking('built-in'))).rejects.toThrow(AuthenticationError);
  });
});

import { describe, expect, test } from 'vitest';
import { always, ok, refusal, type Behaviour } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';
import { loopClients, type LoopClient } from './tool-loop.ts';

/** The second turn of a tool loop has the thoughts of the first, whatever the client's interface and the provider's. */
const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

// oxlint-disable-next-line typescript/no-explicit-any -- bodies are read as a provider reads them
type Any = any;
const list = (value: unknown): Any[] => (Array.isArray(value) ? value : []);

const thought = 'The user wants to know the weather. ';
const tools = [{ name: 'look', json: '{"city":"Paris"}' }];

/** Refuses what the provider would refuse; calls the tool in the first turn. */
const provider = (refuses: (body: Any) => string | undefined | false, say = { thought, text: '', tools }): Behaviour =>
  always({
    name: 'a provider that wants its thoughts back',
    answer(exchange) {
      const body = exchange.request.json as Any;
      const message = refuses(body);
      if (message) return refusal(400, { message }).answer(exchange);
      const isFirst = list(body.messages ?? body.input ?? body.contents).every(
        ({ role, type }) => role !== 'assistant' && role !== 'model' && type !== 'function_call',
      );
      return ok(isFirst ? say : { text: 'It rains.' }).answer(exchange);
    },
  });

const second = async (client: LoopClient, model: string, stream: boolean) => {
  const { path, second: body, answer } = await client.first(server, model, stream);
  const given = await server.ask(path, body);
  return { status: given.status, text: await given.text(), headers: given.headers, answer, sent: upstream.requests.at(-1)!.json as Any };
};

const ways = loopClients.flatMap((client) => [
  { client, name: client.name, how: 'whole', stream: false },
  { client, name: client.name, how: 'streamed', stream: true },
]);

const withCalls = (body: Any) => list(body.messages).filter(({ tool_calls: calls }) => list(calls).length > 0);

describe('a provider that demands reasoning_content', () => {
  const refusals: readonly (readonly [string, (at: number) => string])[] = [
    ['DeepSeek', () => 'The `reasoning_content` in the thinking mode must be passed back to the API.'],
    ['Kimi', (at) => `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${at}`],
  ];
  describe.each(refusals)('in the words of %s', (_, words) => {
    const demanding = provider((body) => {
      const at = list(body.messages).findIndex(({ tool_calls: calls, reasoning_content: said }) => list(calls).length > 0 && !said);
      return at >= 0 && words(at);
    });
    test.each(ways)('gets it from a client of $name, $how', async ({ client, stream }) => {
      upstream.script(demanding);
      const { status, text, sent } = await second(client, 'chat', stream);
      expect([status, text.includes('It rains.') || text.includes('It')]).toEqual([200, true]);
      expect(withCalls(sent).map(({ reasoning_content: said }) => said)).toEqual([thought]);
    });
  });
});

describe('Claude with a thinking budget', () => {
  const claude = provider(({ messages, thinking }) => {
    const last = list(messages).findLast(({ role }) => role === 'assistant');
    const [begin] = list(last?.content);
    return (
      last &&
      thinking?.type === 'enabled' &&
      begin?.type !== 'thinking' &&
      `messages.1.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${begin?.type}\`.`
    );
  });
  test.each(ways)('still thinks in the second turn of a client of $name, $how', async ({ client, stream }) => {
    upstream.script(claude);
    const { status, sent, headers } = await second(client, 'messages', stream);
    expect([status, headers.get('x-dragoman-warnings') ?? '']).toEqual([200, expect.not.stringContaining('think')]);
    expect(sent.thinking).toMatchObject({ type: 'enabled' });
    expect(sent.messages[1].content[0]).toEqual({ type: 'thinking', thinking: thought, signature: 'c2lnbmF0dXJl' });
  });
});

describe('a client that returns thoughts and has shortened its history', () => {
  const returning = ways.filter(({ name }) => name === 'messages' || name.startsWith('gencompat'));
  const shortened = (body: object): object => JSON.parse(JSON.stringify(body).replace(/What is the weather\? \d+/, 'It was about the weather.')) as object;
  const counted = { thought, text: '', tools: [{ id: 'call_1', name: 'look', json: '{"city":"Paris"}' }] };
  test.each(returning.flatMap((way) => ['chat', 'messages', 'responses'].map((wire) => ({ ...way, wire }))))(
    'of $name, $how, before a provider of $wire',
    async ({ client, stream, wire }) => {
      upstream.script(provider(() => undefined, counted));
      const { path, second: body } = await client.first(server, wire, stream);
      expect((await server.ask(path, shortened(body))).status).toBe(200);
      const sent = upstream.requests.at(-1)!.json as Any;
      const given = {
        chat: () => withCalls(sent)[0].reasoning_content,
        messages: () => sent.messages[1].content[0].thinking,
        responses: () => list(sent.input).find(({ type }) => type === 'reasoning')?.summary[0].text,
      }[wire]!();
      expect(given).toBe(thought);
      expect(JSON.stringify(sent)).not.toMatch(/"text":""|"content":""/); // the end of a stream of the Gemini interface
      expect(JSON.stringify(sent)).not.toContain('ZHJhZ29tYW4u');
    },
  );
});

describe('a client of gencompat that did not ask for thoughts', () => {
  const path = (wire: string, stream: boolean) => `/server/gencompat/v1beta/models/${wire}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`;
  const question = { role: 'user', parts: [{ text: 'What is the weather?' }] };
  const functionDeclarations = [{ name: 'look', parametersJsonSchema: { type: 'object', properties: { city: { type: 'string' } } } }];
  const configs = [undefined, {}, { thinkingBudget: 2000 }, { thinkingLevel: 'HIGH', includeThoughts: false }];
  const contentOf = (answer: string): Any[] => {
    const bodies = answer.startsWith('data: ') ? answer.split('data: ').slice(1) : [answer];
    return bodies.flatMap((body) => list(JSON.parse(body).candidates[0].content.parts));
  };
  const each = ['chat', 'messages', 'responses'].flatMap((wire) => [false, true].flatMap((stream) => configs.map((config) => ({ wire, stream, config }))));

  test.each(each)('gets none of a provider of $wire, streamed $stream, with $config, and they go back all the same', async ({ wire, stream, config }) => {
    upstream.script(provider(() => undefined, { thought, text: '', tools: [{ name: 'look', json: '{"city":"Oslo"}' }] }));
    const rest = { tools: [{ functionDeclarations }], generationConfig: { thinkingConfig: config, maxOutputTokens: 9000 } };
    const answer = await (await server.ask(path(wire, stream), { contents: [question], ...rest })).text();
    const parts = contentOf(answer);
    expect(parts.filter(({ thought: isThought, thoughtSignature }) => isThought !== undefined || thoughtSignature !== undefined)).toEqual([]);
    const [{ functionCall }] = parts;
    const result = { role: 'user', parts: [{ functionResponse: { id: functionCall.id, name: 'look', response: { output: 'rain' } } }] };
    const again = await server.ask(path(wire, stream), { contents: [question, { role: 'model', parts: [{ functionCall }] }, result], ...rest });
    expect(again.status).toBe(200);
    expect(JSON.stringify(upstream.requests.at(-1)!.json)).toContain(thought);
  });

  test.each([false, true])('gets them if it asks, streamed %s', async (stream) => {
    upstream.script(always(ok({ thought, text: 'Rain.' })));
    const generationConfig = { thinkingConfig: { includeThoughts: true } };
    const parts = contentOf(await (await server.ask(path('chat', stream), { contents: [question], generationConfig })).text());
    const texts = Map.groupBy(parts, (part) => part.thought === true);
    expect(
      [true, false].map((shown) =>
        texts
          .get(shown)
          ?.map(({ text }) => text)
          .join(''),
      ),
    ).toEqual([thought, 'Rain.']);
  });
});

describe('Gemini', () => {
  const gemini = provider(({ contents }) => {
    const calls = list(contents).flatMap(({ parts }) => list(parts).filter(({ functionCall }) => functionCall));
    return (
      calls.some(({ thoughtSignature: signature }) => signature !== 'c2lnbmF0dXJl') && 'Function call is missing a thought_signature in functionCall parts.'
    );
  });

  test.each(ways)('gets the signature of its call from a client of $name, $how', async ({ client, stream }) => {
    upstream.script(gemini);
    const { status } = await second(client, 'gemini', stream);
    expect([status, upstream.requests.length]).toEqual([200, 2]);
  });

  test.each(ways)('wants no thoughts back, and a client of $name is not warned of its own, $how', async ({ client, stream }) => {
    upstream.script(provider(() => undefined, { thought, text: 'Let me look.', tools }));
    const { status, headers, sent } = await second(client, 'gemini', stream);
    expect([status, headers.get('x-dragoman-warnings') ?? '']).toEqual([200, expect.not.stringMatching(/thoughts|token/)]);
    if (!client.name.startsWith('gencompat')) expect(JSON.stringify(sent)).not.toContain(thought.trim());
  });
});

describe('a responses provider', () => {
  const sealed = provider(() => undefined);
  test.each(ways.filter(({ name }) => name !== 'responses without reasoning items'))(
    'gets its encrypted reasoning directly before the call from a client of $name, $how',
    async ({ client, stream }) => {
      upstream.script(sealed);
      const { status, sent } = await second(client, 'responses', stream);
      expect(status).toBe(200);
      const at = list(sent.input).findIndex(({ type }) => type === 'function_call');
      expect(sent.input[at - 1]).toMatchObject({ type: 'reasoning', encrypted_content: 'gAAAAAencrypted' });
    },
  );
});

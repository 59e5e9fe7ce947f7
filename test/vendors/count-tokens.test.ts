import { describe, expect, onTestFinished, test } from 'vitest';
import { whole } from '../support/fakes/upstream/answer.ts';
import { always, badKey, badRequest, failing, ok, on, tooMany, type Behaviour } from '../support/fakes/upstream/index.ts';
import { askFace } from '../support/all-faces.ts';
import { startTestServer } from '../support/server.ts';
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

test('Gemini is asked whatever the form of the name in the address', async () => {
  const one = await startTestServer({
    yaml: `
providers:
  gemini: { dialect: gemini, baseUrl: "${upstream.url}/v1beta", apiKeys: [k] }
models:
  gemini: { tier: flash, targets: [{ provider: gemini, model: gemini-2.5-flash }] }
`,
  });
  onTestFinished(() => one.close());
  for (const name of ['models/gemini', 'publishers/google/models/gemini', 'gemini-2.5-flash', 'gemini-2.5-flash-preview-09-2025', 'flash']) {
    upstream.script(says({ totalTokens: 88 }));
    const answer = await one.ask(`/server/gencompat/v1beta/models/${name}:countTokens`, { contents: [{ parts: [{ text: 'hi' }] }] });
    expect([name, await answer.json()]).toEqual([name, { totalTokens: 88 }]);
    expect(upstream.requests.at(-1)!.path).toBe('/v1beta/models/gemini-2.5-flash:countTokens');
  }
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

describe('a count', () => {
  const open = async (apiKeys: readonly string[]) => {
    const one = await startTestServer({
      yaml: `
providers:
  claude: { dialect: anthropic-messages, baseUrl: "${upstream.url}", apiKeys: [${apiKeys.join(', ')}] }
models:
  m: { targets: [{ provider: claude }] }
routing: { cooldownSeconds: 30 }
`,
    });
    onTestFinished(() => one.close());
    const counted = async () => {
      const answer = await one.ask('/server/messages/v1/messages/count_tokens', { model: 'm', messages: [{ role: 'user', content: 'one two three' }] });
      return { status: answer.status, tokens: ((await answer.json()) as { input_tokens: number }).input_tokens };
    };
    return { counted, ask: (more: object = {}) => askFace(one, 'chat', { model: 'm', content: 'hi', stream: false, more }) };
  };
  const counting = { path: /count_tokens/ };
  const answering = { path: /messages$/ };

  test.each([
    ['401', badKey()],
    ['429', tooMany({ retryAfter: 60 })],
    ['529', failing(529)],
  ])('that is refused with %s is estimated, and answers are not affected', async (_, refusal) => {
    const { counted, ask } = await open(['a', 'b']);
    upstream.script(on(counting, always(refusal)), on(answering, always(ok())));
    const before = upstream.requests.length;
    for (let at = 0; at < 3; at++) expect(await counted()).toMatchObject({ status: 200, tokens: expect.any(Number) as number });
    expect(upstream.requests.length - before).toBeLessThanOrEqual(2); // each key once
    const keys = new Set<string | undefined>();
    for (let at = 0; at < 4; at++) {
      const { status, headers } = await ask();
      expect([status, headers.get('x-dragoman-attempts')]).toEqual([200, '1']);
      keys.add(upstream.requests.at(-1)!.key);
    }
    expect(upstream.requests.slice(-4).map(({ key }) => key)).toEqual(expect.arrayContaining(['a', 'b']));
    expect(upstream.requests.slice(-4).every(({ path }) => path.endsWith('/messages'))).toBe(true);
  });

  test('that a provider refuses because of a field teaches nothing about answers', async () => {
    const { counted, ask } = await open(['a']);
    upstream.script(on(counting, badRequest({ message: 'system: role system is not supported on this model' })), on(answering, always(ok())));
    await counted();
    await ask({ reasoning_effort: 'high', max_tokens: 32_000 });
    expect(JSON.stringify(upstream.requests.at(-1)!.json)).toContain('thinking');
  });

  test('is estimated while the provider is cooling down', async () => {
    const { counted, ask } = await open(['a']);
    upstream.script(on(answering, always(tooMany({ retryAfter: 60 }))), on(counting, always(says({ input_tokens: 777 }))));
    expect((await counted()).tokens).toBe(777);
    expect((await ask()).status).toBe(429);
    const before = upstream.requests.length;
    expect((await counted()).tokens).not.toBe(777);
    expect(upstream.requests).toHaveLength(before);
  });
});

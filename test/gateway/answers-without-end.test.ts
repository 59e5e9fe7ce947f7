import { describe, expect, test } from 'vitest';
import { always, neverEnds, noDone, type Behaviour } from '../support/fakes/upstream/index.ts';
import { chat } from '../support/server.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** Providers whose connection stays open behind a complete answer, as some proxies keep it. */

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  chat: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
  claude: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [k] }
  items: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [k] }
models:
  chat-x: { targets: [{ provider: chat }] }
  claude-x: { targets: [{ provider: claude }] }
  items-x: { targets: [{ provider: items }] }
limits: { streamIdleSeconds: 110 }
`,
}));

const messages = '/server/messages/v1/messages';

const isNotHeldUp = (behaviour: Behaviour) => async (path: string, model: string) => {
  upstream.script(always(behaviour));
  const answer = await server.ask(path, { model, stream: true, max_tokens: 100, messages: [{ role: 'user', content: 'one two three' }] });
  const text = await answer.text();
  expect([answer.status, text]).toEqual([200, expect.stringContaining(path === chat ? '[DONE]' : 'message_stop')]);
  expect(text).not.toContain('error');
};

describe('a stream whose last frame has come is not held up', () => {
  test.concurrent.each([
    [chat, 'chat-x'],
    [chat, 'claude-x'],
    [chat, 'items-x'],
    [messages, 'chat-x'],
  ])('at %s of %s', { timeout: 100_000 }, isNotHeldUp(neverEnds()));
});

describe('a stream whose finish reason and usage have come is not held up, though [DONE] does not come', () => {
  test.concurrent.each([
    [chat, 'chat-x'],
    [messages, 'chat-x'],
  ])('at %s of %s', { timeout: 100_000 }, isNotHeldUp(neverEnds(noDone())));
});

import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { always, badKey, on, tooMany, errorEvent } from '../support/fakes/upstream/index.ts';
import { scriptedServer } from '../support/scripted-server.ts';
import { chat } from '../support/server.ts';

let later = 0;
const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + later };

const names = ['chat', 'responses', 'messages', 'gemini'] as const;
const { upstream, server } = await scriptedServer(({ url }) => ({
  clock,
  yaml: `
providers:
  chat: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k-1, k-2, k-3] }
  responses: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [k-1, k-2, k-3] }
  messages: { dialect: anthropic-messages, baseUrl: "${url}", apiKeys: [k-1, k-2, k-3] }
  gemini: { dialect: gemini, baseUrl: "${url}/v1beta", apiKeys: [k-1, k-2, k-3] }
  other: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k-other] }
models:
${names.map((name) => `  ${name}: { targets: [{ provider: ${name} }] }\n  ${name}-or-other: { targets: [{ provider: ${name} }, { provider: other, model: backup }] }\n`).join('')}
  chat-2: { targets: [{ provider: chat }] }
`,
}));

beforeEach(async () => {
  later += 1000_000; // refused keys are asked again
  await server.ask('/server/admin/regions/reset', {});
});

const ask = async (model: string, more: object = {}) => {
  const answer = await server.ask(chat, { model, messages: [{ role: 'user', content: 'Hello' }], ...more });
  await answer.text();
  return answer;
};
const statuses = async (model: string, calls: number, more: object = {}) => {
  const all: number[] = [];
  for (let call = 0; call < calls; call++) all.push((await ask(model, more)).status);
  return all.filter((status) => status !== 200);
};
const timesOf = (key: string) => upstream.requests.filter((request) => request.key === key).length;
/** Seconds that each key must rest. */
const waits = [
  ['k-1', 30],
  ['k-2', 8],
  ['k-3', 50],
] as const;
const spent = (retryAfter = 20) => always(on({ key: 'k-2' }, tooMany({ retryAfter })));

describe.each(names)('a provider of %s', (name) => {
  test('a call whose key is rate-limited goes to the next key, and the key is passed over during its cooldown', async () => {
    upstream.script(spent());
    expect(await statuses(name, 21)).toEqual([]);
    expect(timesOf('k-2')).toBe(1);
    expect(Math.abs(timesOf('k-1') - timesOf('k-3'))).toBeLessThan(3);
    later += 20_000;
    expect(await statuses(name, 12)).toEqual([]);
    expect(timesOf('k-2')).toBe(2);
  });

  test('the target does not cool down, and no other is asked', async () => {
    upstream.script(spent());
    expect(await statuses(`${name}-or-other`, 12)).toEqual([]);
    expect([timesOf('k-2'), timesOf('k-other')]).toEqual([1, 0]);
  });

  test('a limit that an answer of status 200 tells of counts too', async () => {
    upstream.script(always(on({ key: 'k-2' }, errorEvent({ status: 429 }))));
    for (const stream of [true, false]) {
      await server.ask('/server/admin/regions/reset', {});
      expect(await statuses(`${name}-or-other`, 6, { stream })).toEqual([]);
    }
    expect(timesOf('k-2')).toBe(2);
  });
});

test.each(names)('an answer of %s that a limit ends in its middle is not begun again with another key, and the key cools down', async (name) => {
  upstream.script(always(on({ key: 'k-2' }, errorEvent({ afterEvents: 3, status: 429 }))));
  const texts: string[] = [];
  for (let call = 0; call < 6; call++) {
    const answer = await server.ask(chat, { model: name, messages: [{ role: 'user', content: 'Hello' }], stream: true });
    texts.push(await answer.text());
  }
  const broken = texts.filter((text) => !text.includes('[DONE]'));
  expect(broken.length).toBe(1);
  expect(broken[0]).toContain('"error"');
  expect(upstream.requests.length).toBe(6);
  expect(timesOf('k-2')).toBe(1);
});

test('of calls at once one alone tries a key whose rest is over', async () => {
  upstream.script(spent());
  expect(await statuses('chat', 3)).toEqual([]);
  later += 20_000;
  const all = await Promise.all(Array.from({ length: 30 }, async () => (await ask('chat')).status));
  expect(all.filter((status) => status !== 200)).toEqual([]);
  expect(timesOf('k-2')).toBe(2);
});

test('a client is told when the first of the keys may be used, once each of them was asked', async () => {
  for (const [key, retryAfter] of waits) upstream.script(on({ key }, tooMany({ retryAfter })));
  const answer = await ask('chat');
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '8']);
  expect([timesOf('k-1'), timesOf('k-2'), timesOf('k-3')]).toEqual([1, 1, 1]);
});

test('when all keys rest, the target cools down until the first of them may be used', async () => {
  for (const [key, retryAfter] of waits) upstream.script(on({ key }, tooMany({ retryAfter })));
  expect(await statuses('chat-or-other', 6)).toEqual([]);
  expect([timesOf('k-1'), timesOf('k-2'), timesOf('k-3'), timesOf('k-other')]).toEqual([1, 1, 1, 6]);
  later += 8000;
  expect(await statuses('chat-or-other', 4)).toEqual([]);
  expect([timesOf('k-1'), timesOf('k-2'), timesOf('k-3'), timesOf('k-other')]).toEqual([1, 5, 1, 6]);
});

test('a key that is rate-limited for one model goes on answering for others', async () => {
  upstream.script(always(on({ key: 'k-2', model: 'chat' }, tooMany({ retryAfter: 20 }))));
  expect(await statuses('chat', 6)).toEqual([]);
  expect(await statuses('chat-2', 6)).toEqual([]);
  expect(timesOf('k-2')).toBe(3);
});

test('where the key in turn is refused, one in cooldown is asked last', async () => {
  upstream.script(always(on({ key: 'k-1' }, badKey())), spent());
  expect(await statuses('chat', 12)).toEqual([]);
  expect([timesOf('k-1'), timesOf('k-2')]).toEqual([1, 1]);
});

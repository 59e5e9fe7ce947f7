import { beforeEach, expect, test } from 'vitest';
import { on, stream, type Behaviour } from '../support/fakes/upstream/index.ts';
import { chat } from '../support/server.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** Providers whose status says that they refuse, and whose words never end. */

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  one: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [sk-one] }
  two: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [sk-two] }
models:
  either: { targets: [{ provider: one, model: a }, { provider: two, model: b }] }
  first: { targets: [{ provider: one, model: a }] }
limits: { requestSeconds: 110, firstByteSeconds: 110, streamIdleSeconds: 110 }
`,
}));

beforeEach(async () => {
  await server.ask('/server/admin/regions/reset', {});
});

type Sleep = (milliseconds: number) => Promise<void>;

async function* dripping(said: string, sleep: Sleep) {
  for (yield said; ; yield ' ') await sleep(500);
}
const silent = (said: string) => [said];

const refusing = (status: number, ended: typeof silent | typeof dripping, said = ''): Behaviour =>
  on(
    { model: 'a' },
    {
      name: 'refusing',
      answer: ({ sleep }) => ({ ...stream(ended(said, sleep)), status, headers: { 'content-type': 'application/json', 'retry-after': '30' }, end: 'silence' }),
    },
  );

const ask = async (path: string, body: object) => {
  const answer = await server.ask(path, body);
  return { status: answer.status, text: await answer.text() };
};
const messages = [{ role: 'user', content: 'one two three' }];
const asked = () => upstream.requests.map(({ json }) => (json as { model: string }).model);

test.each([
  [401, silent],
  [429, dripping],
  [500, dripping],
  [503, silent],
] as const)('of a provider that answers %d, only the status is waited for long: the next target answers', { timeout: 100_000 }, async (status, ended) => {
  upstream.script(refusing(status, ended));
  expect(await ask(chat, { model: 'either', messages })).toMatchObject({ status: 200 });
  expect(asked()).toEqual(['a', 'b']);
});

test('a target whose refusal does not end cools down', { timeout: 100_000 }, async () => {
  upstream.script(refusing(429, dripping));
  for (let call = 0; call < 2; call++) expect(await ask(chat, { model: 'either', messages })).toMatchObject({ status: 200 });
  expect(asked()).toEqual(['a', 'b', 'b']);
});

test.each([silent, dripping])('what has come of a refusal is its text', { timeout: 100_000 }, async (ended) => {
  upstream.script(refusing(400, ended, '{"error":{"message":"There is no such colour."}}'));
  const { status, text } = await ask(chat, { model: 'first', messages });
  expect(status).toBe(400);
  expect(text).toContain('There is no such colour.');
});

test('a refusal that is longer than what is read of it counts with its status', async () => {
  upstream.script(refusing(429, silent, 'x'.repeat(100_000)));
  expect(await ask(chat, { model: 'either', messages })).toMatchObject({ status: 200 });
  expect(asked()).toEqual(['a', 'b']);
});

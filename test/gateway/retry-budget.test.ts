import { expect, test } from 'vitest';
import { always, hang, on } from '../support/fakes/upstream/index.ts';
import { scriptedServer } from '../support/scripted-server.ts';
import { chat } from '../support/server.ts';

const calls = 150;
const names = Array.from({ length: calls }, (_, at) => `m${at}`);
const models = names.map((name) => `  ${name}: { targets: [{ provider: fake, model: silent-${name} }, { provider: fake, model: good }] }\n`);

const { upstream, server } = await scriptedServer(({ url }) => ({
  upstream: url,
  yaml: `${models.join('')}limits: { hangSeconds: { stream: 1, whole: 1 }, firstByteSeconds: 1 }\n`,
}));

test('of calls whose first target hangs at most a fifth move on, so that there are at most 1.2 tries a request', async () => {
  upstream.script(...names.map((name) => always(on({ model: `silent-${name}` }, hang()))));
  const ask = async (model: string) => (await server.ask(chat, { model, messages: [{ role: 'user', content: 'hello' }] })).status;
  const statuses = await Promise.all(names.map(ask));
  const answered = statuses.filter((status) => status === 200).length;
  expect(answered).toBeGreaterThan(0);
  expect(answered).toBeLessThanOrEqual(calls / 5);
  expect(statuses.filter((status) => status === 504)).toHaveLength(calls - answered);
  expect(upstream.requests).toHaveLength(calls + answered);
});

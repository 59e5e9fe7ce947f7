/* The log has the status that the client got. */
import { expect, test } from 'vitest';
import { notFound } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';
import { visitorsOf } from '../api/native/visitors.ts';

const vectors = '  vectors: { kind: embedding, targets: [{ provider: chat }] }\n';
const { server, upstream } = await scriptedServer((one) => ({
  yaml: `${everyWire(one).replace('models:\n', `models:\n${vectors}`)}defaults: { embedding: vectors }\n`,
}));
const { admin } = visitorsOf(server);

test.each<[path: string, status: number, body: object]>([
  ['/server/query', 400, { message: 'x', model: 'chat' }],
  ['/server/query_stream', 400, { message: 'x', model: 'chat' }],
  ['/server/follow-up-questions', 400, { message: 'x', model: 'chat' }],
  ['/server/execute-plugin', 400, { plugin_name: 'rewrite', plugin_values: { text: 'x' }, model: 'chat' }],
  ['/server/train', 400, { content: 'x', summarize: true, summarize_model: 'chat' }],
  ['/server/train', 400, { content: 'x' }],
  ['/server/chatcompat/v1/chat/completions', 404, { model: 'chat', messages: [{ role: 'user', content: 'x' }] }],
])('%s with a model that its provider does not have is %i, and booked so', async (path, expected, body) => {
  upstream.script(notFound('model'));
  const { status, headers } = await admin('POST', path, body);
  expect(status).toBe(expected);
  const row = () => admin('GET', `/server/mine/logs/${headers.get('x-request-id')}`);
  await expect.poll(async () => (await row()).status, { timeout: 30_000 }).toBe(200);
  expect((await row()).body).toMatchObject({ status: expected, end: 'upstream-failed' });
});

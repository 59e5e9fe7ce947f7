/* Models beside `model` that a request of messages lets its provider ask. */
import { expect, test } from 'vitest';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

const narrow = (await (await server.ask('/server/admin/users/1/keys', { name: 'narrow', models: ['messages'] })).json()) as { readonly key: string };

const ask = (more: object) =>
  fetch(`${server.url}/server/messages/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${narrow.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'messages', max_tokens: 5, messages: [{ role: 'user', content: 'hello' }], ...more }),
  });

const advisor = (model: string) => ({ tools: [{ type: 'advisor_20260301', name: 'advisor', model }] });
const fallbacks = (...models: readonly string[]) => ({ fallbacks: models.map((model) => ({ model })) });

test.each<[string, object]>([
  ['tools[0].model', advisor('chat')],
  ['fallbacks[0].model', fallbacks('chat')],
  ['fallbacks[1].model', fallbacks('messages', 'there-is-none')],
])('%s has to be a model that the key may use', async (_field, more) => {
  for (const stream of [false, true]) {
    const answer = await ask({ stream, ...more });
    expect([answer.status, await answer.json()]).toMatchObject([
      404,
      { error: { type: 'not_found_error', message: expect.stringContaining('does not exist or you do not have access to it') as string } },
    ]);
  }
  expect(upstream.requests).toEqual([]);
});

test('those that it may use go to the provider as they came', async () => {
  const more = { ...advisor('messages'), ...fallbacks('messages') };
  for (const stream of [false, true]) expect((await ask({ stream, ...more })).status).toBe(200);
  expect(upstream.requests.map(({ body }) => JSON.parse(body.toString()) as object)).toMatchObject([more, more]);
});

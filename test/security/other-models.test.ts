/* Models beside `model` that a request lets its provider ask. */
import { expect, test } from 'vitest';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

const narrow = (await (await server.ask('/server/admin/users/1/keys', { name: 'narrow', models: ['messages'] })).json()) as { readonly key: string };

const chatAlone = (await (await server.ask('/server/admin/users/1/keys', { name: 'chat alone', models: ['chat'] })).json()) as { readonly key: string };

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

test('a key for all models may name any that the provider has', async () => {
  const more = fallbacks('there-is-none');
  const answer = await server.ask('/server/messages/v1/messages', {
    model: 'messages',
    max_tokens: 5,
    messages: [{ role: 'user', content: 'hello' }],
    ...more,
  });
  expect(answer.status).toBe(200);
  expect(JSON.parse(upstream.requests.at(-1)!.body.toString())).toMatchObject(more);
});

test('nor may a key for some models name others in the list that some providers of the chat interface take', async () => {
  const headers = { authorization: `Bearer ${chatAlone.key}`, 'content-type': 'application/json' };
  const asked = (models: readonly string[]) =>
    fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ model: 'chat', models, messages: [{ role: 'user', content: 'hello' }] }),
    });
  const refused = await asked(['chat', 'dear/model']);
  expect([refused.status, await refused.json()]).toMatchObject([404, { error: { code: 'model_not_found', param: 'models[1]' } }]);
  expect((await asked(['chat'])).status).toBe(200);
});

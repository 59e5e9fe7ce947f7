/* The log has the status that the client got. */
import { expect, test } from 'vitest';
import { notFound, ok } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';
import { visitorsOf } from '../api/native/visitors.ts';

const vectors = '  vectors: { kind: embedding, targets: [{ provider: chat }] }\n';
const { server, upstream } = await scriptedServer((one) => ({
  yaml: `${everyWire(one, 'abilities: [tools]').replace('models:\n', `models:\n${vectors}`)}defaults: { embedding: vectors }
guard: { checks: [{ name: canaries, when: [after], kind: regex, pattern: canary, action: deny, models: [messages] }] }
`,
}));
const { admin } = visitorsOf(server);

/** The status and the end of each step of a request, as far as they are booked. */
async function bookedOf({ headers }: { readonly headers: Headers }): Promise<unknown> {
  const { status: found, body } = await admin('GET', `/server/mine/logs/${headers.get('x-request-id')}`);
  if (found !== 200) return [];
  const { steps, ...first } = body as unknown as Booked & { readonly steps: readonly Booked[] };
  return [first, ...steps].map(({ status, end }) => [status, end]);
}

interface Booked {
  readonly status: number;
  readonly end: string;
}

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
  const answer = await admin('POST', path, body);
  expect(answer.status).toBe(expected);
  await expect.poll(() => bookedOf(answer)).toEqual([[expected, 'upstream-failed']]);
});

test.each([
  ['chat', 'no check'],
  ['messages', 'a check'],
])('an answer of %s, to which %s applies, is 502 where its repair does not conform either, and the repair is booked so', async (model) => {
  upstream.script(ok({ text: 'no JSON' }), ok({ text: 'again none' }));
  const answer = await admin('POST', '/server/chatcompat/v1/chat/completions', {
    model,
    messages: [{ role: 'user', content: 'x' }],
    response_format: { type: 'json_schema', json_schema: { name: 's', strict: true, schema: { type: 'object' } } },
  });
  expect(answer.status).toBe(502);
  await expect
    .poll(() => bookedOf(answer))
    .toEqual([
      [200, 'completed'],
      [502, 'upstream-failed'],
    ]);
});

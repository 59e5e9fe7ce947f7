import { describe, expect, test } from 'vitest';
import { always, body, replay } from '../support/fakes/upstream/index.ts';
import { askFace } from '../support/all-faces.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** What a provider of the Responses API reports of its hosted tools and of its service tier. */

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  responses: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [k] }
models:
  m: { targets: [{ provider: responses }], price: { input: 1000, output: 1000 } }
`,
}));

type Json = Readonly<Record<string, unknown>>;
const usage = { input_tokens: 10, output_tokens: 10, total_tokens: 20 };
const image = { id: 'ig_1', type: 'image_generation_call', status: 'completed', result: 'iVBO' };
const message = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Done.', annotations: [] }] };
const response = (status: string, more: object = {}) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status,
  model: 'm',
  output: [],
  service_tier: 'auto',
  ...more,
});
const frames = (tier: string) =>
  [
    { type: 'response.created', response: response('in_progress') },
    { type: 'response.output_item.added', output_index: 0, item: { id: 'rs_1', type: 'reasoning', summary: [] } },
    { type: 'response.output_item.done', output_index: 0, item: { id: 'rs_1', type: 'reasoning', summary: [] } },
    { type: 'response.output_item.added', output_index: 1, item: { ...image, status: 'in_progress', result: null } },
    { type: 'response.image_generation_call.partial_image', output_index: 1, item_id: 'ig_1', partial_image_index: 0, partial_image_b64: 'AAAA' },
    { type: 'response.output_item.done', output_index: 1, item: image },
    { type: 'response.output_item.added', output_index: 2, item: { ...message, content: [] } },
    { type: 'response.output_text.delta', output_index: 2, item_id: 'msg_1', content_index: 0, delta: 'Done.' },
    { type: 'response.output_item.done', output_index: 2, item: message },
    { type: 'response.completed', response: response('completed', { output: [image, message], usage, service_tier: tier }) },
  ].map((frame, at) => JSON.stringify({ ...frame, sequence_number: at }));

const events = (raw: string): readonly Json[] => [...raw.matchAll(/^data: (\{.*\})$/gm)].map(([, json]) => JSON.parse(json!) as Json);
const ask = (face: 'responses' | 'chat', stream: boolean) => askFace(server, face, { model: 'm', content: 'hi', stream });

test('events of hosted tools reach clients of the same API, with the places that the items have there', async () => {
  upstream.script(replay(frames('default')));
  const seen = events((await ask('responses', true)).raw);
  const ofImage = seen.filter(({ item_id: id, item }) => id === 'ig_1' || (item as Json | undefined)?.['id'] === 'ig_1');
  expect(ofImage.map(({ type }) => type)).toEqual(['response.output_item.added', 'response.image_generation_call.partial_image', 'response.output_item.done']);
  expect(new Set(ofImage.map(({ output_index: index }) => index)).size).toBe(1);
  expect(ofImage[1]).toMatchObject({ partial_image_b64: 'AAAA', partial_image_index: 0 });
  expect(seen.map(({ sequence_number: number }) => number)).toEqual(seen.map((_, at) => at));
  const last = seen.at(-1)!['response'] as { readonly output: readonly Json[] };
  expect(last.output[ofImage[0]!['output_index'] as number]).toEqual(image);
  expect(last.output).toHaveLength(2);
});

test('items keep the members that are null, which the API requires, on their way to the client and back', async () => {
  const code = { id: 'ci_1', type: 'code_interpreter_call', status: 'completed', container_id: 'cntr_1', code: null, outputs: null };
  upstream.script(always(body(JSON.stringify(response('completed', { output: [code, message], usage })))));
  const path = '/server/chatcompat/v1/responses';
  const ask = async (more: object) =>
    (await (await server.ask(path, { model: 'm', ...more })).json()) as { readonly id: string; readonly output: readonly Json[] };
  const { id, output } = await ask({ input: 'hi' });
  expect(output[0]).toEqual(code);
  await ask({ input: [{ role: 'user', content: 'hi' }, ...output] });
  await ask({ input: 'go on', previous_response_id: id });
  for (const at of [1, 2]) expect((upstream.requests[at]!.json as { readonly input: readonly Json[] }).input[1]).toEqual(code);
});

test('clients of other APIs do not notice them', async () => {
  upstream.script(replay(frames('default')));
  expect(await ask('chat', true)).toMatchObject({ status: 200, text: 'Done.', complete: true });
});

async function costOf(requestId: string): Promise<number | undefined> {
  const answer = await server.ask(`/server/admin/logs/${requestId}`);
  return ((await answer.json()) as { readonly costUsd?: number }).costUsd;
}

describe('the service tier', () => {
  test.each([
    ['flex', 0.01],
    ['priority', 0.04],
    ['default', 0.02],
  ])('that served, %s, is in the response and in its cost', async (tier, cost) => {
    upstream.script(replay(frames(tier)), body(JSON.stringify(response('completed', { output: [message], usage, service_tier: tier }))));
    const streamed = await ask('responses', true);
    expect((events(streamed.raw).at(-1)!['response'] as Json)['service_tier']).toBe(tier);
    const whole = await ask('chat', false);
    expect(JSON.parse(whole.raw)).toMatchObject({ service_tier: tier });
    for (const { headers } of [streamed, whole]) {
      await expect.poll(() => costOf(headers.get('x-request-id')!), { timeout: 30_000 }).toBe(cost);
    }
  });
});

import { expect, test } from 'vitest';
import { always, cut, hang, ok, thinking } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

/** What is left of stored responses and conversations, and what is told of it, when something of them is deleted or changed. */

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

// oxlint-disable-next-line typescript/no-explicit-any -- answers are read as a client in JavaScript does
type Any = any;
const responses = '/server/chatcompat/v1/responses';
const conversations = '/server/chatcompat/v1/conversations';

async function ask(address: string, body?: unknown, method?: string): Promise<Any> {
  const answer = await server.ask(address, body, method === undefined ? undefined : { method });
  return { http: answer.status, ...((await answer.json()) as object) };
}
const create = (more: object) => ask(responses, { model: 'chat', input: 'hello', ...more });
const remove = (id: string) => ask(`${responses}/${id}`, undefined, 'DELETE');
const textsOf = async (id: string) =>
  (await ask(`${conversations}/${id}/items?order=asc`)).data.map(({ role, content }: Any) => `${role}: ${content[0].text}`) as string[];

test.each(['first', 'last'])('a conversation keeps the items of its %s response when that is deleted, and goes on', async (which) => {
  upstream.script(always(ok({ text: 'good day' })));
  const { id } = await ask(conversations, {});
  const first = await create({ input: 'one', conversation: id });
  const last = await create({ input: 'two', conversation: id, instructions: 'Be brief.' });
  const branch = await create({ input: 'aside', previous_response_id: first.id });
  const gone = which === 'first' ? first : last;
  expect(await remove(gone.id)).toEqual({ http: 200, id: gone.id, object: 'response', deleted: true });
  expect([(await ask(`${responses}/${gone.id}`)).http, (await remove(gone.id)).http]).toEqual([404, 404]);
  expect((await create({ previous_response_id: gone.id })).error.param).toBe('previous_response_id');
  expect(await textsOf(id)).toEqual(['user: one', 'assistant: good day', 'user: two', 'assistant: good day']);
  expect((await create({ input: 'three', conversation: id })).http).toBe(200);
  expect(JSON.stringify((upstream.requests.at(-1)!.json as Any).messages)).toMatch(/one.*good day.*two.*good day.*three/);
  expect((await ask(`${conversations}/${id}/items`, { items: [{ role: 'user', content: 'four' }] })).http).toBe(200);
  expect(await textsOf(id)).toHaveLength(7);
  expect((await create({ previous_response_id: branch.id })).http).toBe(200);
});

test.each([{}, { include: ['reasoning.encrypted_content'] }])(
  'the stream of a kept response has the items of its answer, and no other members (%j)',
  async (more) => {
    upstream.script(always(thinking('Hm.')));
    const made = await create({ model: 'responses', ...more });
    expect(made.output.map(({ type }: Any) => type)).toEqual(['reasoning', 'message']);
    const frames = await (await server.ask(`${responses}/${made.id}?stream=true`)).text();
    expect(JSON.parse(/^event: response\.completed\ndata: (.*)$/m.exec(frames)![1]!).response.output).toEqual(made.output);
  },
);

test('what is kept is answered without an input, null included; where nothing is kept, the input is required', async () => {
  upstream.script(always(ok({ text: 'good day' })));
  const { id } = await ask(conversations, { items: [{ role: 'user', content: 'one' }] });
  for (const input of [undefined, null]) expect(await create({ input, conversation: id })).toMatchObject({ http: 200, status: 'completed' });
  expect(await textsOf(id)).toEqual(['user: one', 'assistant: good day', 'assistant: good day']);
  const { id: first } = await create({});
  const second = await create({ input: undefined, previous_response_id: first });
  const run = await create({ input: undefined, previous_response_id: second.id, background: true });
  await expect.poll(async () => (await ask(`${responses}/${run.id}`)).status).toBe('completed');
  expect((await ask(`${responses}/${second.id}/input_items`)).http).toBe(200);
  const { id: empty } = await ask(conversations, {});
  for (const more of [{}, { conversation: empty }]) expect((await create({ input: undefined, ...more })).error.param).toBe('input');
});

test('a conversation is read, and not added to, where store is false: a warning says so, and a strict client is refused', async () => {
  upstream.script(always(ok({ text: 'good day' })));
  const { id } = await ask(conversations, { items: [{ role: 'user', content: 'one' }] });
  const asked = { model: 'chat', input: 'two', conversation: id, store: false };
  const answer = await server.ask(responses, asked);
  expect([answer.status, answer.headers.get('x-dragoman-warnings')]).toEqual([200, 'conversation: the response is not stored, so nothing is added to it']);
  expect(JSON.stringify(upstream.requests[0]!.json)).toMatch(/one.*two/);
  expect(await textsOf(id)).toEqual(['user: one']);
  const strict = await server.ask(responses, asked, { headers: { 'x-dragoman-strict': 'true' } });
  expect([strict.status, ((await strict.json()) as Any).error.param]).toEqual([400, 'conversation']);
  expect(upstream.requests).toHaveLength(1);
});

test('of several requests that delete a response of a conversation one does it', async () => {
  upstream.script(always(ok()));
  const { id } = await ask(conversations, {});
  const { id: response } = await create({ conversation: id });
  const all = await Promise.all([1, 2, 3, 4].map(() => remove(response)));
  expect(all.map(({ http }) => http).toSorted((one, other) => one - other)).toEqual([200, 404, 404, 404]);
});

test('a response whose conversation was deleted is deleted with its items', async () => {
  upstream.script(always(ok()));
  const { id } = await ask(conversations, {});
  const first = await create({ conversation: id });
  const second = await create({ previous_response_id: first.id });
  await ask(`${conversations}/${id}`, undefined, 'DELETE');
  expect((await remove(first.id)).deleted).toBe(true);
  expect((await create({ previous_response_id: second.id })).error.param).toBe('previous_response_id');
});

test('a run in the background that is deleted leaves nothing in its conversation', async () => {
  upstream.script(hang());
  const { id } = await ask(conversations, { items: [{ role: 'user', content: 'zero' }] });
  const run = await create({ conversation: id, background: true });
  await upstream.arrived(0);
  expect((await remove(run.id)).deleted).toBe(true);
  await upstream.closed(0);
  await expect.poll(() => ask(`/server/admin/logs/req_${run.id.slice(5)}`)).toMatchObject({ status: 499 });
  expect(await textsOf(id)).toEqual(['user: zero']);
});

test('of the items of a response those are left whose responses are', async () => {
  upstream.script(always(ok()));
  const first = await create({});
  const second = await create({ previous_response_id: first.id, input: 'two' });
  const third = await create({ previous_response_id: second.id, input: 'three' });
  const itemsOf = async ({ id }: Any) => (await ask(`${responses}/${id}/input_items?order=asc`)).data.map(({ content }: Any) => content[0].text);
  await remove(first.id);
  expect(await itemsOf(second)).toEqual(['two']);
  expect(await itemsOf(third)).toEqual(['two', second.output[0].content[0].text, 'three']);
  await remove(second.id);
  expect(await itemsOf(third)).toEqual(['three']);
});

test('the metadata of a conversation stays where a change names none, and goes with null', async () => {
  const { id } = await ask(conversations, { metadata: { topic: 'ships' } });
  for (const body of [{}, { items: [] }])
    expect((await ask(`${conversations}/${id}`, body)).error).toMatchObject({ param: 'metadata', code: 'missing_required_parameter' });
  expect((await ask(`${conversations}/${id}`)).metadata).toEqual({ topic: 'ships' });
  expect((await ask(`${conversations}/${id}`, { metadata: null })).metadata).toEqual({});
});

test('a refused item of a conversation is named in the message, too', async () => {
  for (const [item, field] of [
    [5, 'items[0]'],
    [{ role: 'user' }, 'items[0].content'],
  ] as const)
    expect((await ask(conversations, { items: [item] })).error).toMatchObject({ param: field, message: expect.stringMatching(/^items\[0\]/) });
  expect((await ask(conversations, [])).error.message).toBe('The body must be an object.');
});

test('a stored response is streamed for true, not for false, and anything else is 400', async () => {
  upstream.script(ok());
  const { id } = await create({});
  const typeOf = async (stream: string) => (await server.ask(`${responses}/${id}?stream=${stream}`)).headers.get('content-type');
  expect([await typeOf('true'), await typeOf('false')]).toEqual([expect.stringContaining('event-stream'), expect.stringContaining('json')]);
  for (const stream of ['True', '1', '']) expect((await ask(`${responses}/${id}?stream=${stream}`)).error?.param).toBe('stream');
});

test('a stream that fails is kept as it ended, outside of its conversation', async () => {
  const { id } = await ask(conversations, {});
  for (const store of [true, false]) {
    upstream.script(cut({ afterEvents: 3, how: 'reset' }));
    const answer = await server.ask(responses, { model: 'chat', input: 'one two three', stream: true, conversation: id, store });
    const failed = JSON.parse(/event: response.failed\ndata: (.*)/.exec(await answer.text())![1]!).response;
    const kept = await ask(`${responses}/${failed.id}`);
    if (!store) return expect(kept.http).toBe(404);
    expect(kept).toEqual({ http: 200, ...failed });
    expect(kept).toMatchObject({ status: 'failed', error: { code: 'server_error' }, output: [{ status: 'incomplete' }] });
    expect(await textsOf(id)).toEqual([]);
    expect((await remove(failed.id)).deleted).toBe(true);
  }
});

const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
const call = { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' };
const output = { type: 'function_call_output', call_id: 'c1', output: 'rain' };

test.each<[taken: string, sent: readonly string[]]>([
  ['message', ['assistant', 'tool', 'user']],
  ['function_call', ['user', 'user']],
  ['function_call_output', ['user', 'assistant', 'tool', 'user']], // an empty one
])('a conversation with tool calls goes on when its %s is taken out', async (taken, sent) => {
  const { id } = await ask(conversations, { items: [{ role: 'user', content: 'How is it?' }, call, output] });
  const { data } = await ask(`${conversations}/${id}/items`);
  await ask(`${conversations}/${id}/items/${data.find(({ type }: Any) => type === taken).id}`, undefined, 'DELETE');
  upstream.script(always(ok()));
  expect((await create({ input: 'And now?', tools, conversation: id })).http).toBe(200);
  expect((upstream.requests[0]!.json as Any).messages.map(({ role }: Any) => role)).toEqual(sent);
  expect((await create({ input: 'And then?', tools, conversation: id, background: true })).http).toBe(200);
  await upstream.arrived(1);
  expect((await ask(`${conversations}/${id}/items`, { items: [{ role: 'user', content: 'x' }] })).http).toBe(200);
});

test('an item that is taken out of a conversation is that of its response all the same', async () => {
  upstream.script(always(ok({ text: 'good day' })));
  const { id } = await ask(conversations, {});
  const made = await create({ conversation: id });
  await ask(`${conversations}/${id}/items/${made.output[0].id}`, undefined, 'DELETE');
  const next = await create({ previous_response_id: made.id, input: 'two' });
  const run = await create({ previous_response_id: made.id, input: 'two', background: true });
  await upstream.arrived(2);
  await create({ conversation: id, input: 'two' });
  await upstream.arrived(3);
  const roles = upstream.requests.map(({ json }) => (json as Any).messages.map(({ role }: Any) => role));
  const whole = ['user', 'assistant', 'user'];
  expect(roles).toEqual([['user'], whole, whole, ['user', 'user']]);
  for (const one of [next, run]) expect((await ask(`${responses}/${one.id}/input_items`)).data).toHaveLength(3);
});

test('an output may be named by its id behind its call, and nowhere else', async () => {
  upstream.script(always(ok()));
  const { id } = await create({ input: [{ role: 'user', content: 'How is it?' }, call, output], tools });
  const { data } = await ask(`${responses}/${id}/input_items?order=asc`);
  const references = data.map((item: Any) => ({ type: 'item_reference', id: item.id }));
  expect((await create({ input: references, tools })).http).toBe(200);
  expect((upstream.requests[1]!.json as Any).messages).toEqual((upstream.requests[0]!.json as Any).messages);
  expect((await create({ input: [references[2]], tools })).error).toMatchObject({ param: 'input[0].id', code: 'invalid_value' });
});

/* How answers of the native interface end that have nothing to read. */
import { expect, test } from 'vitest';
import { ok, replay, toolCalls } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

async function ask(model: string, more: object = {}): Promise<Record<string, unknown>> {
  const answer = await server.ask('/server/query', { message: 'Where do herons nest?', model, ...more });
  expect(answer.status).toBe(200);
  return JSON.parse((await answer.text()).split('@|@sep@|@').at(-1)!) as Record<string, unknown>;
}

test.each([
  ['chat', 'content_filter', 'The model, or a filter of its provider, refused to answer.'],
  ['messages', 'refusal', 'The model, or a filter of its provider, refused to answer.'],
  ['gemini', 'SAFETY', 'The model, or a filter of its provider, refused to answer.'],
  ['chat', 'length', 'The model reached the most tokens of an answer before it wrote any text.'],
  ['chat', 'stop', 'The answer ended without any text.'],
])('an answer of %s that ends with %s before any text says why, whole and streamed', async (model, finish, error) => {
  for (const streaming of [false, true]) {
    upstream.script(ok({ text: '', finish }));
    expect(await ask(model, { streaming })).toMatchObject({ type: 'completion', message: '', error, status: 200 });
  }
});

test('the text of a refusal is streamed as it comes, in both forms', async () => {
  const said = (refusal: string) => JSON.stringify({ choices: [{ index: 0, delta: { refusal } }] });
  const lines = [said('I will '), said('not.'), JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })];
  const streamed = async (accept: string) => {
    upstream.script(replay(lines));
    return (await server.ask('/server/query_stream', { message: 'Do it.', model: 'chat' }, { headers: { accept } })).text();
  };
  const frames = (await streamed('text/plain')).split('@|@sep@|@').map((frame) => JSON.parse(frame) as object);
  expect(frames[0]).toMatchObject({ type: 'yield', message: 'I will ' }); // the second piece may come too soon for a frame of its own
  expect(frames.at(-1)).toMatchObject({ type: 'completion', message: 'I will not.', error: null });
  const events = [...(await streamed('text/event-stream')).matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!) as object);
  expect(events).toMatchObject([{ delta: 'I will ' }, { delta: 'not.' }, { type: 'completion', message: 'I will not.' }]);
});

test('an answer with text or calls has no error, however it ends', async () => {
  upstream.script(ok({ text: 'In', finish: 'length' }));
  expect(await ask('chat')).toMatchObject({ message: 'In', error: null });
  upstream.script(toolCalls([{ name: 'find', json: '{}' }]));
  expect(await ask('chat', { tools: [{ type: 'function', function: { name: 'find' } }] })).toMatchObject({ message: '', error: null });
});

test('follow-up questions that there are not are no error', async () => {
  upstream.script(ok({ text: '' }));
  const answer = await server.ask('/server/follow-up-questions', { message: 'Where do herons nest?', model: 'chat' });
  expect(await answer.json()).toMatchObject({ message: '', questions: [], error: null, status: 200 });
});

/* Members that some servers would read as the model or as a maximum, and we do not. */
import { expect, test } from 'vitest';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

const messages = [{ role: 'user', content: 'hello' }];
test.each<[string, object]>([
  ['/server/chatcompat/v1/chat/completions', { model: 'chat', messages }],
  ['/server/chatcompat/v1/responses', { model: 'responses', input: 'hello' }],
  ['/server/chatcompat/v1/completions', { model: 'chat', prompt: 'hello' }],
  ['/server/chatcompat/v1/embeddings', { model: 'chat', input: 'hello' }],
  ['/server/chatcompat/v1/audio/speech', { model: 'chat', input: 'hello', voice: 'alloy' }],
  ['/server/chatcompat/v1/images/generations', { model: 'chat', prompt: 'hello' }],
  ['/server/chatcompat/v1/moderations', { model: 'chat', input: 'hello' }],
  ['/server/messages/v1/messages', { model: 'messages', messages, max_tokens: 5 }],
])('%s refuses a model in another case, which a provider written in Go would answer with', async (path, body) => {
  for (const name of ['Model', 'MODEL', 'mODEL']) {
    const answer = await server.ask(path, { ...body, [name]: 'dearer' });
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(`${name} must be spelled model.`)]);
  }
  expect(upstream.requests).toEqual([]);
});

test.each([
  ['Max_Tokens', 'max_tokens'],
  ['MAX_COMPLETION_TOKENS', 'max_completion_tokens'],
  ['max_to\u212aens', 'max_tokens'],
  ['\u017ftream', 'stream'],
  ['N', 'n'],
])('%j, which such a provider would heed in place of %s, is refused', async (name, meant) => {
  const answer = await server.ask('/server/chatcompat/v1/chat/completions', { model: 'chat', messages, [name]: 100 });
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(`${name} must be spelled ${meant}.`)]);
  expect(upstream.requests).toEqual([]);
});

test('other members pass, whatever their case', async () => {
  const answer = await server.ask('/server/chatcompat/v1/chat/completions', { model: 'chat', messages, Extra: 1, topP: 1 });
  expect(answer.status).toBe(200);
});

test('a form with a model in another case is refused, too', async () => {
  const form = new FormData();
  form.set('model', 'chat');
  form.set('Model', 'dearer');
  form.set('file', new File(['RIFF'], 'a.wav'));
  const headers = { authorization: `Bearer ${server.key}` };
  const answer = await fetch(`${server.url}/server/chatcompat/v1/audio/transcriptions`, { method: 'POST', headers, body: form });
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('Model must be spelled model.')]);
  expect(upstream.requests).toEqual([]);
});

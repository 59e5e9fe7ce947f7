/* Members that some servers would read, and we do not. */
import { expect, test } from 'vitest';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

const messages = [{ role: 'user', content: 'hello' }];
const contents = [{ role: 'user', parts: [{ text: 'hello' }] }];
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

test.each<[string, object, string, string]>([
  ['/server/chatcompat/v1/chat/completions', { model: 'chat', messages }, 'Messages', 'messages'],
  ['/server/chatcompat/v1/chat/completions', { model: 'chat', messages }, 'Tools', 'tools'],
  ['/server/chatcompat/v1/chat/completions', { model: 'chat', input: 'hello' }, 'Instructions', 'instructions'],
  ['/server/chatcompat/v1/responses', { model: 'responses', input: 'hello' }, 'Input', 'input'],
  ['/server/chatcompat/v1/responses', { model: 'responses', input: 'hello' }, 'MAX_OUTPUT_TOKENS', 'max_output_tokens'],
  ['/server/chatcompat/v1/responses/input_tokens', { model: 'responses', input: 'hello' }, 'Instructions', 'instructions'],
  ['/server/chatcompat/v1/completions', { model: 'chat', prompt: 'hello' }, 'Prompt', 'prompt'],
  ['/server/chatcompat/v1/completions', { model: 'chat', prompt: 'hello' }, 'Max_Tokens', 'max_tokens'],
  ['/server/chatcompat/v1/embeddings', { model: 'chat', input: 'hello' }, 'Input', 'input'],
  ['/server/chatcompat/v1/embeddings', { model: 'chat', input: 'hello' }, 'Dimensions', 'dimensions'],
  ['/server/chatcompat/v1/audio/speech', { model: 'chat', input: 'hello', voice: 'alloy' }, 'Instructions', 'instructions'],
  ['/server/chatcompat/v1/images/generations', { model: 'chat', prompt: 'hello' }, 'Prompt', 'prompt'],
  ['/server/messages/v1/messages', { model: 'messages', messages, max_tokens: 5 }, 'System', 'system'],
  ['/server/messages/v1/messages', { model: 'messages', messages, max_tokens: 5 }, 'Fallbacks', 'fallbacks'],
  ['/server/messages/v1/messages/count_tokens', { model: 'messages', messages }, 'System', 'system'],
  ['/server/gencompat/v1beta/models/gemini:generateContent', { contents }, 'GenerationConfig', 'generationConfig'],
  ['/server/gencompat/v1beta/models/gemini:generateContent', { contents }, 'Generation_Config', 'generation_config'],
  ['/server/gencompat/v1beta/models/gemini:generateContent', { contents }, 'ServiceTier', 'serviceTier'],
  ['/server/gencompat/v1beta/models/gemini:streamGenerateContent', { contents }, 'Contents', 'contents'],
  ['/server/gencompat/v1beta/models/gemini:countTokens', { contents }, 'SystemInstruction', 'systemInstruction'],
  ['/server/gencompat/v1beta/models/gemini:embedContent', { content: contents[0] }, 'Content', 'content'],
])('at %s with %j, %s is refused: the interface reads %s', async (path, body, name, meant) => {
  const answer = await server.ask(path, { ...body, [name]: 'x' });
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(`${name} must be spelled ${meant}.`)]);
  expect(upstream.requests).toEqual([]);
});

test.each(['generationConfig', 'generation_config'])('so is one of %s', async (config) => {
  const path = '/server/gencompat/v1beta/models/gemini:generateContent';
  const answer = await server.ask(path, { contents, [config]: { maxOutputTokens: 5, MaxOutputTokens: 100 } });
  expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('MaxOutputTokens must be spelled maxOutputTokens.')]);
  expect(upstream.requests).toEqual([]);
});

test('gencompat passes what only other interfaces read', async () => {
  const path = '/server/gencompat/v1beta/models/gemini:generateContent';
  const answer = await server.ask(path, { contents, Stream: true, Max_Tokens: 5, generation_config: { max_output_tokens: 5, topP: 1 } });
  expect(answer.status).toBe(200);
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

import { expect, test } from 'vitest';
import { always, refusal } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

/** Claude Code shortens a conversation when it reads Anthropic's words for one that is too long. */
const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

const openai = "This model's maximum context length is 128000 tokens. However, your messages resulted in 210000 tokens.";
const numbers = ': 210000 tokens > 128000 maximum';
test.each([
  ['chat', { code: 'context_length_exceeded', message: openai }, numbers],
  ['responses', { code: 'context_length_exceeded', message: 'Your input exceeds the context window of this model.' }, ''],
  ['messages', { message: 'prompt is too long: 210000 tokens > 128000 maximum' }, numbers],
  ['gemini', { message: 'The input token count (210000) exceeds the maximum number of tokens allowed (128000).' }, numbers],
])('a provider of %s refuses a long conversation in words that clients of the messages interface know', async (model, words, named) => {
  for (const stream of [false, true]) {
    upstream.script(always(refusal(400, words)));
    const answer = await server.ask('/server/messages/v1/messages', { model, max_tokens: 100, messages: [{ role: 'user', content: 'A long story' }], stream });
    const { error } = (await answer.json()) as { error: { type: string; message: string } };
    expect([answer.status, error.type]).toEqual([400, 'invalid_request_error']);
    expect(error.message).toMatch(`prompt is too long${named}. The conversation is longer than the model's context. It says: `);
    expect(error.message.startsWith('prompt')).toBe(true);
  }
});

import { describe, expect, test } from 'vitest';
import { always, ok } from '../support/fakes/upstream/index.ts';
import { askFace } from '../support/all-faces.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** The Responses API has no stop sequences: the gateway ends the answer. */

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  responses: { dialect: openai-responses, baseUrl: "${url}/v1", apiKeys: [k] }
models:
  m: { targets: [{ provider: responses }] }
`,
}));

const fields = {
  chat: { stop: ['five', 'END'] },
  messages: { stop_sequences: ['five', 'END'] },
  gencompat: { generationConfig: { stopSequences: ['five', 'END'] } },
} as const;

describe.each(['chat', 'messages', 'gencompat'] as const)('a %s client', (face) => {
  test.each([false, true])('gets the text before its stop sequence, and the usage of the whole answer; streamed: %s', async (stream) => {
    upstream.script(always(ok({ text: 'one two three four five six seven', usage: { input: 3, output: 77 } })));
    const usage = stream && face === 'chat' ? { stream_options: { include_usage: true } } : {};
    const answer = await askFace(server, face, { model: 'm', content: 'hi', stream, more: { ...fields[face], ...usage } });
    expect(answer).toMatchObject({ status: 200, text: 'one two three four ', complete: true });
    expect(answer.headers.get('x-dragoman-warnings')).toBeNull();
    expect(answer.raw).toContain('77');
    expect(answer.raw).toMatch(/"finish_reason":"stop"|"stop_reason":"stop_sequence","stop_sequence":"five"|"finishReason":"STOP"/);
    expect(JSON.stringify(upstream.requests[0]!.json)).not.toContain('five');
  });

  test.each([false, true])('gets all of a text without one; streamed: %s', async (stream) => {
    upstream.script(always(ok({ text: 'one two three fiv' })));
    expect((await askFace(server, face, { model: 'm', content: 'hi', stream, more: fields[face] })).text).toBe('one two three fiv');
  });
});

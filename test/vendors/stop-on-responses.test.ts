import { describe, expect, test } from 'vitest';
import { always, cut, ok } from '../support/fakes/upstream/index.ts';
import { askFace } from '../support/all-faces.ts';
import { administrate } from '../support/members.ts';
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

test('what comes after a stop sequence is paid for, also where the answer then breaks off', async () => {
  const words = 'five '.repeat(400);
  upstream.script(cut({ afterEvents: 300, how: 'reset' }, ok({ text: words })));
  const answer = await askFace(server, 'chat', { model: 'm', content: 'hi', stream: true, more: { stop: ['five five'] } });
  expect(answer.complete).toBe(false);
  const row = () =>
    administrate<{ outputTokens: number; provenance: string }>(server, 'GET', `/logs/${answer.headers.get('x-request-id')!}`).catch(() => undefined);
  await expect.poll(row, { timeout: 30_000 }).toMatchObject({ provenance: 'partial' });
  expect((await row())!.outputTokens).toBeGreaterThan(200);
});

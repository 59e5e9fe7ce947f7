import { describe, expect, test } from 'vitest';
import { askFace, everyWay } from '../support/all-faces.ts';
import { whole } from '../support/fakes/upstream/answer.ts';
import { always, on, type Behaviour } from '../support/fakes/upstream/index.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** Claude on Google's cloud platform: the Messages API at other addresses, with the version in the body and the model in the path. */

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  claude:
    dialect: anthropic-messages
    kind: vertex
    project: my-project
    baseUrl: "${url}/{region}/v1"
    credentials: { accessToken: token }
    regions: [us-east5, europe-west1]
models:
  claude-sonnet-4-5: { targets: [{ provider: claude, model: claude-sonnet-4-5@20250929 }] }
routing: { cooldownSeconds: 0 }
`,
}));

const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-5-20250929',
  content: [{ type: 'text', text: 'Hello.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 5, output_tokens: 2 },
};
const frames = [
  { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello.' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
  { type: 'message_stop' },
];
const answers: Behaviour = {
  name: 'Claude',
  answer: ({ request }) =>
    request.path.includes(':streamRawPredict')
      ? whole(200, frames.map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join(''), { 'content-type': 'text/event-stream' })
      : whole(200, JSON.stringify(message), { 'content-type': 'application/json' }),
};
const refuses: Behaviour = { name: 'overloaded', answer: () => whole(503, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}') };

describe('Claude on Vertex', () => {
  test.each(everyWay)('answers each interface (%s, streamed: %s)', async (face, stream) => {
    upstream.script(answers);
    const answer = await askFace(server, face, { model: 'claude-sonnet-4-5', content: 'hi', stream });
    expect({ status: answer.status, text: answer.text, complete: answer.complete }).toEqual({ status: 200, text: 'Hello.', complete: true });
    const [request] = upstream.requests;
    expect(request?.path).toBe(
      `/us-east5/v1/projects/my-project/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929:${stream ? 'streamRawPredict' : 'rawPredict'}`,
    );
    expect(request?.headers['authorization']).toBe('Bearer token');
    expect(request?.json).toMatchObject({ anthropic_version: 'vertex-2023-10-16', messages: [{ role: 'user' }] });
    expect(request?.json).not.toHaveProperty('model');
  });

  test('is asked for beta features in the body', async () => {
    upstream.script(answers);
    await askFace(server, 'messages', {
      model: 'claude-sonnet-4-5',
      content: 'hi',
      stream: false,
      headers: { 'anthropic-beta': 'one-2025-01-01, two-2025-02-02' },
    });
    expect(upstream.requests[0]?.json).toMatchObject({ anthropic_beta: ['one-2025-01-01', 'two-2025-02-02'], anthropic_version: 'vertex-2023-10-16' });
    expect(upstream.requests[0]?.headers).not.toHaveProperty('anthropic-beta');
  });

  test('is asked without beta features that it does not know, at once from then on', async () => {
    upstream.script(
      always({
        name: 'without a beta feature',
        answer: (exchange) => {
          const { anthropic_beta: betas = [] } = exchange.request.json as { readonly anthropic_beta?: readonly string[] };
          const unknown = betas.filter((one) => one.startsWith('prompt-caching-scope')).map((one) => `\`${one}\``);
          if (unknown.length === 0) return answers.answer(exchange);
          const text = `Unexpected value(s) ${unknown.join(', ')} for the \`anthropic-beta\` header. Please consult our documentation at docs.anthropic.com or try again without the header.`;
          return whole(400, JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: text } }), { 'content-type': 'application/json' });
        },
      }),
    );
    const headers = { 'anthropic-beta': 'claude-code-20250219,prompt-caching-scope-2026-01-05' };
    for (let round = 0; round < 2; round++) {
      const answer = await askFace(server, 'messages', { model: 'claude-sonnet-4-5', content: 'hi', stream: false, headers });
      expect([answer.status, answer.headers.get('x-dragoman-warnings')]).toEqual([
        200,
        'anthropic-beta: the provider does not know prompt-caching-scope-2026-01-05.',
      ]);
    }
    await askFace(server, 'messages', {
      model: 'claude-sonnet-4-5',
      content: 'hi',
      stream: false,
      headers: { 'anthropic-beta': 'prompt-caching-scope-2026-01-05' },
    });
    expect(upstream.requests.map(({ json }) => (json as { anthropic_beta?: unknown }).anthropic_beta)).toEqual([
      ['claude-code-20250219', 'prompt-caching-scope-2026-01-05'],
      ['claude-code-20250219'],
      ['claude-code-20250219'],
      undefined,
    ]);
  });

  test('is left for its next region where one is overloaded', async () => {
    upstream.script(always(on({ region: 'us-east5' }, refuses)), answers);
    const answer = await askFace(server, 'chat', { model: 'claude-sonnet-4-5', content: 'hi', stream: false });
    expect([answer.status, answer.headers.get('x-dragoman-region')]).toEqual([200, 'europe-west1']);
  });
});

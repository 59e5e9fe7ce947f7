import { expect, test } from 'vitest';
import { askFace, type Face } from '../../support/all-faces.ts';
import { body, ok, replay } from '../../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../../support/scripted-server.ts';

/** `max_tokens` 0: the cache of Anthropic's API is filled, and nothing is answered. */
const { upstream, server } = await scriptedServer((one) => ({ yaml: everyWire(one) }));

const ask = (face: Face, model: string, more: object) => askFace(server, face, { model, content: 'hi', stream: false, more });

test.each([0, 1])('a limit of 0 is passed on to providers that fill their cache for it, and booked where they count %i tokens', async (output) => {
  const usage = { input_tokens: 3, cache_creation_input_tokens: 2000, cache_read_input_tokens: 0, output_tokens: output };
  const answer = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: 'max_tokens', stop_sequence: null, usage };
  upstream.script(body(JSON.stringify(answer)));
  const { status, raw } = await ask('messages', 'messages', { max_tokens: 0 });
  expect([status, JSON.parse(raw)]).toMatchObject([200, { content: [], stop_reason: 'max_tokens', usage }]);
  expect(upstream.requests[0]!.json).toMatchObject({ max_tokens: 0 });
});

test('a stream with a limit of 0 is passed on as well', async () => {
  const usage = { input_tokens: 3, cache_creation_input_tokens: 2000, cache_read_input_tokens: 0, output_tokens: 0 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, stop_sequence: null, usage };
  const frames = [
    { type: 'message_start', message },
    { type: 'message_delta', delta: { stop_reason: 'max_tokens', stop_sequence: null }, usage: { output_tokens: 0 } },
    { type: 'message_stop' },
  ];
  upstream.script(replay(frames.map((frame) => JSON.stringify(frame))));
  const answer = await askFace(server, 'messages', { model: 'messages', content: 'hi', stream: true, more: { max_tokens: 0 } });
  expect(answer).toMatchObject({ status: 200, complete: true, text: '' });
});

test.each(['chat', 'responses', 'gemini', 'built-in'])('a limit of 0 is refused for the provider %s, which has no such cache', async (model) => {
  upstream.script(ok());
  const { status, raw } = await ask('messages', model, { max_tokens: 0 });
  const message = expect.stringMatching(/^max_tokens must be at least 1/) as string;
  expect([status, JSON.parse(raw)]).toMatchObject([400, { error: { type: 'invalid_request_error', message } }]);
  expect(upstream.requests).toEqual([]);
});

test('a negative limit is refused', async () => {
  expect((await ask('messages', 'messages', { max_tokens: -1 })).status).toBe(400);
});

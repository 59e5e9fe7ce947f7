import { describe, expect, test } from 'vitest';
import { body, failing, ok, type Behaviour } from '../support/fakes/upstream/index.ts';
import { askFace, everyWay, type Face } from '../support/all-faces.ts';
import { scriptedServer } from '../support/scripted-server.ts';

/** The finish reasons of Gemini with which a model has failed. */
const failures = [
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'MALFORMED_RESPONSE',
  'MISSING_THOUGHT_SIGNATURE',
  'TOO_MANY_TOOL_CALLS',
  'OTHER',
  'NO_IMAGE',
  'IMAGE_OTHER',
  'PUP_LIMITED_DISABLED',
  'REASON_OF_TOMORROW',
];

const { upstream, server } = await scriptedServer(({ url }) => ({
  yaml: `
providers:
  google: { dialect: gemini, baseUrl: "${url}/v1beta", apiKeys: [k] }
  spare: { dialect: openai-chat, baseUrl: "${url}/v1", apiKeys: [k] }
models:
  alone: { targets: [{ provider: google }] }
  "*": { targets: [{ provider: google }] }
  both: { targets: [{ provider: google }, { provider: spare }] }
routing: { cooldownSeconds: 0 }
`,
}));

/** An answer of these parts with this finish reason, whole or streamed. */
function answer(stream: boolean, finishReason: string, ...parts: readonly object[]): Behaviour {
  const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 0, totalTokenCount: 3 };
  const candidate = (content: object, more: object = {}) => ({ content, index: 0, ...more });
  const end = { finishReason, finishMessage: 'Malformed function call: print(default_api.look())' };
  const chunks = stream
    ? [...parts.map((part) => ({ candidates: [candidate({ role: 'model', parts: [part] })] })), { candidates: [candidate({}, end)], usageMetadata }]
    : [{ candidates: [candidate(parts.length > 0 ? { role: 'model', parts } : {}, end)], usageMetadata }];
  if (!stream) return body(JSON.stringify(chunks[0]));
  return body(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`).join(''), 'text/event-stream');
}

const ask = (face: Face, stream: boolean, model: string) => askFace(server, face, { model, content: 'Hello there', stream });

/** A conversation with a call that nobody signed. */
function loop(face: Face, model: string, stream: boolean) {
  const call = { id: 'a', name: 'look' };
  const more: Readonly<Record<Face, object>> = {
    chat: {
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } }] },
        { role: 'tool', tool_call_id: 'a', content: 'seen' },
      ],
    },
    responses: {
      input: [
        { role: 'user', content: 'hi' },
        { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: 'a', output: 'seen' },
      ],
    },
    messages: {
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'tool_use', ...call, input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'seen' }] },
      ],
    },
    gencompat: {
      contents: [
        { role: 'user', parts: [{ text: 'hi' }] },
        { role: 'model', parts: [{ functionCall: { ...call, args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { ...call, response: { output: 'seen' } } }] },
      ],
    },
  };
  return { model, content: '', stream, more: more[face] };
}

const endings: Readonly<Record<Face, RegExp>> = {
  chat: /"finish_reason":"length"/,
  responses: /"status":"incomplete"/,
  messages: /"stop_reason":"max_tokens"/,
  gencompat: /"finishReason":"MALFORMED_FUNCTION_CALL"/,
};

describe.each(everyWay)('an answer of Gemini for %s, streamed: %s', (face, stream) => {
  test.each(failures)('that ends with %s before anything was said is asked for elsewhere', async (reason) => {
    upstream.script(answer(stream, reason), ok({ text: 'from elsewhere' }));
    const { status, headers, text, complete } = await ask(face, stream, 'both');
    expect([status, headers.get('x-dragoman-provider'), complete]).toEqual([200, 'spare', true]);
    expect(text).toContain('from elsewhere');
  });

  test('that has nothing but an empty text and a signature is asked for elsewhere', async () => {
    upstream.script(answer(stream, 'MALFORMED_FUNCTION_CALL', { text: '' }), ok({ text: 'from elsewhere' }));
    expect((await ask(face, stream, 'both')).text).toContain('from elsewhere');
    if (stream) return;
    upstream.script(answer(stream, 'OTHER', { text: '', thoughtSignature: 'c2ln' }), ok({ text: 'from elsewhere' }));
    expect((await ask(face, stream, 'both')).text).toContain('from elsewhere');
  });

  test.each(failures)('that ends with %s is a failure where there is no other target', async (reason) => {
    upstream.script(answer(stream, reason));
    const { status, raw } = await ask(face, stream, 'alone');
    expect(status).toBe(502);
    expect(raw).toContain(`without any content: ${reason}.`);
    expect(raw).not.toContain('default_api');
  });

  test.each(['MALFORMED_FUNCTION_CALL', 'PUP_LIMITED_DISABLED', 'CONTINUATION'])(
    'that ended with %s keeps its text, and does not end as if it were all',
    async (reason) => {
      upstream.script(answer(stream, reason, { text: 'I will look. ' }));
      const { status, raw, text } = await ask(face, stream, 'both');
      expect([status, text]).toEqual([200, expect.stringContaining('I will look. ')]);
      expect(raw).toMatch(face === 'gencompat' ? `"finishReason":"${reason}"` : endings[face]);
      expect(raw).not.toMatch(/"(?:stop|end_turn|STOP)"|"status":"completed","type":"response|"type":"response.completed"/);
    },
  );

  test('that lacks the signature of an earlier call is asked for once more, with one, and so are the next', async () => {
    const taught = `taught-${face}-${stream}`;
    const lacking = answer(stream, 'MISSING_THOUGHT_SIGNATURE');
    upstream.script(lacking, ok({ text: 'seen' }), ok({ text: 'seen again' }));
    expect(await askFace(server, face, loop(face, taught, stream))).toMatchObject({ status: 200, text: expect.stringContaining('seen') as string });
    expect((await askFace(server, face, loop(face, taught, stream))).status).toBe(200);
    const signed = upstream.requests.map(({ json }) => JSON.stringify(json).includes('skip_thought_signature_validator'));
    expect(signed).toEqual([false, true, true]);
  });

  test('that shows code and what came of it is text for clients of other APIs', async () => {
    const code = { executableCode: { language: 'PYTHON', code: 'print(6 * 7)' } };
    const result = { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '42\n' } };
    upstream.script(answer(stream, 'STOP', { text: 'I compute.' }, code, result, { text: 'It is 42.' }));
    const { text, raw } = await ask(face, stream, 'alone');
    if (face === 'gencompat') expect(raw).toMatch(/"executableCode":\{"language":"PYTHON"/);
    else expect(text).toBe('I compute.\n```python\nprint(6 * 7)\n```\n\n```\n42\n```\nIt is 42.');
  });

  test('that was thought about and then failed is no answer', async () => {
    upstream.script(answer(stream, 'MALFORMED_RESPONSE', { text: 'Let me see.', thought: true }), failing(503));
    const { status, complete } = await ask(face, stream, 'both');
    expect(status === 503 || !complete).toBe(true);
  });

  test.each([
    ['STOP', 200],
    ['MAX_TOKENS', 200],
    ['SAFETY', 200],
    ['ESCALATION', 200],
    ['CONTINUATION', 200],
  ])('that ends with %s and without content is an answer', async (reason, expected) => {
    upstream.script(answer(stream, reason));
    expect((await ask(face, stream, 'both')).status).toBe(expected);
  });
});

/* Calls of tools in which an answer breaks off: no client may run them with arguments that no model wrote. */
import { describe, expect, test } from 'vitest';
import { askFace } from '../support/all-faces.ts';
import { on, stream as pieces, type Behaviour } from '../support/fakes/upstream/index.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((fake) => ({ yaml: everyWire(fake) }));

const whole = (body: object): Behaviour =>
  on({}, { name: 'whole', answer: () => ({ ...pieces([JSON.stringify(body)]), headers: { 'content-type': 'application/json' } }) });
const framed = (frames: readonly object[]): Behaviour =>
  on({}, { name: 'framed', answer: () => pieces(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`)) });

const half = '{"path":"a.txt","body":"hel';
const call = (index: number, json: string) => ({ index, id: `call_${index}`, type: 'function', function: { name: 'write_file', arguments: json } });
const written = { path: 'b.txt', body: 'all' };
const said = (...cut: readonly string[]) => ({
  role: 'assistant',
  content: 'I write.',
  tool_calls: [JSON.stringify(written), ...cut].map((json, at) => call(at, json)),
});
const completion = (message: object) => ({ id: 'c1', object: 'chat.completion', model: 'm', choices: [{ index: 0, message, finish_reason: 'length' }] });
const chunks = (delta: object) => [
  { id: 'c1', model: 'm', choices: [{ index: 0, delta }] },
  { id: 'c1', model: 'm', choices: [{ index: 0, delta: {}, finish_reason: 'length' }] },
];

const warning = 'tools: the answer ended within a call of write_file, which is left out';

/** The arguments of the calls in a whole answer of these two wires. */
function inputsIn(raw: string): readonly unknown[] {
  const found: unknown[] = [];
  JSON.parse(raw, (name, value: unknown) => {
    if (name === 'args' || name === 'input') found.push(value);
    return value;
  });
  return found;
}

describe.each([
  ['in a text', half],
  ['before they begin', ''],
  ['before an object', '['],
])('a call whose arguments break off %s', (_, cut) => {
  test.each([
    ['gencompat', '"finishReason":"MAX_TOKENS"'],
    ['messages', '"stop_reason":"max_tokens"'],
  ] as const)('is left out of a whole answer to a client of %s, which is told', async (face, end) => {
    upstream.script(whole(completion(said(cut))));
    const { status, raw, text, headers } = await askFace(server, face, { model: 'chat', content: 'hello', stream: false });
    expect({ status, text, inputs: inputsIn(raw), warnings: headers.get('x-dragoman-warnings') }).toEqual({
      status: 200,
      text: 'I write.',
      inputs: [written],
      warnings: warning,
    });
    expect(raw).toContain(end);
  });

  test('is left out of a stream to a client of gencompat', async () => {
    upstream.script(framed(chunks(said(cut))));
    const { raw, text, complete } = await askFace(server, 'gencompat', { model: 'chat', content: 'hello', stream: true });
    expect({ text, complete }).toEqual({ text: 'I write.', complete: true });
    expect(raw.match(/"functionCall"/g)).toHaveLength(1);
    expect(raw).toContain('"finishReason":"MAX_TOKENS"');
  });

  test('is streamed to a client of messages as far as it came, in no object of ours', async () => {
    upstream.script(framed(chunks(said(cut))));
    const { raw, complete } = await askFace(server, 'messages', { model: 'chat', content: 'hello', stream: true });
    expect(complete).toBe(true);
    expect(raw.match(/"type":"tool_use"/g)).toHaveLength(2);
    expect(raw).not.toContain(String.raw`{\"arguments\"`);
    expect(raw).toContain('"stop_reason":"max_tokens"');
  });

  test.each([true, false])('is left out of an answer of the native interface (streamed: %s)', async (streaming) => {
    upstream.script(streaming ? framed(chunks(said(cut))) : whole(completion(said(cut))));
    const answer = await server.ask('/server/query', { message: 'Write it.', model: 'chat', streaming });
    const completed = JSON.parse((await answer.text()).split('@|@sep@|@').at(-1)!) as object;
    expect(completed).toMatchObject({ message: 'I write.', tool_calls: [{ id: 'call_0' }], tool_calls_unified: [{ id: 'call_0', arguments: written }] });
    expect(answer.headers.get('x-dragoman-warnings')?.includes('left out') ?? false).toBe(!streaming);
  });
});

test('an answer of the native interface that has nothing but half a call says why it is empty', async () => {
  upstream.script(whole(completion({ role: 'assistant', content: null, tool_calls: [call(0, half)] })));
  const answer = await server.ask('/server/query', { message: 'Write it.', model: 'chat' });
  expect(await answer.json()).toMatchObject({
    message: '',
    tool_calls: null,
    tool_calls_unified: [],
    error: 'The model reached the most tokens of an answer before it wrote any text.',
  });
});

test.each(['chat', 'gencompat'] as const)('arguments that Gemini streams by their values and that break off are not whole to a client of %s', async (face) => {
  const functionCall = { id: 'f1', name: 'write_file', willContinue: true, partialArgs: [{ jsonPath: '$.content', stringValue: 'hel', willContinue: true }] };
  upstream.script(
    framed([
      { candidates: [{ content: { role: 'model', parts: [{ functionCall }] }, index: 0 }] },
      { candidates: [{ content: { parts: [] }, finishReason: 'MAX_TOKENS', index: 0 }] },
    ]),
  );
  const { raw, complete } = await askFace(server, face, { model: 'gemini', content: 'hello', stream: true });
  expect(complete).toBe(true);
  expect(raw).toMatch(face === 'chat' ? /"finish_reason":"length"/ : /"finishReason":"MAX_TOKENS"/);
  expect(raw).not.toMatch(/"functionCall"|\}"\}/);
});

describe.each([
  ['without arguments', '', {}],
  ['whose arguments are no object', '["a.txt"]', { arguments: '["a.txt"]' }],
])('a call %s before the one that breaks off', (_, complete, input) => {
  const twice = { role: 'assistant', content: 'I write.', tool_calls: [call(0, complete), call(1, half)] };

  test.each(['gencompat', 'messages'] as const)('is whole to a client of %s', async (face) => {
    upstream.script(whole(completion(twice)));
    const { raw, headers } = await askFace(server, face, { model: 'chat', content: 'hello', stream: false });
    expect([inputsIn(raw), headers.get('x-dragoman-warnings')]).toEqual([[input], warning]);
    upstream.script(framed(chunks(twice)));
    const streamed = await askFace(server, face, { model: 'chat', content: 'hello', stream: true });
    expect(streamed.complete).toBe(true);
    if (face === 'gencompat') expect(streamed.raw.match(/"functionCall"/g)).toHaveLength(1);
    if (complete !== '') expect(streamed.raw).toContain(face === 'gencompat' ? JSON.stringify(input) : JSON.stringify(JSON.stringify(input)));
  });

  test('is whole in an answer of the native interface', async () => {
    upstream.script(whole(completion(twice)));
    const answer = await server.ask('/server/query', { message: 'Write it.', model: 'chat' });
    expect(await answer.json()).toMatchObject({ tool_calls: [{ id: 'call_0', function: { arguments: complete } }] });
  });
});

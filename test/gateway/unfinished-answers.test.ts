import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { askFace, faces } from '../support/all-faces.ts';
import type { End } from '../support/fakes/upstream/answer.ts';
import { always, on, replay, stream as pieces, unterminated, type Behaviour } from '../support/fakes/upstream/index.ts';
import { loggedAs } from '../support/members.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((upstream) => ({ yaml: `${everyWire(upstream)}limits: { streamIdleSeconds: 1 }\n` }));

type Wire = 'chat' | 'responses' | 'messages' | 'gemini';
type Frame = Readonly<Record<string, unknown>>;

const begun = (id = 'msg_1') => ({
  type: 'message_start',
  message: { id, type: 'message', role: 'assistant', model: 'm', content: [], usage: { input_tokens: 9, output_tokens: 1 } },
});
const block = (index: number, content: object) => ({ type: 'content_block_start', index, content_block: content });
const tool = { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} };
const piece = (index: number, partial: string) => ({ type: 'content_block_delta', index, delta: { type: 'input_json_delta', partial_json: partial } });
const words = (index: number, text: string) => ({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } });
const stopped = (index: number) => ({ type: 'content_block_stop', index });
const over = (reason: string) => [
  { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage: { output_tokens: 7 } },
  { type: 'message_stop' },
];
const text = [block(0, { type: 'text', text: '' }), words(0, 'Well. '), stopped(0)];

const chunk = (delta: object, finish: string | null = null, id = 'c1') => ({
  id,
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const calling = { role: 'assistant', content: null, tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'look', arguments: '' } }] };
const args = (json: string) => ({ tool_calls: [{ index: 0, function: { arguments: json } }] });

const created = (id = 'resp_1') => ({ type: 'response.created', response: { id, model: 'm', status: 'in_progress', output: [] } });
const item = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '' };
const added = { type: 'response.output_item.added', output_index: 0, item };
const argument = (delta: string) => ({ type: 'response.function_call_arguments.delta', output_index: 0, item_id: 'fc_1', delta });
const completed = (output: readonly object[] = []) => ({
  type: 'response.completed',
  response: { id: 'resp_1', model: 'm', status: 'completed', output, usage: null },
});

const candidate = (parts: readonly object[], more: object = {}, responseId = 'g1') => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...more }],
  modelVersion: 'm',
  responseId,
});
const goesOn = { functionCall: { name: 'look', willContinue: true, partialArgs: [{ jsonPath: '$.at', stringValue: 'Lon', willContinue: true }] } };

const usage = { prompt_tokens: 900, completion_tokens: 4000, total_tokens: 4900 };
const half = '{"at": "Lond';
const spoken = [chunk({ role: 'assistant', content: 'Well' }), chunk({ content: '. ' }), chunk({ content: 'Yes' })];

const broken: readonly (readonly [what: string, wire: Wire, frames: readonly Frame[]])[] = [
  ['a second message_start in the middle of a call', 'messages', [begun(), ...text, block(1, tool), piece(1, half), begun('msg_2'), ...over('tool_use')]],
  ['a call that is stopped before its arguments are whole', 'messages', [begun(), ...text, block(1, tool), piece(1, half), stopped(1), ...over('tool_use')]],
  ['a call that is never stopped', 'messages', [begun(), ...text, block(1, tool), piece(1, '{}'), ...over('tool_use')]],
  ['a text that is never stopped', 'messages', [begun(), block(0, { type: 'text', text: '' }), words(0, 'Well'), ...over('end_turn')]],
  ['the end of a block that never began', 'messages', [begun(), ...text, stopped(1), ...over('end_turn')]],
  [
    'a block that begins where another has not ended',
    'messages',
    [begun(), block(0, tool), piece(0, half), block(0, tool), piece(0, '{}'), stopped(0), ...over('tool_use')],
  ],
  ['an answer that the server aborts', 'chat', [...spoken, chunk({}, 'abort')]],
  ['an answer that Groq stops early', 'chat', [...spoken, { ...chunk({}, 'stop'), x_groq: { id: 'req_1', error: 'over_capacity' } }]],
  [
    'another message in the middle of a call',
    'chat',
    [chunk(calling), chunk(args(half)), chunk({ role: 'assistant', content: 'Well' }, null, 'c2'), chunk({}, 'tool_calls', 'c2')],
  ],
  [
    'a call whose arguments are not whole',
    'chat',
    [chunk({ role: 'assistant', content: 'Well. ' }), chunk(calling), chunk(args(half)), chunk({}, 'tool_calls')],
  ],
  ['a call whose arguments are not whole, as if it had only spoken', 'chat', [chunk(calling), chunk(args(half)), chunk({}, 'stop')]],
  ['choices that are no list', 'chat', [...spoken, { choices: 5 }, chunk({}, 'stop')]],
  ['a choice that is none', 'chat', [...spoken, { choices: [null] }, chunk({}, 'stop')]],
  ['a second response.created', 'responses', [created(), added, argument(half), created('resp_2'), completed()]],
  [
    'a call whose arguments are not whole',
    'responses',
    [created(), added, argument(half), { type: 'response.output_item.done', output_index: 0, item }, completed()],
  ],
  ['a call that is never done', 'responses', [created(), added, argument('{}'), completed()]],
  ['another responseId', 'gemini', [candidate([{ text: 'Well. ' }]), candidate([{ text: 'Yes.' }], { finishReason: 'STOP' }, 'g2')]],
  ['a call whose arguments go on', 'gemini', [candidate([{ text: 'Well. ' }]), candidate([goesOn]), candidate([], { finishReason: 'STOP' })]],
  ['a call within a call', 'gemini', [candidate([goesOn]), candidate([{ functionCall: { name: 'look', args: {} } }], { finishReason: 'STOP' })]],
];

const framed = (frames: readonly Frame[]) => lines(frames).map((line) => `data: ${line}\n\n`);
const lines = (frames: readonly Frame[]) => frames.map((frame) => JSON.stringify(frame));

describe.each(faces)('a client of %s', (face) => {
  test.each(broken)('is informed of %s from a provider of %s, and never told that the answer is complete', async (_, model, frames) => {
    upstream.script(replay(lines(frames)));
    const { complete, error, status, headers } = await askFace(server, face, { model, content: 'hello', stream: true });
    expect(complete).toBe(false);
    expect(status === 200 ? error : 'refused').not.toBe('');
    expect((await loggedAs(server, headers.get('x-request-id')!)).end).toMatch(/^upstream-(cut|failed)$/);
  });

  test.each([
    ['in the middle of an answer', [...framed([chunk({}, 'stop')]), 'data: [DONE]\n\n']],
    ['at the end of the body', []],
  ])('gets the words before a frame without its end %s, then an error, and no more is booked', async (_, after) => {
    const words = JSON.stringify(chunk({ content: 'word '.repeat(20_000) })).slice(0, -40);
    upstream.script(on({}, { name: 'half a frame', answer: () => pieces([...framed(spoken), `data: ${words}`, ...after.map((one) => `\n\n${one}`)]) }));
    const { complete, error, raw, text: said, headers } = await askFace(server, face, { model: 'chat', content: 'hello', stream: true });
    expect({ complete, said }).toEqual({ complete: false, said: 'Well. Yes' });
    expect(error).not.toBe('');
    expect(raw).not.toContain('word word');
    const { end, outputTokens } = await loggedAs(server, headers.get('x-request-id')!);
    expect(end).toBe('upstream-cut');
    expect(outputTokens).toBeLessThan(10);
  });

  const cutShort: readonly (readonly [Wire, readonly Frame[]])[] = [
    ['messages', [begun(), ...text, block(1, tool), piece(1, half), stopped(1), ...over('max_tokens')]],
    ['chat', [chunk({ role: 'assistant', content: 'Well. ' }), chunk(calling), chunk(args(half)), chunk({}, 'length')]],
  ];
  test.each(cutShort)('gets the part of a call that a provider of %s sent before its maximum of tokens ended it', async (model, frames) => {
    upstream.script(replay(lines(frames)));
    const { headers } = await askFace(server, face, { model, content: 'hello', stream: true });
    expect(await loggedAs(server, headers.get('x-request-id')!)).toMatchObject({ end: 'length', status: 200 });
  });
});

/** Answers without what usually follows the reason why they end. */
const finished: readonly (readonly [wire: Wire, frames: readonly Frame[]])[] = [
  ['chat', [...spoken, chunk({}, 'stop')]],
  ['messages', [begun(), ...text, over('end_turn')[0]!]],
  ['gemini', [candidate([{ text: 'Well. ' }]), candidate([{ text: 'Yes' }], { finishReason: 'STOP' })]],
];
const ended = (frames: readonly Frame[], end: End) => on({}, { name: `ends by ${end}`, answer: () => ({ ...pieces(framed(frames)), end }) });

describe.each(['fin', 'reset', 'silence'] as const)('a connection that ends by %s', (end) => {
  /** What the clients of all interfaces get, and how the log says that it ended. */
  async function outcomes(model: Wire, frames: readonly Frame[]) {
    upstream.script(always(ended(frames, end)));
    return Promise.all(
      faces.map(async (face) => {
        const { complete, error, headers } = await askFace(server, face, { model, content: 'hi', stream: true });
        return { face, isWhole: complete && error === '', logged: (await loggedAs(server, headers.get('x-request-id')!)).end };
      }),
    );
  }

  test.each(finished)('is no harm where a provider of %s has given the reason why the answer ends', async (model, frames) => {
    expect(await outcomes(model, frames)).toEqual(faces.map((face) => ({ face, isWhole: true, logged: 'completed' })));
  });

  test.each(finished)('leaves an answer of %s incomplete before that', async (model, frames) => {
    const logged = end === 'silence' ? 'timed-out' : 'upstream-cut';
    expect(await outcomes(model, frames.slice(0, -1))).toEqual(faces.map((face) => ({ face, isWhole: false, logged })));
  });

  test.each(['chat', 'gemini'] as const)('leaves an answer of %s incomplete of which only one of two candidates has ended', async (model) => {
    upstream.script(ended(finished.find(([wire]) => wire === model)![1], end));
    expect((await askFace(server, 'chat', { model, content: 'hi', stream: true, more: { n: 2 } })).error).not.toBe('');
  });
});

test('an answer may go on behind a reason why it ends that each of its pieces has', async () => {
  const [first, last] = ['Well. ', 'Yes'].map((text) => `data: ${JSON.stringify(candidate([{ text }], { finishReason: 'STOP' }))}\n\n`);
  async function* paused() {
    yield first!;
    await setTimeout(700);
    yield last!;
  }
  upstream.script(on({}, { name: 'a pause', answer: () => ({ ...pieces(paused()), end: 'reset' }) }));
  expect(await askFace(server, 'chat', { model: 'gemini', content: 'hi', stream: true })).toMatchObject({ complete: true, error: '', text: 'Well. Yes' });
});

test.each(['chat', 'responses', 'messages', 'gemini'])('a body without its end is no harm where a provider of %s has sent all of its answer', async (model) => {
  for (const face of faces) {
    upstream.script(unterminated());
    const { complete, error, headers } = await askFace(server, face, { model, content: 'hi', stream: true });
    expect([face, complete, error]).toEqual([face, true, '']);
    expect((await loggedAs(server, headers.get('x-request-id')!)).end).toBe('completed');
  }
});

test('an answer that breaks off is booked by its content, whatever else its frames have', async () => {
  upstream.script(replay(lines(spoken)));
  const { headers } = await askFace(server, 'chat', { model: 'chat', content: 'hello', stream: true });
  expect(await loggedAs(server, headers.get('x-request-id')!)).toMatchObject({ end: 'upstream-cut', outputTokens: 3, provenance: 'partial' });
});

test('an answer that breaks off is booked by its text, not by the escapes that its JSON needs', async () => {
  const quotes = Array.from({ length: 40 }, () => chunk({ content: '"\n"\n"\n"\n' }));
  for (const face of ['chat', 'messages'] as const) {
    upstream.script(replay(lines(quotes)));
    const { headers } = await askFace(server, face, { model: 'chat', content: 'hello', stream: true });
    expect([face, await loggedAs(server, headers.get('x-request-id')!)]).toMatchObject([face, { end: 'upstream-cut', outputTokens: 160 }]);
  }
});

test('a repeated message_start at the beginning does no harm', async () => {
  upstream.script(replay(lines([begun(), begun(), ...text, ...over('end_turn')])));
  expect(await askFace(server, 'chat', { model: 'messages', content: 'hello', stream: true })).toMatchObject({ complete: true, text: 'Well. ' });
});

test('IDs and roles in each piece of an answer do no harm', async () => {
  const withRoles = ['Well', '. Yes'].map((content) => chunk({ role: 'assistant', content }));
  const numbered = ['Well', '. Yes'].map((content, at) => chunk({ content }, null, `c${at}`));
  for (const frames of [withRoles, numbered]) {
    upstream.script(replay(lines([...frames, chunk({}, 'stop')])));
    expect(await askFace(server, 'messages', { model: 'chat', content: 'hello', stream: true })).toMatchObject({ complete: true, text: 'Well. Yes' });
  }
});

test.each([
  ['abort', { ...chunk({}, 'abort'), usage }],
  ['x_groq.error', { ...chunk({}, 'stop'), x_groq: { id: 'req_1', error: 'over_capacity', usage } }],
  ['x_groq.error and usage beside it', { ...chunk({}, 'stop'), usage, x_groq: { id: 'req_1', error: 'over_capacity' } }],
  ['error', { ...chunk({}, 'error'), usage, error: { code: 502, message: 'Provider disconnected' } }],
])('an answer that its provider ends early (%s) is booked by the usage that comes with it', async (_, last) => {
  for (const face of ['chat', 'messages'] as const) {
    upstream.script(replay(lines([...spoken, last])));
    const { complete, headers } = await askFace(server, face, { model: 'chat', content: 'hello', stream: true });
    expect(complete).toBe(false);
    expect(await loggedAs(server, headers.get('x-request-id')!)).toMatchObject({ inputTokens: 900, outputTokens: 4000, provenance: 'partial' });
  }
});

test.each(faces)('a whole answer with an incomplete call is not sent to a client of %s', async (face) => {
  const message = { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: half } }] };
  const body = JSON.stringify({ id: 'c1', object: 'chat.completion', model: 'm', choices: [{ index: 0, message, finish_reason: 'tool_calls' }] });
  upstream.script(whole(body));
  expect((await askFace(server, face, { model: 'chat', content: 'hello', stream: false })).status).toBe(502);
});

const whole = (body: string): Behaviour => on({}, { name: 'whole', answer: () => ({ ...pieces([body]), headers: { 'content-type': 'application/json' } }) });

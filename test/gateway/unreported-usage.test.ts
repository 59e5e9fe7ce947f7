import { describe, expect, test } from 'vitest';
import { askFace, everyWay, type Face, type FaceAnswer } from '../support/all-faces.ts';
import { always, on, stream as pieces, usage, type Behaviour } from '../support/fakes/upstream/index.ts';
import { loggedAs } from '../support/members.ts';
import { everyWire, scriptedServer } from '../support/scripted-server.ts';

const { upstream, server } = await scriptedServer((upstream) => ({ yaml: everyWire(upstream) }));

type Value = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Value => typeof value === 'object' && value !== null;

/** The usages in an answer, in their order. */
function usagesIn({ raw }: FaceAnswer): readonly Value[] {
  const values = raw.startsWith('{') ? [raw] : raw.split('\n').flatMap((line) => (line.startsWith('data: {') ? [line.slice(6)] : []));
  return values.flatMap((json) => {
    const value = JSON.parse(json) as Value;
    const { usage: told = value['usageMetadata'] } = isObject(value['response']) ? value['response'] : value;
    return isObject(told) ? [told] : [];
  });
}

const members: Readonly<Record<Face, readonly [input: string, output: string]>> = {
  chat: ['prompt_tokens', 'completion_tokens'],
  responses: ['input_tokens', 'output_tokens'],
  messages: ['input_tokens', 'output_tokens'],
  gencompat: ['promptTokenCount', 'candidatesTokenCount'],
};

const untold: readonly (readonly [told: string, behaviour: Behaviour])[] = [
  ['none', usage('missing')],
  ['null', usage('null')],
  ['numbers below zero and no numbers', usage({ input: -5, output: '11' })],
  ['numbers without end', usage({ input: 1e308, output: 1e308 })],
  ['more than any model reads', usage({ input: 4e9, output: 5e9 })],
  ['nothing but zeros', usage({ input: 0, output: 0, total: 0 })],
];
const wires = ['chat', 'responses', 'messages', 'gemini'] as const;

describe.each(everyWay)('a client of %s (streamed: %s)', (face, stream) => {
  const more = face === 'chat' && stream ? { stream_options: { include_usage: true } } : {};

  const asked = async (behaviour: Behaviour) => {
    upstream.script(always(behaviour));
    const answers = await Promise.all(wires.map((model) => askFace(server, face, { model, content: 'hello', stream, more })));
    return await Promise.all(
      answers.map(async (answer) => ({ answer, usages: usagesIn(answer), row: await loggedAs(server, answer.headers.get('x-request-id')!) })),
    );
  };
  const [input, output] = members[face];

  test.each(untold)('of providers whose usage is %s reads the usage that is booked', async (_told, behaviour) => {
    for (const { answer, usages, row } of await asked(behaviour)) {
      expect(answer).toMatchObject({ status: 200, complete: true });
      expect(row.provenance).toBe('estimated');
      expect(row.outputTokens).toBeGreaterThan(0);
      expect(usages.at(-1)).toMatchObject({ [input]: row.inputTokens, [output]: row.outputTokens });
    }
  });

  test('of providers that report it reads that, a chat client once', async () => {
    for (const { usages, row } of await asked(usage({ input: 11, output: 7, total: 18 }))) {
      expect(usages.at(-1)).toMatchObject({ [input]: 11, [output]: 7 });
      if (face === 'chat') expect(usages).toHaveLength(1);
      expect(row).toMatchObject({ inputTokens: 11, outputTokens: 7, provenance: 'provider' });
    }
  });
});

test.each(wires)('of an answer of %s with words but no output tokens, the input tokens count', async (model) => {
  for (const [face, stream] of everyWay) {
    upstream.script(usage({ input: 11, output: 0, total: 11 }));
    const { headers } = await askFace(server, face, { model, content: 'hello', stream });
    const row = await loggedAs(server, headers.get('x-request-id')!);
    expect(row).toMatchObject({ inputTokens: 11, provenance: 'estimated' });
    expect(row.outputTokens).toBeGreaterThan(0);
  }
});

test('a chat client that does not ask for the usage of a stream gets none', async () => {
  upstream.script(usage('missing'));
  const answer = await askFace(server, 'chat', { model: 'chat', content: 'hello', stream: true });
  expect(answer.complete).toBe(true);
  expect(usagesIn(answer)).toEqual([]);
});

test('the usage is all that is added to an answer that is forwarded', async () => {
  const message = { role: 'assistant', content: 'Well.', of_a_vendor: [1, { a: null }] };
  const sent = { id: 'c1', object: 'chat.completion', created: 1, model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }], region: 'x' };
  const forwarded = async (body: string) => {
    upstream.script(on({}, { name: 'whole', answer: () => ({ ...pieces([body]), headers: { 'content-type': 'application/json' } }) }));
    return (await askFace(server, 'chat', { model: 'chat', content: 'hello', stream: false })).raw;
  };
  expect(JSON.parse(await forwarded(JSON.stringify(sent)))).toEqual({ ...sent, usage: expect.objectContaining({ completion_tokens: 2 }) });
  const counted = JSON.stringify({ ...sent, usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 } }, undefined, 1);
  expect(await forwarded(counted)).toBe(counted);
});

test('more cached tokens than the prompt has are none', async () => {
  const usageMetadata = { promptTokenCount: 10, cachedContentTokenCount: 50, candidatesTokenCount: 3, totalTokenCount: 13 };
  const candidates = [{ content: { role: 'model', parts: [{ text: 'Well.' }] }, finishReason: 'STOP', index: 0 }];
  const body = JSON.stringify({ candidates, usageMetadata, modelVersion: 'm' });
  upstream.script(always(on({}, { name: 'whole', answer: () => ({ ...pieces([body]), headers: { 'content-type': 'application/json' } }) })));
  for (const face of ['chat', 'responses', 'messages', 'gencompat'] as const) {
    const answer = await askFace(server, face, { model: 'gemini', content: 'hello', stream: false });
    expect(usagesIn(answer)).toMatchObject([{ [members[face][0]]: 10, [members[face][1]]: 3 }]);
    expect(await loggedAs(server, answer.headers.get('x-request-id')!)).toMatchObject({ inputTokens: 10, cachedTokens: 0, outputTokens: 3 });
  }
});

test.each([
  ['id', { id: undefined }],
  ['object', { object: undefined }],
  ['created', { created: undefined }],
  ['model', { model: undefined }],
  ['the index of a choice', { choices: [{ message: { role: 'assistant', content: 'Well.' }, finish_reason: 'stop' }] }],
  ['the reason for its end', { choices: [{ index: 0, message: { role: 'assistant', content: 'Well.' } }] }],
])('an answer that would be forwarded but lacks %s is written anew, with all that a chat completion has', async (_member, members) => {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Well.' }, finish_reason: 'stop' }];
  const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 };
  const body = JSON.stringify({ id: 'c1', object: 'chat.completion', created: 1, model: 'm', choices, usage, ...members });
  upstream.script(on({}, { name: 'whole', answer: () => ({ ...pieces([body]), headers: { 'content-type': 'application/json' } }) }));
  const answer = await askFace(server, 'chat', { model: 'chat', content: 'hello', stream: false });
  expect(JSON.parse(answer.raw)).toMatchObject({
    id: expect.any(String) as string,
    object: 'chat.completion',
    created: expect.any(Number) as number,
    model: expect.any(String) as string,
    choices: [{ index: 0, message: { role: 'assistant', content: 'Well.' }, finish_reason: 'stop' }],
    usage,
  });
  expect(await loggedAs(server, answer.headers.get('x-request-id')!)).toMatchObject({ end: 'completed', inputTokens: 3, outputTokens: 1 });
});

test('the count with which a stream of the messages API begins is not that of its answer', async () => {
  const event = (type: string, members: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
  const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage: { input_tokens: 9, output_tokens: 1 } };
  upstream.script({
    name: 'uncounted end',
    answer: () =>
      pieces([
        event('message_start', { message }),
        event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
        event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'word '.repeat(100) } }),
        event('content_block_stop', { index: 0 }),
        event('message_delta', { delta: { stop_reason: 'end_turn' } }),
        event('message_stop', {}),
      ]),
  });
  const answer = await askFace(server, 'messages', { model: 'messages', content: 'hello', stream: true });
  const row = await loggedAs(server, answer.headers.get('x-request-id')!);
  expect(row).toMatchObject({ end: 'completed', provenance: 'estimated', inputTokens: 9 });
  expect(row.outputTokens).toBeGreaterThan(50);
  expect(usagesIn(answer).at(-1)).toMatchObject({ output_tokens: row.outputTokens });
});

test.each([0, null])('an input of %s at the end of a stream of the messages API does not take back that of its beginning', async (input) => {
  const event = (type: string, members: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`;
  const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage: { input_tokens: 9, output_tokens: 1 } };
  upstream.script({
    name: 'input taken back',
    answer: () =>
      pieces([
        event('message_start', { message }),
        event('content_block_start', { index: 0, content_block: { type: 'text', text: 'Well.' } }),
        event('content_block_stop', { index: 0 }),
        event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { input_tokens: input, output_tokens: 4 } }),
        event('message_stop', {}),
      ]),
  });
  const { headers } = await askFace(server, 'messages', { model: 'messages', content: 'hello', stream: true });
  expect(await loggedAs(server, headers.get('x-request-id')!)).toMatchObject({ inputTokens: 9, outputTokens: 4, provenance: 'provider' });
});

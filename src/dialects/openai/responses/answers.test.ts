import { readFileSync } from 'node:fs';
import { Compile } from 'typebox/schema';
import { describe, expect, test } from 'vitest';
import { splitter } from '#kit/upstream/sse';
import type { GenerateEvent } from '#core/event';
import { Fault } from '#core/fault';
import { fold, type GenerateResult } from '#core/fold';
import type { JsonObject } from '#core/json';
import { decoder } from './decoder.ts';
import { requestOf } from './decode-request.ts';
import { Encoder } from './encoder.ts';
import { responsesRecordings } from '../../../../test/support/recordings.ts';
import { queued } from './response.ts';
import { decodeResult, encodeResult } from './result.ts';

const { answered, stream, wholes } = responsesRecordings;

const identity = { id: 'resp_0123456789abcdefghijkl', created: 1_800_000_000 };
const tools = [{ type: 'function', name: 'look', description: 'Looks.', parameters: { type: 'object', properties: {} } }];
const request = requestOf({ model: 'asked', input: 'x', tools, metadata: { a: 'b' } });
const upstream = () => ({ response: queued(request, identity, true), encrypted: true, sources: false, now: () => 1_800_000_009 });

/** The data of the frames of a stream that arrives in these buffers. */
function frames(...pieces: readonly Uint8Array[]): readonly string[] {
  const { push, end } = splitter({ maxLine: 1 << 20 });
  return [...pieces.flatMap((piece) => push(piece)), ...end()];
}

function decoded(...pieces: readonly Uint8Array[]): readonly GenerateEvent[] {
  const reading = decoder('upstream-name');
  return [...frames(...pieces).flatMap((line) => reading.decode(line)), ...reading.end()];
}

function encoded(events: readonly GenerateEvent[]): { readonly text: string; readonly response: JsonObject } {
  const encoder = new Encoder(upstream());
  const text = events.map((event) => encoder.encode(event)).join('') + encoder.finish() + encoder.last(true);
  return { text, response: encoder.response };
}

/** Members that the gateway sets itself: item ids, and that thoughts are shown in the summary. */
const ours = new Set(['.id', '.content', 'raw']);
function alike(result: GenerateResult): unknown {
  // The service tier is not known at the beginning of a stream, and where a recording has none ours is the default.
  const { extra: _tier, ...started } = result.started;
  const candidates = result.candidates.map(({ extra: _served, ...one }) => one);
  const text = JSON.stringify({ ...result, candidates, started: { ...started, ignored: [] } }, (name, value: unknown) => (ours.has(name) ? undefined : value));
  return JSON.parse(text) as unknown;
}

describe.each(answered)('the stream $name', ({ bytes }) => {
  test('is finished once and has its usage', () => {
    const events = decoded(bytes);
    expect(events.filter(({ type }) => type === 'started' || type === 'finished').map(({ type }) => type)).toEqual(['started', 'finished']);
    expect(events.at(-1)).toMatchObject({ type: 'usage', usage: { source: 'provider' } });
  });

  test('says the same when it is sent on and read again', () => {
    const events = decoded(bytes);
    expect(alike(fold(decoded(Buffer.from(encoded(events).text))))).toEqual(alike(fold(events)));
  });

  test('is the same response, streamed or whole', () => {
    const events = decoded(bytes);
    expect(encodeResult(fold(events), upstream())).toEqual(encoded(events).response);
  });

  test('may come in any two pieces', () => {
    const whole = decoded(bytes);
    const step = Math.max(1, Math.floor(bytes.length / 500));
    for (let at = 0; at < bytes.length; at += step) expect(decoded(bytes.subarray(0, at), bytes.subarray(at))).toEqual(whole);
  });

  test('is no answer when it is cut', () => {
    expect(() => decoded(bytes.subarray(0, bytes.length / 2))).toThrow(Fault);
  });
});

test.each(wholes)('the whole answer $name says the same when it is sent on and read again', ({ body }) => {
  const result = fold(decodeResult(body, 'upstream-name'));
  expect(alike(fold(decodeResult(encodeResult(result, upstream()), 'x')))).toEqual(alike(result));
});

test.each([
  {},
  { output: null },
  { output: 'x' },
  { output: [{}] },
  { output: [null] },
  { output: [{ type: '' }] },
  { output: [{ type: 'message', content: [] }, 5] },
])('a whole answer with %j is refused as malformed', (members) => {
  for (const status of ['completed', 'incomplete'])
    expect(() => decodeResult({ status, ...members }, 'm')).toThrow(expect.objectContaining({ code: 'upstream-failed' }) as Error);
});

test('a spent quota inside of a stream is a fault that another provider may mend', () => {
  expect(() => decoded(stream('vercel/openai-error'))).toThrow(
    expect.objectContaining({ code: 'upstream-failed', details: expect.objectContaining({ key: true }) as unknown }) as Error,
  );
});

test.each([
  'null',
  '[]',
  '7',
  '{"type":"response.completed"}',
  '{"type":"response.completed","response":{"status":"queued"}}',
  '{"type":"response.output_item.added","output_index":-1,"item":{"type":"function_call","name":"x"}}',
  'nonsense',
  '{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{"}',
])('a frame like %s is refused as malformed', (line) => {
  expect(() => decoder('m').decode(line)).toThrow(expect.objectContaining({ code: 'upstream-failed' }) as Error);
});

// ——— the public description ———

const recordedAsNull = new Set(['ResponseUsage', 'user', 'safety_identifier', 'prompt_cache_key']);
const described = JSON.parse(readFileSync(new URL('recordings/public-schemas.json', import.meta.url), 'utf8')) as Record<string, object>;
/** Recorded responses have null for absent values, where the description requires a string or an object. */
const schemas = JSON.parse(JSON.stringify(described), (name, value: unknown) =>
  recordedAsNull.has(name) && value !== null && typeof value === 'object' ? { anyOf: [value, { type: 'null' }] } : value,
) as typeof described;
const conforms = (name: string) => {
  const schema = Compile({ $ref: `#/$defs/${name}`, $defs: schemas });
  return (value: unknown): readonly unknown[] => (schema.Check(value) ? [] : schema.Errors(value)[1].slice(-3));
};
/** The schema check by event type, so that a failure names the type. */
const kinds = new Map(
  Object.entries(schemas).flatMap(([name, schema]) => {
    const { properties } = schema as { readonly properties?: { readonly type?: { readonly enum?: readonly string[] } } };
    const type = properties?.type?.enum?.[0];
    return name.startsWith('Response') && name.endsWith('Event') && type ? [[type, conforms(name)] as const] : [];
  }),
);
const wrongInResponse = conforms('Response');

const answers: Readonly<Record<string, readonly GenerateEvent[]>> = {
  ...Object.fromEntries(answered.map(({ name, bytes }) => [name, decoded(bytes)])),
  'a refusal': [
    { type: 'started', model: 'm', ignored: [] },
    { type: 'refusal', candidate: 0, text: 'No.' },
    { type: 'finished', candidate: 0, reason: 'refused', raw: '' },
  ],
  'calls whose pieces come in turn': [
    { type: 'started', model: 'm', ignored: [] },
    { type: 'tool-call', candidate: 0, call: 0, id: 'a', name: 'look', json: '' },
    { type: 'tool-call', candidate: 0, call: 1, id: 'b', name: 'look', json: '{' },
    { type: 'tool-call', candidate: 0, call: 0, id: 'a', json: '{}' },
    { type: 'tool-call', candidate: 0, call: 1, id: 'b', json: '}' },
    { type: 'finished', candidate: 0, reason: 'tool', raw: '' },
  ],
  'an image, log probabilities, the end of the tokens': [
    { type: 'started', model: 'm', ignored: [] },
    { type: 'part', candidate: 0, part: { type: 'media', kind: 'image', mediaType: 'image/png', base64: 'AAAA' } },
    {
      type: 'text',
      candidate: 0,
      text: 'Hi',
      logprobs: [{ token: 'Hi', logprob: -1, bytes: [72, 105], top: [{ token: 'Ho', logprob: -2, bytes: [72, 111] }] }],
    },
    { type: 'finished', candidate: 0, reason: 'length', raw: '' },
    { type: 'usage', usage: { input: 1, output: 2, source: 'provider' } },
  ],
  nothing: [
    { type: 'started', model: 'm', ignored: [] },
    { type: 'finished', candidate: 0, reason: 'stop', raw: '' },
  ],
};

test('the description is looked at: an event without its number does not conform', () => {
  expect(
    kinds.get('response.output_text.delta')!({ type: 'response.output_text.delta', item_id: 'x', output_index: 0, content_index: 0, delta: '', logprobs: [] }),
  ).not.toEqual([]);
});

test.each(Object.entries(answers))('every event and the response of %s conform to the public description', (_name, events) => {
  const { text, response } = encoded(events);
  for (const line of frames(Buffer.from(text))) {
    if (line === '[DONE]') continue;
    const event = JSON.parse(line) as { readonly type: string };
    const wrong = kinds.get(event.type) ?? expect.fail(`${event.type} is no event of the public description`);
    expect([event.type, ...wrong(event)]).toEqual([event.type]);
  }
  expect(wrongInResponse(response)).toEqual([]);
});

/** A further requirement of the vendor-neutral description of the API: https://www.openresponses.org */
test('every member of the response object is there, null where nothing was said', () => {
  const members =
    'id object created_at completed_at status incomplete_details model previous_response_id instructions output error tools tool_choice truncation ' +
    'parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs temperature reasoning usage max_output_tokens max_tool_calls store ' +
    'background service_tier metadata safety_identifier prompt_cache_key user';
  const { response } = encoded(answers['nothing']!);
  expect(Object.keys(response)).toEqual(expect.arrayContaining(members.split(' ')));
  expect(response).toMatchObject({
    temperature: 1,
    top_p: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    top_logprobs: 0,
    service_tier: 'default',
    truncation: 'disabled',
  });
  expect(response).toMatchObject({
    tools: [{ ...tools[0], strict: null }],
    tool_choice: 'auto',
    output: [{ type: 'message', status: 'completed', content: [{ text: '', annotations: [], logprobs: [] }] }],
  });
});

test('texts of a message become one part, and their citations refer to it, whole and streamed', () => {
  const cited = { type: 'url_citation', start_index: 0, end_index: 3, url: 'https://a.example/', title: 'A' };
  const content = [
    { type: 'output_text', text: '🐉ne ', annotations: [] },
    { type: 'output_text', text: 'two', annotations: [cited] },
  ];
  const item = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content };
  const response = { id: 'resp_1', model: 'm', status: 'completed', output: [item], usage: { input_tokens: 1, output_tokens: 1 } };
  const events = content.map(({ text: delta }, at) => ({ type: 'response.output_text.delta', output_index: 0, content_index: at, delta }));
  const last = { type: 'response.completed', response };
  const streamed = [...events, { type: 'response.output_item.done', output_index: 0, item }, last].map((one) => `data: ${JSON.stringify(one)}\n\n`);
  for (const said of [decodeResult(response, 'm'), decoded(Buffer.from(streamed.join('')))]) {
    const moved = { ...cited, start_index: 4, end_index: 7 };
    expect(encoded(said).response['output']).toMatchObject([{ content: [{ type: 'output_text', text: '🐉ne two', annotations: [moved] }] }]);
    expect(fold(said).candidates[0]!.parts).toMatchObject([{ text: '🐉ne two', citations: [{ start: 4, end: 7 }] }]);
  }
});

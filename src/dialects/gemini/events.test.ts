import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { splitter } from '#kit/upstream/sse';
import { speaks, type GenerateEvent } from '#core/event';
import { Fault } from '#core/fault';
import { fold, type GenerateResult } from '#core/fold';
import type { JsonObject } from '#core/json';
import { decoder } from './decoder.ts';
import { encoder } from './encoder.ts';
import { decodeFault } from './faults.ts';
import { arrayFraming, eventFraming } from './framing.ts';
import { changed, drawnChanges } from '../../../test/support/drawn-changes.ts';
import { geminiRecordings, geminiRefusals } from '../../../test/support/recordings.ts';
import { completed, plainAnswer } from './plain-answer.ts';
import { decodeResult, encodeResult } from './result.ts';

const { answered, stream, wholes } = geminiRecordings;

const id = 'ours';

function frames(...pieces: readonly Uint8Array[]): readonly string[] {
  const { push, end } = splitter({ maxLine: 1 << 20 });
  return [...pieces.flatMap((piece) => push(piece)), ...end()];
}

function decoded(...pieces: readonly Uint8Array[]): readonly GenerateEvent[] {
  const reading = decoder('upstream-name');
  return [...frames(...pieces).flatMap((line) => reading.decode(line)), ...reading.end()];
}

function encoded(events: readonly GenerateEvent[], framing = eventFraming()): string {
  const chunks = encoder({ id, framing });
  return events.map((event) => chunks.encode(event)).join('') + chunks.end();
}

interface Chunk {
  readonly candidates: readonly {
    readonly content: { readonly parts: readonly JsonObject[] };
    readonly finishReason?: string;
    readonly index: number;
    readonly safetyRatings?: unknown;
  }[];
  readonly usageMetadata?: JsonObject;
  readonly modelVersion: string;
}
const chunksOf = (events: readonly GenerateEvent[]) => frames(Buffer.from(encoded(events))).map((line) => JSON.parse(line) as Chunk);

/** Removes call ids that the gateway generated: they differ each time an answer is decoded. */
function alike(result: GenerateResult): unknown {
  return {
    ...result,
    candidates: result.candidates.map(({ parts, extra, ...candidate }) => ({
      ...candidate,
      extra: { gemini: { safetyRatings: [], ...extra?.['gemini'] } },
      parts: parts.map((part) => (part.type === 'tool-call' && part.extra?.['gemini']?.['.unnamed'] ? { ...part, id: '' } : part)),
    })),
  };
}

function broken(bytes: Uint8Array): { readonly events: readonly GenerateEvent[]; readonly fault: Fault } {
  const events: GenerateEvent[] = [];
  const reading = decoder('upstream-name');
  try {
    for (const line of frames(bytes)) events.push(...reading.decode(line));
    reading.end();
  } catch (fault) {
    return { events, fault: fault as Fault };
  }
  throw new Error('It did not fail.');
}

describe('a recorded stream', () => {
  test.each(answered)('$name says the same after it was decoded and encoded', ({ bytes }) => {
    const events = decoded(bytes);
    expect(alike(fold(decoded(Buffer.from(encoded(events)))))).toEqual(alike(fold(events)));
  });

  test.each(answered)('$name starts once, finishes each candidate once and counts once, at the end', ({ bytes }) => {
    const events = decoded(bytes);
    const types = events.map((event) => event.type);
    expect(types[0]).toBe('started');
    expect(types.filter((type) => type === 'started' || type === 'usage')).toHaveLength(2);
    const finished = events.flatMap((event) => (event.type === 'finished' ? [event.candidate] : []));
    expect(finished).toEqual([...new Set(events.flatMap((event) => ('candidate' in event ? [event.candidate] : [])))]);
    expect(types.indexOf('usage')).toBe(types.length - 1);
  });

  test.each(answered)('$name is the same, wherever its bytes are cut', ({ bytes }) => {
    const sum = alike(fold(decoded(bytes)));
    const stride = Math.max(1, Math.floor(bytes.length / 400));
    for (let at = 0; at <= bytes.length; at += stride)
      expect(alike(fold(decoded(bytes.subarray(0, at), bytes.subarray(at)))), `cut at byte ${at}`).toEqual(sum);
  });

  test.each(answered)('$name that ends early is no answer', ({ bytes }) => {
    const end = bytes.indexOf('"finishReason"');
    const stride = Math.max(1, Math.floor(end / 100));
    for (let at = 0; at < end; at += stride) expect(broken(bytes.subarray(0, at)).fault.code, `ended at byte ${at}`).toBe('upstream-failed');
  });

  test.each(answered)('$name goes to the client with every member that clients count on', ({ bytes }) => {
    const chunks = chunksOf(decoded(bytes));
    for (const { candidates, modelVersion } of chunks) {
      expect(modelVersion).not.toBe('');
      for (const { index, content } of candidates) expect([typeof index, Array.isArray(content.parts)]).toEqual(['number', true]);
    }
    const { candidates, usageMetadata } = chunks.at(-1)!;
    for (const { finishReason, safetyRatings } of candidates) expect([typeof finishReason, Array.isArray(safetyRatings)]).toEqual(['string', true]);
    for (const count of ['promptTokenCount', 'candidatesTokenCount', 'totalTokenCount']) expect(usageMetadata?.[count]).toBeTypeOf('number');
  });

  test.each(answered)('$name is a JSON array where no events are asked for', ({ bytes }) => {
    const events = decoded(bytes);
    const array = JSON.parse(encoded(events, arrayFraming())) as unknown[];
    expect(array).toEqual(chunksOf(events));
  });

  test.each(wholes)('$name, a whole answer, says the same as a stream', ({ body }) => {
    const events = decodeResult(body, 'upstream-name');
    expect(alike(fold(decoded(Buffer.from(encoded(events)))))).toMatchObject(alike(joined(fold(events))) as object);
  });

  test.each(wholes.filter(({ name }) => !name.includes('blocked')))('$name, a whole answer, goes to the client as it came, and complete', ({ body }) => {
    const reencoded = encodeResult(fold(decodeResult(body, 'upstream-name')), { id });
    expect(reencoded).toMatchObject(body as object);
    expect(Object.keys(reencoded)).toEqual(expect.arrayContaining(['candidates', 'usageMetadata', 'modelVersion']));
  });

  test('a whole answer of text is forwarded with what it would have if it were encoded anew, and says the same of its end', () => {
    const parts = ['content.parts.0', 'content.parts.1', 'content.parts.0.text', 'content.parts.0.thought', 'content.role'];
    const candidate = ['', ...parts.map((path) => `.${path}`), '.finishReason', '.index', '.safetyRatings', '.citationMetadata', '.groundingMetadata'];
    const counts = ['promptTokenCount', 'candidatesTokenCount', 'thoughtsTokenCount', 'cachedContentTokenCount'].map((name) => `usageMetadata.${name}`);
    const paths = ['error', 'promptFeedback', 'responseId', 'modelVersion', 'candidates', 'candidates.1', 'usageMetadata', ...counts];
    const drawn = fc.tuple(fc.constantFrom(...wholes), drawnChanges([...paths, ...candidate.map((path) => `candidates.0${path}`)]), fc.constantFrom(0, 2));
    let plain = 0;
    fc.assert(
      fc.property(drawn, ([{ body: recorded }, changes, indent]) => {
        const body: unknown = JSON.parse(JSON.stringify(changed(recorded, changes)));
        const passed = plainAnswer(body, 'upstream-name', ['x: y']);
        if (!passed) return;
        plain++;
        const events = decodeResult(body, 'upstream-name', ['x: y']);
        expect(passed[1]).toEqual({ type: 'passed', tokens: 0, text: events.map((event) => (event.type === 'text' ? event.text : '')).join('') });
        const bare = ({ extra: _, ...event }: GenerateEvent & { readonly extra?: unknown }) => event;
        const ends = events.filter((event) => !speaks(event)).map(bare);
        expect(passed.toSpliced(1, 1).map(bare)).toEqual(ends.map((event) => (event.type === 'started' ? { ...event, usage: undefined } : event)));
        const forwarded = completed(Buffer.from(JSON.stringify(body, null, indent)), body);
        if (Object.keys(body as object)[0] === 'candidates') expect(forwarded).toBeDefined();
        if (forwarded) expect(JSON.parse(Buffer.from(forwarded).toString())).toMatchObject(encodeResult(fold(events), { id }));
      }),
      { numRuns: 1000 },
    );
    expect(plain).toBeGreaterThan(50);
  });
});

/** Joins consecutive parts of one kind without a signature: in a stream they are fragments of one part. */
function joined(result: GenerateResult): GenerateResult {
  const { candidates } = result;
  return {
    ...result,
    candidates: candidates.map((one) => ({
      ...one,
      parts:
        fold(
          one.parts.flatMap((part): GenerateEvent[] =>
            part.type === 'text' || part.type === 'thought'
              ? [
                  {
                    type: part.type,
                    candidate: 0,
                    text: part.text,
                    ...(part.extra && Object.keys(part.extra['gemini'] ?? {}).length > 0 ? { extra: part.extra } : {}),
                  },
                ]
              : part.type === 'tool-call'
                ? [{ candidate: 0, call: one.parts.indexOf(part), ...part }]
                : part.type === 'media' || part.type === 'foreign'
                  ? [{ type: 'part', candidate: 0, part }]
                  : [],
          ),
        ).candidates[0]?.parts ?? [],
    })),
  };
}

describe('what a stream says', () => {
  const sum = (name: string) => fold(decoded(stream(name)));

  test('arguments that come in pieces are put together', () => {
    const calls = sum('vercel/stream-tool-call-arguments').candidates[0]!.parts.flatMap((part) => (part.type === 'tool-call' ? [[part.name, part.json]] : []));
    expect(calls).toEqual([
      ['getWeather', '{"location":"Boston"}'],
      ['getWeather', '{"location":"San Francisco"}'],
    ]);
  });

  test('a signature stays with the function call it came with', () => {
    const [first] = sum('vercel/tool-call-gemini3').candidates[0]!.parts;
    expect(first).toMatchObject({ type: 'tool-call', extra: { gemini: { thoughtSignature: expect.stringMatching(/^EpEg/) as string } } });
    const sentParts = chunksOf(decoded(stream('vercel/tool-call-gemini3'))).flatMap(({ candidates }) => candidates[0]!.content.parts);
    expect(sentParts[0]).toMatchObject({ functionCall: { name: 'weather' }, thoughtSignature: expect.stringMatching(/^EpEg/) as string });
  });

  test('thoughts count as output, and tokens that tools put into the prompt as input', () => {
    expect(sum('handmade/citations-and-candidates').usage).toMatchObject({ input: 8, cached: 2, output: 4, source: 'provider' });
    const { usage } = fold(decodeResult(wholes.find(({ name }) => name === 'vercel/text')!.body, 'm'));
    expect(usage).toMatchObject({ input: 9, output: 272, thought: 244 });
  });

  test('calls of one id have an id of their own each', () => {
    const parts = [1, 2].map((a) => ({ functionCall: { id: 'x', name: 'f', args: { a } } }));
    const events = decodeResult({ candidates: [{ content: { parts }, finishReason: 'STOP' }] }, 'm');
    expect(fold(events).candidates[0]?.parts).toMatchObject([{ id: 'x' }, { id: 'x_2', json: '{"a":2}' }]);
  });

  test('citations of all chunks are gathered, candidates are kept apart', () => {
    const [first, second] = sum('handmade/citations-and-candidates').candidates;
    expect(first).toMatchObject({
      reason: 'stop',
      extra: { gemini: { citationMetadata: { citations: [{ uri: 'https://a.example/' }, { uri: 'https://b.example/' }] } } },
    });
    expect(second).toMatchObject({ parts: [{ text: 'Eins zwei' }], reason: 'length', raw: 'MAX_TOKENS' });
  });

  test('a blocked prompt is a refusal that says why', () => {
    const events = decodeResult(wholes.find(({ name }) => name === 'handmade/blocked-prompt')!.body, 'm');
    expect(fold(events).candidates[0]).toMatchObject({ parts: [], reason: 'refused', raw: 'PROHIBITED_CONTENT' });
    expect(encodeResult(fold(events), { id })).toEqual({
      promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
      usageMetadata: expect.objectContaining({ promptTokenCount: 8 }) as object,
      modelVersion: 'gemini-2.5-flash',
      responseId: 'r2',
    });
  });

  test('a blocked prompt has no candidate in a stream, whichever chunk says so', () => {
    const { body } = wholes.find(({ name }) => name === 'handmade/blocked-prompt')!;
    for (const chunks of [[body], [{ modelVersion: 'm', responseId: 'r2' }, body]]) {
      const reading = decoder('m');
      const events = [...chunks.flatMap((one) => reading.decode(JSON.stringify(one))), ...reading.end()];
      const one = encoder({ id, framing: eventFraming() });
      const text = events.map((event) => one.encode(event)).join('') + one.end();
      expect(JSON.parse(text.slice('data: '.length))).toEqual({
        promptFeedback: { blockReason: 'PROHIBITED_CONTENT' },
        usageMetadata: expect.objectContaining({ promptTokenCount: 8 }) as object,
        modelVersion: expect.any(String) as string,
        responseId: 'r2',
      });
    }
  });

  test.each([
    ['fails-cut', 'upstream-failed', 1],
    ['fails-overloaded-first', 'overloaded', 0],
    ['fails-limited-later', 'rate-limited', 1],
    ['fails-text', 'upstream-failed', 0],
  ])('%s is a fault that another target may mend', (name, code, texts) => {
    const { events, fault } = broken(stream(`handmade/${name}`));
    expect(fault).toMatchObject({ code, details: { elsewhere: true } });
    expect(events.filter(({ type }) => type === 'text')).toHaveLength(texts);
  });

  test('pieces of arguments go nowhere but into the arguments', () => {
    const reading = decoder('m');
    const piece = (jsonPath: unknown) => ({ jsonPath, stringValue: 'x' });
    const paths = ['$.__proto__.polluted', '$', 'a', "$['a.b'][1].c", `$${'.a'.repeat(50)}`, '$.list[99999]', 7];
    const events = [
      ...reading.decode(
        JSON.stringify({
          candidates: [
            {
              content: { parts: [{ functionCall: { name: 'f', willContinue: true, partialArgs: paths.map(piece) } }, { functionCall: {} }] },
              finishReason: 'STOP',
            },
          ],
        }),
      ),
      ...reading.end(),
    ];
    expect(fold(events).candidates[0]?.parts[0]).toMatchObject({ json: '{"a.b":[null,{"c":"x"}]}' });
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe('chunks for the client', () => {
  const started: GenerateEvent = { type: 'started', model: 'm', ignored: [] };
  const call = (number: number, json: string, name?: string): GenerateEvent => ({
    type: 'tool-call',
    candidate: 0,
    call: number,
    id: `c${number}`,
    ...(name ? { name } : {}),
    json,
  });

  test('calls of functions whose pieces come in turn are said whole', () => {
    const chunks = chunksOf([
      started,
      call(0, '', 'a'),
      call(1, '', 'b'),
      call(0, '{"x":'),
      call(1, '{"y":2}'),
      call(0, '1}'),
      { type: 'finished', candidate: 0, reason: 'tool', raw: 'tool_calls' },
    ]);
    expect(chunks.flatMap(({ candidates }) => candidates[0]!.content.parts)).toEqual([
      { functionCall: { id: 'c0', name: 'a', args: { x: 1 } } },
      { functionCall: { id: 'c1', name: 'b', args: { y: 2 } } },
      { text: '' },
    ]);
    expect(chunks.at(-1)?.candidates[0]?.finishReason).toBe('STOP');
  });

  test('an answer of nothing still says how it ended and what it took', () => {
    expect(chunksOf([started])).toEqual([
      {
        candidates: [{ content: { parts: [{ text: '' }], role: 'model' }, finishReason: 'STOP', index: 0, safetyRatings: [] }],
        usageMetadata: { promptTokenCount: 0, candidatesTokenCount: 0, totalTokenCount: 0 },
        modelVersion: 'm',
        responseId: id,
      },
    ]);
  });

  test('a fault is the last chunk, without a name of its event', () => {
    const fault = new Fault('overloaded', 'Later.', { retryAfter: 2 });
    const error = {
      error: { code: 503, message: 'Later.', status: 'UNAVAILABLE', details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '2s' }] },
    };
    expect(eventFraming().fault(fault)).toBe(`data: ${JSON.stringify(error)}\r\n\r\n`);
    const array = arrayFraming();
    expect(JSON.parse(array.keepAlive + array.chunk('{"a":1}') + array.keepAlive + array.fault(fault))).toEqual([{ a: 1 }, error]);
    expect(JSON.parse(arrayFraming().fault(fault))).toEqual([error]);
  });
});

describe('a refusal of the provider', () => {
  test.each(geminiRefusals)('$name becomes a fault, with its first sentence where that is about the request', ({ status, text }) => {
    const fault = decodeFault(status, text);
    if (status === 429) expect(fault).toMatchObject({ code: 'rate-limited', details: { elsewhere: true, retryAfter: 34.4 } });
    else expect(fault).toMatchObject({ code: 'not-found', details: { absent: true, elsewhere: true, reason: 'model' } });
    if (status === 429) expect(fault.details.said).toBeUndefined();
    else expect(fault.message).toBe(`The provider does not have this model. It says: ${fault.details.said}`);
  });

  test.each([
    [400, { message: 'API key not valid. Please pass a valid API key.', status: 'INVALID_ARGUMENT' }, { code: 'upstream-failed', details: { key: true } }],
    [403, { message: 'Permission denied', status: 'PERMISSION_DENIED' }, { code: 'upstream-failed', details: { key: true } }],
    [
      404,
      { message: 'Publisher Model `projects/p/locations/us-east5/publishers/google/models/x` was not found', status: 'NOT_FOUND' },
      { code: 'not-found', details: { absent: true } },
    ],
    [404, { message: 'Not here' }, { code: 'upstream-failed' }],
    [400, { message: 'Resource has been exhausted', status: 'RESOURCE_EXHAUSTED' }, { code: 'rate-limited', details: { elsewhere: true } }],
    [500, { message: 'Internal', status: 'INTERNAL' }, { code: 'upstream-failed', details: { elsewhere: true } }],
    [503, { message: 'overloaded', status: 'UNAVAILABLE' }, { code: 'overloaded', details: { elsewhere: true } }],
    [400, { message: '* GenerateContentRequest.generation_config.top_k: bad' }, { code: 'invalid', details: { field: 'generationConfig.topK' } }],
    [
      400,
      { message: 'The input token count (9) exceeds the maximum number of tokens allowed (8).' },
      { code: 'invalid', details: { reason: 'context-length' } },
    ],
  ])('%i %o', (status, error, expected) => {
    expect(decodeFault(status, JSON.stringify({ error: { code: status, ...error } }))).toMatchObject(expected);
    expect(decodeFault(status, JSON.stringify([{ error: { code: status, ...error } }]))).toMatchObject(expected);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { splitter } from '#kit/upstream/sse';
import { speaks, type GenerateEvent } from '#core/event';
import { Fault } from '#core/fault';
import { fold, type GenerateResult } from '#core/fold';
import { changed, drawnChanges } from '../../../test/support/drawn-changes.ts';
import { plainAnswer } from './decode-answer.ts';
import { decoder } from './decoder.ts';
import { encoder } from './encoder.ts';
import { messagesRecordings } from '../../../test/support/recordings.ts';
import { decodeResult, encodeResult } from './result.ts';

const { answered, stream, streams, wholes } = messagesRecordings;

const id = 'msg_ours';

/** The frames of a stream that arrives in these buffers. */
function frames(...pieces: readonly Uint8Array[]): readonly string[] {
  const { push, end } = splitter({ maxLine: 1 << 20 });
  return [...pieces.flatMap((piece) => push(piece)), ...end()];
}

function decoded(...pieces: readonly Uint8Array[]): readonly GenerateEvent[] {
  const reading = decoder('upstream-name');
  return [...frames(...pieces).flatMap((line) => reading.decode(line)), ...reading.end()];
}

function encoded(events: readonly GenerateEvent[]): string {
  const frames = encoder({ id });
  return events.map((event) => frames.encode(event)).join('') + frames.end();
}

interface Frame {
  readonly type: string;
  readonly index?: number;
  readonly content_block?: { readonly type: string; readonly id?: string };
  readonly delta?: { readonly type?: string; readonly partial_json?: string };
}
const framesOf = (events: readonly GenerateEvent[]) => frames(Buffer.from(encoded(events))).map((line) => JSON.parse(line) as Frame);

/** Parses tool arguments, which are JSON text in a stream and an object in a whole message. */
function alike(result: GenerateResult): unknown {
  return {
    ...result,
    candidates: result.candidates.map(({ parts, ...candidate }) => ({
      ...candidate,
      parts: parts.map((part) => (part.type === 'tool-call' ? { ...part, json: (part.json === '' ? {} : JSON.parse(part.json)) as unknown } : part)),
    })),
  };
}

/** The events of a stream until it fails, and its fault. */
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

const started: GenerateEvent = { type: 'started', model: 'm', ignored: [] };
const finished = (reason: 'stop' | 'tool' = 'stop'): GenerateEvent => ({ type: 'finished', candidate: 0, reason, raw: '' });
const call = (number: number, json: string, name?: string): GenerateEvent => ({
  type: 'tool-call',
  candidate: 0,
  call: number,
  id: `call_${number}`,
  ...(name === undefined ? {} : { name }),
  json,
});

describe('a recorded stream', () => {
  test.each(answered)('$name says the same after it was decoded and encoded', ({ bytes }) => {
    const events = decoded(bytes);
    const again = decoded(Buffer.from(encoded(events)));
    expect(fold(again)).toEqual(fold(events));
    expect(decoded(Buffer.from(encoded(again)))).toEqual(again);
  });

  test.each(answered)('$name starts once, finishes once and counts once, at the end', ({ bytes }) => {
    const types = decoded(bytes).map((event) => event.type);
    expect(types[0]).toBe('started');
    expect(types.filter((type) => type === 'started' || type === 'finished')).toHaveLength(2);
    expect(types.indexOf('usage')).toBe(types.length - 1);
  });

  test.each(answered)('$name is the same, wherever its bytes are cut', ({ bytes }) => {
    const events = decoded(bytes);
    const stride = Math.max(1, Math.floor(bytes.length / 500));
    for (let at = 0; at <= bytes.length; at += stride) expect(decoded(bytes.subarray(0, at), bytes.subarray(at)), `cut at byte ${at}`).toEqual(events);
  });

  test.each(answered)('$name that ends early is no answer', ({ bytes }) => {
    const end = bytes.indexOf('event: message_delta');
    const stride = Math.max(1, Math.floor(end / 100));
    for (let at = 0; at < end; at += stride) expect(broken(bytes.subarray(0, at)).fault.code, `ended at byte ${at}`).toBe('upstream-failed');
  });

  test.each(answered)('$name goes to the client as well-formed blocks, one at a time', ({ bytes }) => {
    let index = -1;
    let open = false;
    for (const { type, index: at } of framesOf(decoded(bytes))) {
      if (type === 'content_block_start') {
        expect([open, at]).toEqual([false, ++index]);
        open = true;
      } else if (type === 'content_block_delta' || type === 'content_block_stop') {
        expect([open, at]).toEqual([true, index]);
        open = type === 'content_block_delta';
      } else expect(open).toBe(false);
    }
  });

  test.each(wholes)('$name, a whole answer, says the same as a stream', ({ body }) => {
    const events = decodeResult(body, 'upstream-name');
    expect(alike(fold(decoded(Buffer.from(encoded(events)))))).toEqual(alike(fold(events)));
  });

  test.each(wholes)('$name, a whole answer, goes to the client as it came', ({ body }) => {
    const withoutNull = (value: unknown): unknown =>
      value !== null && typeof value === 'object' && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).flatMap(([name, inner]) => (inner === null ? [] : [[name, withoutNull(inner)]])))
        : value;
    expect(withoutNull(encodeResult(fold(decodeResult(body, 'upstream-name')), { id }))).toEqual(withoutNull(body));
  });

  test('a whole answer of text says of its end, unread, what it says when it is decoded', () => {
    const paths = ['type', 'id', 'model', 'error', 'content', 'content.0', 'content.1', 'content.0.type', 'content.0.text', 'content.0.citations'];
    const drawn = fc.tuple(fc.constantFrom(...wholes), drawnChanges([...paths, 'stop_reason', 'stop_details', 'usage', 'usage.input_tokens', 'container']));
    let plain = 0;
    fc.assert(
      fc.property(drawn, ([{ body: recorded }, changes]) => {
        const body = changed(recorded, changes);
        const passed = plainAnswer(body, 'upstream-name', ['x: y']);
        if (!passed) return;
        plain++;
        const events = decodeResult(body, 'upstream-name', ['x: y']);
        expect(passed[1]).toEqual({ type: 'passed', tokens: 0, text: events.map((event) => (event.type === 'text' ? event.text : '')).join('') });
        const ends = events.filter((event) => !speaks(event));
        expect(passed.toSpliced(1, 1)).toEqual(
          ends.map((event) => {
            const { extra: _, ...bare } = event as typeof event & { readonly extra?: unknown };
            if (bare.type !== 'started') return bare;
            const { usage: __, ...started } = bare;
            return started;
          }),
        );
      }),
      { numRuns: 1000 },
    );
    expect(plain).toBeGreaterThan(50);
  });

  test('adds up to what the whole answer says', () => {
    const whole = wholes.find(({ name }) => name === 'handmade/thinking-and-parallel-tools')!;
    expect(alike(fold(decoded(stream(whole.name))))).toEqual(alike(fold(decodeResult(whole.body, 'upstream-name'))));
  });
});

describe('what a stream says', () => {
  const sum = (name: string) => fold(decoded(stream(name)));

  test('input tokens include those that were read from the cache and written to it', () => {
    expect(sum('handmade/empty-answer').usage).toMatchObject({ input: 115, cached: 100, output: 20, source: 'provider' });
  });

  test('the last count is the one that is booked', () => {
    expect(sum('vercel/message-delta-input-tokens').usage).toMatchObject({ input: 61, output: 2 });
    expect(sum('vercel/duplicate-message-start').usage).toMatchObject({ input: 17, output: 227 });
  });

  test('a signature belongs to its thought, and a redacted thought is carried', () => {
    expect(sum('handmade/thinking-and-parallel-tools').candidates[0]?.parts.slice(0, 3)).toEqual([
      { type: 'thought', text: 'Two tools are needed.', extra: { 'anthropic-messages': { signature: 'c2ln' } } },
      { type: 'foreign', dialect: 'anthropic-messages', value: { type: 'redacted_thinking', data: 'cmVkYWN0ZWQ=' } },
      { type: 'text', text: 'I look.' },
    ]);
  });

  test('a tool without arguments is called with an empty object', () => {
    expect(sum('vercel/tool-no-args').candidates[0]?.parts.at(-1)).toMatchObject({ type: 'tool-call', name: 'updateIssueList', json: '{}' });
  });

  test('arguments that were cut by the limit stay what they are', () => {
    expect(sum('handmade/tool-cut-by-length').candidates[0]).toMatchObject({ reason: 'length', parts: [{ json: '{"x": "cut' }] });
  });

  test('citations stay with their texts, and the search of the provider is carried', () => {
    const { parts = [] } = sum('vercel/web-search-tool.1').candidates[0] ?? {};
    expect(parts.map(({ type }) => type).slice(0, 3)).toEqual(['foreign', 'foreign', 'text']);
    expect(parts[0]).toMatchObject({ value: { type: 'server_tool_use', input: { query: 'tech news today September 26 2025' } } });
    expect(parts[3]).toMatchObject({
      type: 'text',
      text: expect.stringMatching(/^Apple today announced/),
      extra: { 'anthropic-messages': { citations: { length: 3 } } },
    });
  });

  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'length'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['tool_use', 'stop'],
    ['refusal', 'refused'],
    ['word_of_tomorrow', 'stop'],
  ])('the stop reason %s of an answer without calls is %s, and goes back as it came', (raw, reason) => {
    const events = decodeResult({ model: 'm', content: [], stop_reason: raw, usage: { input_tokens: 1, output_tokens: 1 } }, 'm');
    expect(events.find((event) => event.type === 'finished')).toMatchObject({ reason, raw });
    expect(encodeResult(fold(events), { id })['stop_reason']).toBe(raw);
  });

  test.each([
    ['stop', 'end_turn'],
    ['length', 'max_tokens'],
    ['tool', 'tool_use'],
    ['refused', 'refusal'],
  ] as const)('an answer of another wire that ended with %s ends with %s', (reason, word) => {
    const events: GenerateEvent[] = [started, { type: 'finished', candidate: 0, reason, raw: 'its word' }];
    expect(encodeResult(fold(events), { id })['stop_reason']).toBe(word);
    expect(framesOf(events).at(-2)).toMatchObject({ delta: { stop_reason: word } });
  });
});

describe('an answer of another wire', () => {
  test('whose calls come in turn is said call after call, nothing dropped and nothing doubled', () => {
    const events = [
      started,
      call(0, '{"a"', 'one'),
      call(1, '{"b"', 'two'),
      call(0, ':1'),
      call(2, '', 'three'),
      call(1, ':2}'),
      call(0, '}'),
      finished('tool'),
    ];
    const sent = framesOf(events);
    expect(sent.flatMap(({ content_block: block }) => (block ? [block.id] : []))).toEqual(['call_0', 'call_1', 'call_2']);
    const json = [0, 1, 2].map((index) => sent.flatMap((one) => (one.index === index ? [one.delta?.partial_json ?? ''] : [])).join(''));
    expect(json).toEqual(['{"a":1}', '{"b":2}', '']);
  });

  test('with thoughts, text, a refusal and text again has a block for each run', () => {
    const content = (type: 'text' | 'thought' | 'refusal', text: string): GenerateEvent => ({ type, candidate: 0, text });
    const blocks = fold(
      decoded(
        Buffer.from(
          encoded([
            started,
            content('thought', 'hm'),
            content('thought', '.'),
            content('text', 'a'),
            content('refusal', 'b'),
            call(0, '{}', 'c'),
            content('text', 'd'),
            finished(),
          ]),
        ),
      ),
    );
    expect(blocks.candidates[0]?.parts).toMatchObject([{ type: 'thought', text: 'hm.' }, { text: 'ab' }, { type: 'tool-call' }, { text: 'd' }]);
  });

  test('with several candidates gives the first one', () => {
    const content = (candidate: number, text: string): GenerateEvent => ({ type: 'text', candidate, text });
    expect(encoded([started, content(0, 'first'), content(1, 'second'), finished()])).not.toContain('second');
  });

  test('counts what was cached apart from the input', () => {
    const events: GenerateEvent[] = [started, finished(), { type: 'usage', usage: { input: 100, cached: 60, output: 5, thought: 2, source: 'provider' } }];
    const usage = { input_tokens: 40, cache_read_input_tokens: 60, output_tokens: 5, output_tokens_details: { thinking_tokens: 2 } };
    expect(encodeResult(fold(events), { id })).toMatchObject({ usage });
    expect(framesOf(events).at(-2)).toMatchObject({ usage });
  });
});

test.each([
  ['another delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'more' } }],
  ['another block', { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } }],
  ['another message', { type: 'message_start', message: { model: 'm', usage: { input_tokens: 900 } } }],
  ['what is no event', null],
])('%s after the last event of a stream is no part of the answer', (_name, more) => {
  const bytes = stream(answered[0]!.name);
  expect(decoded(bytes, Buffer.from(`data: ${JSON.stringify(more)}\n\n`))).toEqual(decoded(bytes));
});

test('arguments that a stream has at once keep their numbers', () => {
  const events = [
    { type: 'message_start', message: { model: 'm', usage: { input_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: 'ARGUMENTS' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ];
  const written = '{"id":12345678901234567890,"price":1.10}';
  const frames = events.map((event) => `data: ${JSON.stringify(event).replace('"ARGUMENTS"', written)}\n\n`).join('');
  const calls = decoded(Buffer.from(frames)).flatMap((event) => (event.type === 'tool-call' ? event.json : []));
  expect(calls.join('')).toBe(written);
});

describe('a stream that fails', () => {
  test.each(streams.filter(({ name }) => name.includes('/fails-')))('$name is a fault, and never an end', ({ bytes }) => {
    const { events, fault } = broken(bytes);
    expect(fault).toBeInstanceOf(Fault);
    expect(fault.details.elsewhere).toBe(true);
    expect(events.some((event) => event.type === 'finished')).toBe(false);
  });

  test('because the provider is overloaded says so, at its start and later', () => {
    expect(broken(stream('handmade/fails-overloaded-first')).fault.code).toBe('overloaded');
    expect(broken(stream('handmade/fails-overloaded-later')).fault.code).toBe('overloaded');
  });

  test.each([{}, [], null, 'text', { content: 'text' }, { content: [null], stop_reason: 'end_turn' }, { type: 'message', content: [] }])(
    '%j is no whole answer',
    (body) => {
      expect(() => decodeResult(body, 'm')).toThrow(Fault);
    },
  );
});

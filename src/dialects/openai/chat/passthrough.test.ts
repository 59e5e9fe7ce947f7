import { describe, expect, test } from 'vitest';
import { splitter } from '#kit/upstream/sse';
import type { GenerateEvent } from '#core/event';
import { decoder } from './decoder.ts';
import { encoder } from './encoder.ts';
import { PassingFrames, textIn } from './passthrough.ts';
import { chatRecordings } from '../../../../test/support/recordings.ts';
import { withoutWirePlaces } from '../../../../test/support/wire-places.ts';

const done = Buffer.from('data: [DONE]\n\n');

function frames(bytes: Uint8Array): readonly string[] {
  const { push, end } = splitter({ maxLine: 1 << 20 });
  return [...push(bytes), ...end()];
}

/** Replaces generated tool call ids by their places. */
function decoded(bytes: Uint8Array): readonly GenerateEvent[] {
  const reading = decoder('upstream-name');
  const events = [...frames(bytes).flatMap((line) => reading.decode(line)), ...reading.end()];
  return events.map((event) => (event.type === 'tool-call' && /^call_\w{24}$/.test(event.id) ? { ...event, id: `drawn_${event.call}` } : event));
}

function encoded(events: readonly GenerateEvent[], usageWanted: boolean): Buffer {
  const { encode, end } = encoder({ id: 'chatcmpl-ours', created: 1_780_000_000, usageWanted });
  return Buffer.from(events.map(encode).join('') + end());
}

/** The bytes that the client gets of a stream that arrives in these buffers. */
function passed(pieces: readonly Uint8Array[], usageWanted = true) {
  const passing = new PassingFrames(decoder('upstream-name'), { usageWanted });
  const bytes = Buffer.concat([...pieces.flatMap((piece) => passing.push(piece)), ...passing.last(), done]);
  passing.end();
  return { bytes, passing };
}

/** The same stream with spaces in its JSON. */
function spaced(bytes: Uint8Array): Buffer {
  const loose = (line: string) => (line === '[DONE]' ? line : JSON.stringify(JSON.parse(line), undefined, 1).replaceAll(/\n\s*/g, ' '));
  return Buffer.from(
    frames(bytes)
      .map((line) => `data: ${loose(line)}\n\n`)
      .join(''),
  );
}

/** The end of a thought names the field in which it came: content in parts, which is mended, has none. */
const withoutEnds = (events: readonly GenerateEvent[]) => events.filter((event) => event.type !== 'thought' || event.text !== '');

const withoutUsage = (events: readonly GenerateEvent[]) => events.filter(({ type }) => type !== 'usage');

const recordings = chatRecordings.answered
  .filter(({ bytes }) => !bytes.includes('\r') && bytes[0] !== 0xef)
  .flatMap(({ name, bytes }) => [
    { name, bytes },
    { name: `${name}, with spaces,`, bytes: spaced(bytes) },
  ]);

describe('a recorded stream passed through', () => {
  test.each(recordings)('$name says what it says when it is decoded and encoded, wherever it is cut', ({ bytes }) => {
    const events = withoutWirePlaces(decoded(encoded(decoded(bytes), true)));
    const stride = Math.max(1, Math.floor(bytes.length / 400));
    for (let at = 0; at <= bytes.length; at += stride)
      expect(withoutWirePlaces(decoded(passed([bytes.subarray(0, at), bytes.subarray(at)]).bytes)), `cut at byte ${at}`).toEqual(events);
  });

  test.each(recordings)('$name in pieces of seven bytes says the same', ({ bytes }) => {
    const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, at) => bytes.subarray(at * 7, at * 7 + 7));
    expect(withoutEnds(decoded(passed(pieces).bytes))).toEqual(withoutEnds(decoded(bytes)));
  });

  test.each(recordings)('$name has the same end for the books', ({ bytes }) => {
    const { closing, opening } = passed([bytes]).passing;
    const ends = (events: readonly GenerateEvent[]) =>
      events.map((event) => (event.type === 'finished' ? { type: event.type, candidate: event.candidate, reason: event.reason, raw: event.raw } : event));
    expect(ends([...opening, ...closing])).toEqual(ends(decoded(bytes).filter(({ type }) => ['started', 'finished', 'usage'].includes(type))));
  });

  test.each(recordings)('$name keeps back the usage chunk that nobody asked for, and nothing else', ({ bytes }) => {
    const kept = passed([bytes], false).bytes;
    expect(withoutEnds(withoutUsage(decoded(kept)))).toEqual(withoutEnds(withoutUsage(decoded(bytes))));
    for (const line of frames(kept))
      if (line !== '[DONE]') expect(JSON.parse(line)).not.toMatchObject({ choices: [], usage: { prompt_tokens: expect.anything() } });
  });
});

test('content that comes in parts is text and thoughts, beside log probabilities and calls too', () => {
  const delta = (members: string, more = '') => chunk(`"choices":[{"index":0,"delta":{${members}}${more},"finish_reason":null}]`);
  const parts = '[{"type":"thinking","thinking":[{"type":"text","text":"h"},{"type":"text","text":"m"}]},{"type":"text","text":"Yes."},{"type":"reference"}]';
  const logprobs = '"logprobs":{"content":[{"token":"So","logprob":0,"bytes":null,"top_logprobs":[]}],"refusal":null}';
  const call = '"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]';
  const plain = delta('"content":"So"', `,${logprobs}`);
  const { bytes } = passed([
    Buffer.from(delta(`"role":"assistant","content":${parts}`) + delta('"content":[]') + plain + delta(`"content":[],${call}`) + ending),
  ]);
  const lines = frames(bytes);
  expect(lines.slice(0, -1).map((line) => (JSON.parse(line) as { choices: { delta: object }[] }).choices[0]!.delta)).toEqual([
    { role: 'assistant', content: 'Yes.', reasoning_content: 'hm' },
    { content: '' },
    { content: 'So' },
    { content: '', tool_calls: [expect.objectContaining({ id: 'c' })] },
    {},
  ]);
  expect(bytes.includes(plain)).toBe(true);
});

const chunk = (members: string) => `data: {"id":"1","object":"chat.completion.chunk","model":"m",${members}}\n\n`;
const textChunk = (text: string) => chunk(`"choices":[{"index":0,"delta":{"role":"assistant","content":${JSON.stringify(text)}},"finish_reason":null}]`);
const ending = chunk('"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]');

describe('a frame with a fault after the first words', () => {
  const sent = textChunk('hello') + textChunk('more');
  test.each([
    ['an error with spaces', 'data: { "error" : { "message": "no", "code": 503 } }', 'overloaded'],
    ["vLLM's error, which has no member of that name", 'data: {"object": "error", "message": "no", "code": 503}', 'overloaded'],
    ['JSON that breaks off', 'data: {"choices":[{"index":', 'upstream-failed'],
    ['no list of choices', 'data: {"choices":5}', 'upstream-failed'],
    ['a choice that is none', 'data: {"choices":[null]}', 'upstream-failed'],
    ['no object', 'data: 5', 'upstream-failed'],
    ['a text without its end', textChunk('cut').slice(0, -30), 'upstream-failed'],
    ['a quote in its text', textChunk('TEXT').replace('TEXT', 'a"b'), 'upstream-failed'],
    ['an escape that JSON does not have', textChunk('TEXT').replace('TEXT', String.raw`a\xb`), 'upstream-failed'],
    ['an escape at the end of its text', textChunk('TEXT').replace('TEXT', 'a\\'), 'upstream-failed'],
    ['a control character in its text', textChunk('TEXT').replace('TEXT', 'a\tb'), 'upstream-failed'],
    ['another end', textChunk('TEXT').replace('}]}', '}]]'), 'upstream-failed'],
    ['more behind its end', `${textChunk('TEXT').trimEnd()}}`, 'upstream-failed'],
  ])('%s: it is not passed on, what precedes it is', (_name, frame, code) => {
    const passing = new PassingFrames(decoder('m'), { usageWanted: true });
    const pieces = passing.push(Buffer.from(`${sent}${frame.trimEnd()}\n\n${textChunk('late')}${ending}`));
    expect(Buffer.concat([...pieces]).toString()).toBe(sent);
    expect(passing.failed).toBe(true);
    for (const asked of [() => passing.check(), () => passing.push(Buffer.from(textChunk('late'))), () => passing.end()])
      expect(asked).toThrow(expect.objectContaining({ code }));
    expect(passing.tokens).toBeLessThan(6);
  });

  test('that is the last, without its end, is neither passed on nor counted', () => {
    const passing = new PassingFrames(decoder('m'), { usageWanted: true });
    passing.push(Buffer.from(sent + textChunk('word '.repeat(20_000)).slice(0, -60)));
    expect(passing.last()).toEqual([]);
    expect(() => passing.end()).toThrow(expect.objectContaining({ code: 'upstream-failed' }));
    expect(passing.tokens).toBeLessThan(6);
  });
});

test.each([
  ['frames that differ in their text', ''],
  ['frames that also differ in what hides their length', ',"obfuscation":"TEXT"'],
])('%s are not decoded', (_name, padding) => {
  const words = Array.from({ length: 200 }, (_, at) => [' word', ' "naïve"', '\n', ' 漢字 \\'][at % 4]!);
  const frame = (text: string, at: number) => textChunk(text).replace(/\}\n\n$/, `${padding.replace('TEXT', 'xX3'.repeat(at % 5))}}\n\n`);
  const sent = words.map(frame).join('') + ending;
  let decodings = 0;
  const inner = decoder('m');
  const decode = inner.decode.bind(inner);
  const counted = Object.assign(inner, { decode: (line: string) => (decodings++, decode(line)) });
  let heard = '';
  const passing = new PassingFrames(counted, { usageWanted: true, heard: (text) => void (heard += text) });
  expect(Buffer.concat([...passing.push(Buffer.from(sent))]).toString()).toBe(sent);
  passing.end();
  expect(heard).toBe(words.join(''));
  expect(decodings).toBeLessThan(5);
});

test.each(['{"prompt_tokens":-5,"completion_tokens":1}', '{"prompt_tokens":"11","completion_tokens":1}', '"11"', '{}'])(
  'a usage chunk with %s is not passed on',
  (usage) => {
    const sent = textChunk('hello') + ending;
    expect(passed([Buffer.from(sent + chunk(`"choices":[],"usage":${usage}`))]).bytes.toString()).toBe(`${sent}data: [DONE]\n\n`);
  },
);

test('words that look like markers pass as they are', () => {
  const sent = textChunk('hello') + textChunk('{"finish_reason":"stop","usage":{"a":1},"error":{}}') + ending;
  expect(passed([Buffer.from(sent)]).bytes.toString()).toBe(`${sent}data: [DONE]\n\n`);
});

test('a candidate that was cut is missed even if another one has ended', () => {
  const passing = new PassingFrames(decoder('m'), { usageWanted: true });
  passing.push(Buffer.from(textChunk('one') + chunk('"choices":[{"index": 1,"delta":{"content":"two"}}]') + ending));
  expect(() => passing.end()).toThrow(expect.objectContaining({ code: 'upstream-failed' }));
});

test('a carriage return inside of a frame does not let anything through unread', () => {
  const frame = 'data: {"choices":\rdata: [{"index":0,"delta":{"content":"b"}}]}\n\n';
  const { bytes } = passed([Buffer.from(textChunk('a') + frame + ending)]);
  expect(bytes.includes('\r')).toBe(false);
  expect(decoded(bytes).flatMap((event) => (event.type === 'text' ? [event.text] : []))).toEqual(['a', 'b']);
});

test('nothing passes after [DONE]', () => {
  const { bytes } = passed([Buffer.from(`${textChunk('a')}${ending}data: [DONE]\n\n${textChunk('late')}`)]);
  expect(bytes.includes('late')).toBe(false);
});

test('a frame without end is refused at 8 MiB, in whatever pieces it comes', () => {
  const passing = new PassingFrames(decoder('m'), { usageWanted: true });
  passing.push(Buffer.from(textChunk('a')));
  const piece = Buffer.alloc(65_536, 'a');
  const flood = () => {
    for (let at = 0; at < 130; at++) passing.push(piece);
  };
  expect(flood).toThrow(expect.objectContaining({ code: 'upstream-failed' }));
});

test.each([
  ['a word each', Array.from({ length: 100 }, () => ' word'), 100, 110],
  ['a number each', Array.from({ length: 100 }, (_, at) => ' ' + (at + 1)), 200, 210],
  ['long pieces', Array.from({ length: 4 }, () => ' word'.repeat(80)), 320, 340],
  ['one piece', [' word'.repeat(80)], 80, 90],
])('frames of %s count about as many tokens as they say', (_name, words, least, most) => {
  const { passing } = passed([Buffer.from(words.map(textChunk).join('') + ending)]);
  expect(passing.tokens).toBeGreaterThanOrEqual(least);
  expect(passing.tokens).toBeLessThanOrEqual(most);
});

describe('the text of the first candidate', () => {
  const heardOf = (pieces: readonly Uint8Array[]): string => {
    let heard = '';
    const passing = new PassingFrames(decoder('m'), { usageWanted: true, heard: (text) => void (heard += text) });
    for (const piece of pieces) passing.push(piece);
    passing.last();
    passing.end();
    return heard;
  };

  test.each(recordings)('of $name is heard as it is decoded, wherever it is cut', ({ bytes }) => {
    const said = textIn(decoded(bytes));
    const stride = Math.max(1, Math.floor(bytes.length / 200));
    for (let at = 0; at <= bytes.length; at += stride) expect(heardOf([bytes.subarray(0, at), bytes.subarray(at)]), `cut at byte ${at}`).toBe(said);
  });

  test('is heard with its escapes and signs, and not of members that only resemble it', () => {
    const frame = (delta: object, index = 0) =>
      `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index, delta, finish_reason: null }] })}\n\n`;
    const texts = ['a "quoted" \\ word\n', 'naïve 漢字 😀', '\\', '\\\\"', '"content":"x"', ''];
    const frames = [
      frame({ role: 'assistant', content: '' }),
      ...texts.map((content) => frame({ content })),
      frame({ reasoning_content: 'thought' }),
      frame({ content: 'other' }, 1),
      frame({ refusal: 'no' }),
      `data: {"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}\n\n`,
      `data: {"choices":[{"index":0,"delta":{"content":"spoken"},"finish_reason":"stop"}]}\n\n`,
    ];
    const whole = Buffer.from(frames.join(''));
    expect(heardOf([whole])).toBe(`${texts.join('')}nospoken`);
    expect(heardOf(Array.from(whole, (_, at) => whole.subarray(at, at + 1)))).toBe(`${texts.join('')}nospoken`);
  });
});

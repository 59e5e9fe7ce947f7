import { describe, expect, test } from 'vitest';
import { Fault } from '#core/fault';
import { LineTooLong } from '#kit/upstream/sse';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';
import { RawEvents } from './raw-events.ts';

const frame = (event: object, end = '\n') => `event: x${end}data: ${JSON.stringify(event)}${end}${end}`;
const picture = { type: 'image_generation.partial_image', b64_json: 'A'.repeat(3000) };
const last = { type: 'image_generation.completed', b64_json: 'B'.repeat(3000), usage: { input_tokens: 1, output_tokens: 2 } };
const error = { type: 'error', error: { type: 'server_error', code: 'x', message: 'no' } };

/** What is forwarded of a text that comes in pieces of a size, and the fault that ends it. */
function forwardedOf(text: string, size: number): { readonly out: string; readonly fault?: string } {
  const events = new RawEvents();
  const out: Uint8Array[] = [];
  const bytes = Buffer.from(text);
  try {
    for (let at = 0; at < bytes.length; at += size) {
      out.push(...events.push(bytes.subarray(at, at + size)));
      events.check();
    }
    out.push(...events.end());
    return { out: Buffer.concat(out).toString() };
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown;
    return { out: Buffer.concat(out).toString(), fault: thrown.code };
  }
}

describe.each(['\n', '\r\n'])('with %j at the ends of lines, cut anywhere,', (end) => {
  const sizes = [1, 2, 3, 7, 500, 1023, 1024, 1025, 100_000];

  test('events pass as they came', () => {
    const whole = `: hello${end}${end}${frame(picture, end)}${frame(last, end)}`;
    for (const size of sizes) expect(forwardedOf(whole, size)).toEqual({ out: whole });
  });

  test('an error ends them, and none of it passes', () => {
    for (const one of [error, { error: { message: 'no' } }, { sequence_number: 3, type: 'error', message: 'no' }])
      for (const size of sizes)
        expect(forwardedOf(`${frame(picture, end)}${frame(one, end)}${frame(last, end)}`, size)).toEqual({
          out: frame(picture, end),
          fault: 'upstream-failed',
        });
  });

  test('an end without the last event is a failure', () => {
    for (const size of sizes) expect(forwardedOf(frame(picture, end), size)).toEqual({ out: frame(picture, end), fault: 'upstream-failed' });
  });
});

test('the last event that breaks off is a failure, and one that only lacks its blank line is none', () => {
  for (const one of [last, { type: 'transcript.text.done', text: 'hello', usage: { input_tokens: 1, output_tokens: 2 } }])
    for (const size of [1, 100, 100_000]) {
      const whole = `data: ${JSON.stringify(one)}`;
      expect(forwardedOf(whole, size)).toEqual({ out: whole });
      expect(forwardedOf(`${whole}\n`, size)).toEqual({ out: `${whole}\n` });
      expect(forwardedOf(whole.slice(0, -5), size)).toMatchObject({ fault: 'upstream-failed' });
    }
});

test('the text of events is counted without what stands around it, once', () => {
  const events = new RawEvents();
  const said = ['Hello ', 'world, ', 'grüß dich'].map((delta) => frame({ type: 'transcript.text.delta', delta })).join('');
  events.push(Buffer.from(`: comment\n\n${' '.repeat(5000)}\n\n${said}`));
  expect(events.textTokens).toBe(10);
  events.push(Buffer.from(frame({ type: 'transcript.text.done', text: 'Hello world, grüß dich' })));
  expect(events.textTokens).toBe(10);
});

test('what is said in pieces, in segments and as a whole is counted once', () => {
  const events = new RawEvents();
  const pieces = ['Hello ', 'world'].map(
    (text) => frame({ type: 'transcript.text.delta', delta: text }) + frame({ type: 'transcript.text.segment', id: 's', speaker: 'A', text }),
  );
  events.push(Buffer.from(pieces[0]!));
  expect(events.textTokens).toBe(2);
  events.push(Buffer.from(pieces[1]! + frame({ type: 'transcript.text.done', text: 'Hello world' })));
  expect(events.textTokens).toBe(4);
});

test('segments without pieces are counted', () => {
  const events = new RawEvents();
  for (const text of ['Hello ', 'world']) events.push(Buffer.from(frame({ type: 'transcript.text.segment', text })));
  expect(events.textTokens).toBe(4);
});

test('of a long frame without a blank line, and of one that is not whole yet, the text is counted', () => {
  const text = ' word'.repeat(1000);
  for (const size of [1, 700, 100_000]) {
    const events = new RawEvents();
    const whole = Buffer.from(`data: ${JSON.stringify({ type: 'transcript.text.done', text })}`);
    for (let at = 0; at < whole.length; at += size) events.push(whole.subarray(at, at + size));
    events.end();
    expect(events.textTokens).toBeGreaterThanOrEqual(1000);
    expect(events.textTokens).toBeLessThan(1300);
  }
  const events = new RawEvents();
  const half = Buffer.from(frame({ type: 'transcript.text.delta', delta: text })).subarray(0, 4000);
  events.push(Buffer.concat([Buffer.from(frame({ type: 'transcript.text.delta', delta: 'four' })), half]));
  expect(events.textTokens).toBe(1001);
  expect(() => events.end()).toThrow(Fault);
  expect(events.textTokens).toBe(1001);
});

test('a long last event is judged by its data, not by the lines behind it', () => {
  const done = `data: ${JSON.stringify({ type: 'transcript.text.done', text: 'a'.repeat(3000) })}`;
  for (const size of [1, 6, 100, 100_000]) {
    for (const rest of ['', ' ', '\n', '\r\n', '\nid: 7', '\r\nid: 7\r\n', '\n: data: x', '\ndata'])
      expect(forwardedOf(done + rest, size)).toEqual({ out: done + rest });
    for (const rest of ['\n', '\nid: }', '\r\nretry: 1}\n', ' '])
      expect(forwardedOf(done.slice(0, -1) + rest, size)).toMatchObject({ fault: 'upstream-failed' });
  }
});

test('a line without end is a failure', () => {
  const events = new RawEvents();
  const push = () => events.push(Buffer.alloc(1 << 20, 'a'));
  expect(() => Array.from({ length: 65 }, push)).toThrow(LineTooLong);
});

test('an error without a blank line behind it, and one that is no JSON, are failures', () => {
  expect(forwardedOf(`data: ${JSON.stringify(error)}`, 10)).toEqual({ out: '', fault: 'upstream-failed' });
  expect(forwardedOf('event: error\ndata: gone\n\n', 10)).toEqual({ out: '', fault: 'upstream-failed' });
});

test('the event of one picture that failed among others passes, and so do streams of other kinds and their ends', () => {
  for (const text of [
    `${frame({ type: 'image_generation.partial_failed', error: { code: 'x' } })}${frame(last)}`,
    'data: {"x":1}\n\n',
    `${frame(picture)}data: [DONE]\n\n`,
    `${frame(last)}data: rest`,
  ])
    expect(forwardedOf(text, 13)).toEqual({ out: text });
});

test.each([
  ['line breaks', '\n'],
  ['comments', ':\n\n'],
  ['events without JSON', 'data:x\n\n'],
])('%s pass in one piece, and at once', (_, one) => {
  const bytes = Buffer.from(one.repeat(Math.ceil(65_536 / one.length)));
  const took = Array.from({ length: 5 }, () => cpuMilliseconds(() => expect(new RawEvents().push(bytes)).toHaveLength(1)));
  expect(Math.min(...took)).toBeLessThan(50);
});

test('an error of many short lines is read at once, and nothing behind it passes', () => {
  const bytes = Buffer.from(`event: error\n${'a\n'.repeat(32_768)}\n${frame(picture)}`);
  const took = Array.from({ length: 5 }, () =>
    cpuMilliseconds(() => {
      const events = new RawEvents();
      expect(events.push(bytes)).toEqual([]);
      expect(() => events.check()).toThrow(Fault);
    }),
  );
  expect(Math.min(...took)).toBeLessThan(50);
});

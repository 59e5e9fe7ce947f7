import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LineTooLong, splitter } from './sse.ts';
import { cpuMilliseconds } from '../../../test/support/cpu-time.ts';

/** The frames of these pieces. */
function frames(...pieces: (string | Uint8Array)[]): readonly string[] {
  const { push, end } = splitter({ maxLine: 1 << 20 });
  return [...pieces.flatMap((piece) => push(Buffer.from(piece))), ...end()];
}

describe('a stream of events', () => {
  test.each([
    ['data: a\n\ndata: b\n\n', ['a', 'b']],
    ['data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b']],
    ['data: a\r\rdata: b\r\r', ['a', 'b']],
    ['data: a\r\n\rdata: b\n\r\n', ['a', 'b']],
    ['data:a\n\ndata:  b\n\n', ['a', ' b']],
    ['\ufeffdata: a\n\n', ['a']],
    ['data: \ufeffa\n\n', ['\ufeffa']],
    [': hello\n\nevent: x\nid: 1\nretry: 5\ndata: a\n\n', ['a']],
    ['data: a\ndata: b\n\n', ['a\nb']],
    ['data: a\r\ndata: b\r\n\r\n', ['a\nb']],
    ['data\ndata: a\n\n', ['\na']],
    ['data\n\ndata:\n\n', []],
    ['datas: a\n\ndat: b\n\n Data: c\n\nDATA: d\n\n', []],
    ['{"error":1}\n', []],
    ['data: a', ['a']],
    ['data: a\n', ['a']],
    ['data: a\r', ['a']],
    ['\n\n\n\ndata: a\n\n\n\n', ['a']],
    ['', []],
    ['data: Grüße 世界 🌍\n\n', ['Grüße 世界 🌍']],
  ])('%j has the payloads %j', (text, payloads) => {
    expect(frames(text)).toEqual(payloads);
  });

  test('gives a frame as soon as it is whole', () => {
    const { push } = splitter({ maxLine: 100 });
    expect(push(Buffer.from('data: a\n'))).toEqual([]);
    expect(push(Buffer.from('\nda'))).toEqual(['a']);
    expect(push(Buffer.from('ta: b\r\n\r'))).toEqual(['b']);
    expect(push(Buffer.from('\n'))).toEqual([]);
  });

  test('is the same however it is cut', () => {
    const piece = fc.constantFrom('data: ', 'data:', 'data', ': note', 'event: x', 'é', '🌍', 'a', ' ', '\n', '\r', '\r\n', '\n\n', '\r\n\r\n');
    fc.assert(
      fc.property(fc.array(piece), fc.array(fc.nat()), (pieces, places) => {
        const bytes = Buffer.from(pieces.join(''));
        const cuts = [...new Set(places.map((at) => at % (bytes.length + 1)))].toSorted((a, b) => a - b);
        const parts = [0, ...cuts].map((from, at) => bytes.subarray(from, cuts[at] ?? bytes.length));
        expect(frames(...parts)).toEqual(frames(bytes));
      }),
      { numRuns: 2000 },
    );
  });

  test('keeps nothing of the memory it was given', () => {
    const { push } = splitter({ maxLine: 100 });
    const bytes = Buffer.from('data: ab');
    push(bytes);
    bytes.fill(0);
    expect(push(Buffer.from('c\n\n'))).toEqual(['abc']);
  });

  test('may come as any view of bytes', () => {
    const { push } = splitter({ maxLine: 100 });
    expect(push(new Uint8Array(Buffer.from('xxdata: a\n\nxx')).subarray(2, 11))).toEqual(['a']);
  });
});

describe('a frame without an end is given up', () => {
  const limit = 1 << 20;
  const long = Buffer.alloc(limit + 1, 'a');

  test.each<[string, Uint8Array[]]>([
    ['in one piece', [Buffer.from('data: '), long]],
    ['in one piece with its end', [Buffer.concat([Buffer.from('data: '), long, Buffer.from('\n\n')])]],
    ['in one piece with CRLF', [Buffer.concat([Buffer.from('data: '), long, Buffer.from('\r\n\r\n')])]],
    ['in many', Array.from({ length: 20 }, () => long.subarray(0, 60_000))],
    ['in many lines', Array.from({ length: 20 }, () => Buffer.concat([Buffer.from('data: '), long.subarray(0, 60_000), Buffer.from('\n')]))],
    ['as a comment', [Buffer.from(':'), long]],
    ['in 50,001 lines of nothing', [Buffer.from('data:\n'.repeat(50_001))]],
  ])('%s', (_, pieces) => {
    const { push } = splitter({ maxLine: limit });
    expect(() => pieces.forEach((piece) => push(piece))).toThrow(LineTooLong);
  });

  test('but one of exactly the limit is taken', () => {
    const { push } = splitter({ maxLine: 106 });
    expect(push(Buffer.concat([Buffer.from('data: '), long.subarray(0, 100), Buffer.from('\n\n')]))).toHaveLength(1);
  });

  test('byte by byte costs no more than its length', () => {
    const { push, end } = splitter({ maxLine: limit });
    const one = Buffer.from('a');
    push(Buffer.from('data: '));
    const took = cpuMilliseconds(() => {
      for (let at = 0; at < 200_000; at++) push(one);
    });
    expect(end()[0]).toHaveLength(200_000);
    expect(took).toBeLessThan(2000);
  });
});

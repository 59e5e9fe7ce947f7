import { describe, expect, test } from 'vitest';
import { withMessageLimit } from './message-limit.ts';

const limits = { bytes: 300, values: 90 };
const one = '{"jsonrpc":"2.0","id":1,"result":{}}';

/** What comes out of these pieces, each as it came; the error, where it breaks. */
async function out(pieces: readonly string[], type: string, status = 200): Promise<readonly string[]> {
  const body = ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece)));
  const { body: limited } = withMessageLimit(new Response(body, { status, headers: { 'content-type': type } }), limits);
  const found: string[] = [];
  try {
    for await (const piece of limited as unknown as AsyncIterable<Uint8Array>) found.push(new TextDecoder().decode(piece));
  } catch (error) {
    found.push(`broken: ${(error as Error).message}`);
  }
  return found;
}

const json = 'application/json';
const events = 'text/event-stream';

test('a stream breaks that has thousands of messages in a minute', async () => {
  const found = await out(Array<string>(4000).fill(`data: ${one}\n\n`), events);
  expect([found.length, found.at(-1)]).toEqual([3001, 'broken: There are too many messages.']);
});

describe('a body', () => {
  test('is passed on when all of it has come', async () => {
    expect(await out([one.slice(0, 9), one.slice(9)], json)).toEqual([one]);
    expect(await out([`\ufeff${one}`], json)).toEqual([one]); // the decoder of the test leaves the mark out
    expect(await out(['not found'], 'text/plain', 404)).toEqual(['not found']);
    expect(await out([], json)).toEqual([]);
  });

  test.each([
    ['large', 'x'.repeat(301), 'A message is too large.'],
    ['deep', `{"a":${'['.repeat(70)}`, 'The text is nested deeper than 64 levels.'],
    ['many values', ` {"a":[${'0,'.repeat(90)}0]}`, 'The text has more than 90 values.'],
    ['a batch', `[${one}]`, 'Batches of messages are not taken.'],
  ])('that is %s breaks before any of it is read', async (_, text, message) => {
    expect(await out([text.slice(0, 9), text.slice(9)], json)).toEqual([`broken: ${message}`]);
    expect(await out([text], events, 400)).toEqual([`broken: ${message}`]);
  });
});

describe('events', () => {
  test.each(['\n', '\r\n', '\r'])('whose lines end with %j are passed on when they have come', async (end) => {
    const text = [`event: message`, `data: ${one}`, '', `data: ${one}`, '', ': left open'].join(end);
    for (let size = 1; size < 40; size++) {
      const pieces = text.match(new RegExp(`[^]{1,${size}}`, 'g'))!;
      const passed = await out(pieces, events);
      expect(passed.join('')).toBe(text);
      expect(passed.length).toBeLessThanOrEqual(4);
      expect(passed.slice(0, -1).every((piece) => piece.startsWith('event') || piece.startsWith('data') || piece === '\n')).toBe(true);
    }
  });

  test('that came before one that is too much are passed on, and it is not', async () => {
    const deep = `data: {"a":${'['.repeat(70)}\n\n`;
    expect(await out([`data: ${one}\n\n`, deep], events)).toEqual([`data: ${one}\n\n`, 'broken: The text is nested deeper than 64 levels.']);
    expect(await out([`data: {"a":\ndata: ${'['.repeat(70)}\n\n`], events)).toEqual(['broken: The text is nested deeper than 64 levels.']);
    expect(await out([`id: "\ndata: [\n\n`], events)).toEqual(['broken: Batches of messages are not taken.']);
    expect(await out([`: ${'x'.repeat(160)}\n`, `: ${'x'.repeat(160)}\n`], events)).toEqual(['broken: A message is too large.']);
  });
});

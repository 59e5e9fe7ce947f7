import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { testClock } from '../../test/support/fakes/clock.ts';
import { readBody } from './body.ts';
import type { Exchange } from './exchange.ts';

const limits = { bodyBytes: 10_000_000, fileBytes: 0, bodyIdleSeconds: 60 };

/** A request whose body the test sends, and which has room for this many bytes. */
function requestWith(headers: Readonly<Record<string, string>>, room = Infinity) {
  const incoming = Object.assign(new EventEmitter(), { complete: false, pause: () => {} });
  const exchange = {
    incoming,
    header: (name: string) => headers[name],
    invite: () => {},
    bodyUntil: Infinity,
    held: 0,
    hasRoom: (bytes: number) => exchange.held + bytes <= room,
    take(bytes: number) {
      if (!exchange.hasRoom(bytes)) return false;
      exchange.held += bytes;
      return true;
    },
  };
  const clock = testClock();
  return {
    exchange,
    clock,
    body: Promise.try(readBody, exchange as unknown as Exchange, limits, clock),
    send: (bytes: Buffer) => incoming.emit('data', bytes),
    end() {
      incoming.complete = true;
      incoming.emit('end');
    },
    /** As the one timer for all open exchanges does. */
    look: () => clock.monotonic() > exchange.bodyUntil && incoming.emit('slow'),
  };
}

test.each([
  ['of a length that was told', { 'content-length': '70000' }],
  ['in chunks', { 'transfer-encoding': 'chunked' }],
])('a body %s is the same however it is cut', async (_name, headers) => {
  const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, at) => at % 251));
  for (const size of [1, 777, 65_536, 70_000]) {
    const { send, end, body, exchange } = requestWith(headers);
    for (let at = 0; at < bytes.length; at += size) send(bytes.subarray(at, at + size));
    end();
    expect(Buffer.compare(await body, bytes)).toBe(0);
    expect(exchange.held).toBe(70_000);
  }
});

test('a body that came with its head is taken at once, in however many pieces, unless there is no room for it', () => {
  const pieces = ['{"a"', ':1}'].map((text) => Buffer.from(text));
  const arrived = Object.assign(new Readable({ read: () => {} }), { complete: true });
  for (const piece of [...pieces, null]) arrived.push(piece);
  expect(arrived.readableLength).toBe(7);
  const exchangeOf = (room: boolean) =>
    ({
      incoming: arrived,
      header: (name: string) => (name === 'content-length' ? '7' : undefined),
      invite: () => {},
      hasRoom: () => true,
      take: () => room,
    }) as unknown as Exchange;
  expect(() => readBody(exchangeOf(false), limits, testClock(), 'form')).toThrow(expect.objectContaining({ code: 'overloaded' }));
  expect(readBody(exchangeOf(true), limits, testClock(), 'form')).toEqual(Buffer.concat(pieces));
});

test('a body for which there is no room is refused before it is read where it tells its length, else as soon as it is too much', async () => {
  const told = requestWith({ 'content-length': '1001' }, 1000);
  await expect(told.body).rejects.toMatchObject({ code: 'overloaded', details: { retryAfter: 2 } });
  expect(told.exchange.incoming.listenerCount('data')).toBe(0);
  const grown = requestWith({ 'transfer-encoding': 'chunked' }, 1000);
  grown.send(Buffer.alloc(1000));
  expect(grown.exchange.held).toBe(1000);
  grown.send(Buffer.alloc(1));
  await expect(grown.body).rejects.toMatchObject({ code: 'overloaded' });
});

test('an announced body holds what has arrived of it, and is refused in the middle where there is no room for more', async () => {
  const { exchange, send, body } = requestWith({ 'content-length': '10000000' }, 10_000_000);
  expect(exchange.held).toBe(0);
  send(Buffer.alloc(70_000));
  send(Buffer.alloc(1));
  expect(exchange.held).toBe(70_001);
  exchange.held = 9_999_999; // somebody else's
  send(Buffer.alloc(2));
  await expect(body).rejects.toMatchObject({ code: 'overloaded', details: { retryAfter: 2 } });
});

test('a body that never stops for long but comes with less than a kilobyte a second is too slow, and one with more is not', async () => {
  const piece = Buffer.alloc(16_384);
  const come = async (everySeconds: number, pieces: number, before = 0) => {
    const { clock, send, end, look, body } = requestWith({ 'transfer-encoding': 'chunked' });
    send(Buffer.alloc(before));
    const outcome = body.then(
      () => 'read',
      (fault: { code: string }) => fault.code,
    );
    for (let sent = 0; sent < pieces; sent++) {
      send(piece);
      for (let second = 0; second < everySeconds; second++) {
        clock.advance(1000);
        look();
      }
    }
    end();
    return outcome;
  };
  expect(await come(20, 50)).toBe('slow-client');
  expect(await come(16, 50)).toBe('read');
  expect(await come(16, 58, 5_000_000)).toBe('slow-client'); // a quarter of an hour is enough for any
});

import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { connectRaw, type Raw } from './raw.ts';

const open: { close(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

/** Both ends of a connection. */
async function line(): Promise<{ raw: Raw; far: Socket }> {
  const server = createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const [[far], raw] = await Promise.all([
    once(server, 'connection') as Promise<[Socket]>,
    connectRaw(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
  ]);
  far.on('error', () => {});
  open.push({ close: () => (raw.close(), far.destroy(), server.close()) });
  return { raw, far };
}

describe('the raw client reads an answer', () => {
  test('with a length up to that length, and then the next answer', async () => {
    const { raw, far } = await line();
    far.write('HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a:2\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
    const first = await raw.answer();
    expect(first).toMatchObject({
      status: 200,
      reason: 'OK',
      text: 'hi',
      informational: [],
      headers: [
        ['X-A', '1'],
        ['x-a', '2'],
        ['Content-Length', '2'],
      ],
    });
    expect(first.header('x-A')).toBe('1, 2');
    expect(first.header('server')).toBeUndefined();
    expect(await raw.answer()).toMatchObject({ status: 404, text: '' });
  });

  test('in chunks, wherever they are cut', async () => {
    const { raw, far } = await line();
    const answer = raw.answer();
    for (const piece of 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n') far.write(piece);
    expect((await answer).text).toBe('hello');
  });

  test('without a length up to the end of the connection', async () => {
    const { raw, far } = await line();
    far.end('HTTP/1.1 200 OK\r\n\r\nhello');
    expect((await raw.answer()).text).toBe('hello');
  });

  test('after 1xx answers', async () => {
    const { raw, far } = await line();
    far.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\na: b\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n');
    expect(await raw.answer()).toMatchObject({ status: 204, informational: [100, 103] });
  });

  test('to HEAD without a body, whatever its length', async () => {
    const { raw, far } = await line();
    far.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n');
    expect((await raw.answer({ to: 'HEAD' })).text).toBe('');
  });

  test('that is cut as an error', async () => {
    const { raw, far } = await line();
    far.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
    await expect(raw.answer()).rejects.toThrow(/No answer before the end \(fin\).*half/u);
  });

  test('that does not come only until the deadline', async () => {
    const { raw, far } = await line();
    far.write('HTTP/1.1 200 OK\r\n');
    await expect(raw.answer({ within: 30 })).rejects.toThrow(/Not within 30 ms\. No answer\. So far: .*200 OK/u);
  });

  test('that is not HTTP as an error', async () => {
    const { raw, far } = await line();
    far.write('SSH-2.0\r\n\r\n');
    await expect(raw.answer()).rejects.toThrow('Not a status line');
  });
});

test('the raw client distinguishes the ends of a connection: FIN and RST', async () => {
  const fin = await line();
  fin.far.end();
  expect(await fin.raw.ended()).toBe('fin');
  const reset = await line();
  reset.far.resetAndDestroy();
  expect(await reset.raw.ended()).toBe('reset');
});

test('the raw client sends bytes exactly as given, slowly if asked, and stops when the other side is gone', async () => {
  const { raw, far } = await line();
  const heard: Buffer[] = [];
  far.on('data', (piece: Buffer) => heard.push(piece));
  const ended = once(far, 'end');
  raw.send('a\rb\0');
  expect(await raw.sendSlowly('cdefg', { bytes: 2, every: 1 })).toBe(5);
  raw.halfClose();
  await ended;
  expect(Buffer.concat(heard).toString()).toBe('a\rb\0cdefg');
  far.write('still here');
  await raw.until('still');
  far.resetAndDestroy();
  await raw.ended();
  expect(await raw.sendSlowly('x'.repeat(100), { bytes: 1, every: 1 })).toBe(0);
});

test('a reset by the raw client reaches the other side as a reset', async () => {
  const { raw, far } = await line();
  const error = once(far, 'error');
  far.resume();
  raw.reset();
  expect((await error)[0]).toMatchObject({ code: 'ECONNRESET' });
});

test('a paused raw client makes the other side wait', async () => {
  const { raw, far } = await line();
  raw.pause();
  while (far.write(Buffer.alloc(1 << 20)));
  expect(far.writableLength).toBeGreaterThan(0);
  raw.resume();
  await once(far, 'drain');
});

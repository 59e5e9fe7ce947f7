import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { testClock } from '../../../test/support/fakes/clock.ts';
import type { Lookup } from '../net/dns-cache.ts';
import { openUpstreams, type Upstreams } from './pool.ts';
import { proves } from '../../../test/support/proves.ts';

const size = 8 << 20;
let server: Server;
let upstreams: Upstreams;
const clock = testClock();

beforeEach(async () => {
  server = createServer((_, response) => void response.write(Buffer.alloc(size)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  upstreams = openUpstreams({ clock, connectSeconds: () => 3, proxy: '', noProxy: '' });
});
afterEach(async () => {
  await upstreams.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const baseRequest = { path: '/', headers: {}, body: '', signal: new AbortController().signal, headSeconds: 5, quietSeconds: 5 };
const post = () => upstreams.post({ ...baseRequest, url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`) });

test('an answer that we do not read is not called silent; one that says no more after that is', async () => {
  const response = await post();
  await expect.poll(() => response.paused).toBe(true);
  clock.advance(60_000);
  let read = 0;
  while (read < size) read += (await response.take())!.length;
  clock.advance(4000);
  const rest = response.take();
  clock.advance(2000);
  await expect(rest).rejects.toMatchObject({ problem: 'slow-body' });
});

test('a body larger than its limit closes the connection, also where reading had stopped before', async () => {
  const closed = new Promise<void>((resolve) => server.once('connection', (socket) => socket.once('close', () => resolve())));
  const response = await post();
  await expect.poll(() => response.paused).toBe(true);
  await expect(response.whole(1000)).rejects.toMatchObject({ problem: 'too-large' });
  await closed;
});

test('neither is one whose sink wants no more', async () => {
  const response = await post();
  let read = 0;
  const piped = response.pipe((chunk) => {
    read += chunk.length;
    return false;
  });
  await expect.poll(() => response.paused).toBe(true);
  while (read < size) {
    clock.advance(60_000);
    response.resume();
    await expect.poll(() => response.paused || read === size, { interval: 1 }).toBe(true);
  }
  response.resume();
  clock.advance(6000);
  await expect(piped).rejects.toMatchObject({ problem: 'slow-body' });
});

test('what a decoder still gives of an answer that was ended goes to nobody', async () => {
  const packed = gzipSync(Buffer.alloc(4 << 20, 'abcdefgh'));
  server.removeAllListeners('request');
  server.on('request', (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed));
  const response = await post();
  let given = 0;
  const piped = response.pipe((chunk) => {
    given += chunk.length;
    if (given === chunk.length) response.stop(new Error('over'));
    return true;
  });
  await expect(piped).rejects.toThrow('over');
  const before = given;
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(given).toBe(before);
});

test('an answer that comes faster than it is read has its reader wait for a turn of the event loop now and then', async () => {
  const response = await post();
  let turns = 0;
  const count = () => void (counting = setImmediate(() => (turns++, count())));
  let counting: NodeJS.Immediate;
  for (const read of ['taken', 'piped']) {
    await expect.poll(() => response.paused).toBe(true); // a megabyte has arrived
    turns = 0;
    let bytes = 0;
    count();
    if (read === 'taken') while (bytes < size / 2) bytes += (await response.take())!.length;
    else {
      const enough = Promise.withResolvers<void>();
      const piped = response.pipe((chunk) => ((bytes += chunk.length) >= size / 4 && enough.resolve(), true));
      await enough.promise;
      response.leave();
      await expect(piped).rejects.toThrow();
    }
    clearImmediate(counting!);
    expect(turns).toBeGreaterThan(bytes / 262_144);
  }
});

test('no more connections are opened to an origin than there may be: the next request waits for one of them', async () => {
  const most = 2;
  let open = 0;
  let opened = 0;
  server.removeAllListeners('request');
  const held: (() => void)[] = [];
  server.on('request', (_request, response) => void held.push(() => response.end()));
  server.on('connection', (socket) => {
    opened++;
    open++;
    socket.on('close', () => open--);
  });
  const own = openUpstreams({ clock, connectSeconds: () => 3, mostConnections: most, proxy: '', noProxy: '' });
  onTestFinished(() => own.close());
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const answers = Array.from({ length: 5 }, async () => (await own.post({ ...baseRequest, url })).whole(1));
  for (let answered = 0; answered < 5; answered++) {
    await expect.poll(() => held.length).toBe(Math.min(most, 5 - answered));
    held.shift()!();
  }
  await Promise.all(answers);
  expect({ opened, open }).toEqual({ opened: most, open: most });
});

test('a request that is sent again when the pool is closed is cut, and that is all', async () => {
  server.removeAllListeners('request');
  let requests = 0;
  server.on('request', (request, response) => {
    requests++;
    if (requests === 1) response.end();
    if (requests === 2) request.socket.destroy();
  });
  const own = openUpstreams({ clock, connectSeconds: () => 3, mostConnections: 1, proxy: '', noProxy: '' });
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await (await own.post({ ...baseRequest, url })).whole(1);
  const outcome = own.post({ ...baseRequest, url }).catch((error: unknown) => error);
  await expect.poll(() => requests).toBe(3);
  await own.close();
  expect(await outcome).toMatchObject({ problem: 'broken' });
});

describe('connecting', () => {
  const local = [{ address: '127.0.0.1', family: 4 }];
  /** Sends a request to a host by name; the lookup of every name but `fine.test` never ends. */
  async function named({ connectSeconds }: { connectSeconds: () => number }) {
    const stuck = { fine: false };
    const lookup: Lookup = (host, _options, then) => void (host === 'fine.test' && !stuck.fine && queueMicrotask(() => then(null, local)));
    const own = openUpstreams({ clock, connectSeconds, proxy: '', noProxy: '', lookup });
    onTestFinished(() => own.close());
    const ask = (host: string) => own.post({ ...baseRequest, url: new URL(`http://${host}:${(server.address() as AddressInfo).port}`) });
    return { ask, stuck };
  }

  test(proves('F-02', 'to names that are looked up slowly ends with the connect timeout, and others do not wait for them'), async () => {
    const { ask } = await named({ connectSeconds: () => 2 });
    const slow = Array.from({ length: 16 }, async (_, at) => {
      const startedAt = performance.now();
      await expect(ask(`slow-${at}.test`)).rejects.toMatchObject({ problem: 'refused' });
      return performance.now() - startedAt;
    });
    const startedAt = performance.now();
    (await ask('fine.test')).leave();
    expect(performance.now() - startedAt).toBeLessThan(1900);
    for (const milliseconds of await Promise.all(slow)) expect(milliseconds).toBeLessThan(15_000);
  });

  test('takes no longer than was said last, also where connections were opened before', async () => {
    let seconds = 60;
    const { ask, stuck } = await named({ connectSeconds: () => seconds });
    const before = await ask('fine.test');
    stuck.fine = true;
    clock.advance(4_000_000); // the cached address expires
    seconds = 0.1;
    await expect(ask('fine.test')).rejects.toMatchObject({ problem: 'refused' });
    expect((await before.take())!.length).toBeGreaterThan(0); // a response in progress continues
    before.leave();
  });
});

test('a body in very many chunks is put together; one in a few is left as it came', async () => {
  let begun: ServerResponse;
  server.removeAllListeners('request');
  server.on('request', (_, response) => (begun = response).flushHeaders());
  const lengths = async (chunks: number) => {
    const pieces = (await post()).pieces(size);
    begun.socket!.write(`${'1\r\nx\r\n'.repeat(chunks)}0\r\n\r\n`);
    return (await pieces).map((piece) => piece.length);
  };
  expect(await lengths(3)).toEqual([1, 1, 1]);
  expect(await lengths(3000)).toEqual([3000]);
});

describe('what a sink gets', () => {
  /** An answer that has begun, and what sends more of its bytes. */
  const begun = async () => {
    const beginning = Promise.withResolvers<ServerResponse>();
    server.removeAllListeners('request');
    server.on('request', (_request, response) => (response.flushHeaders(), beginning.resolve(response)));
    const response = await post();
    const { socket } = await beginning.promise;
    return { response, socket: socket! };
  };
  const chunks = (...texts: string[]) => texts.map((text) => `${text.length.toString(16)}\r\n${text}\r\n`).join('');
  const end = '0\r\n\r\n';
  const long = 'x'.repeat(65_536);

  test('is one piece where many chunks came together, then the end', async () => {
    const pieces: string[] = [];
    const { response, socket } = await begun();
    const piped = response.pipe((piece) => pieces.push(String(piece)) > 0);
    socket.write(chunks('one', 'two', 'three') + end);
    expect(await piped).toBe(true);
    expect(pieces).toEqual(['onetwothree']);
  });

  test('is all of it where the connection breaks behind it', async () => {
    let got = '';
    const { response, socket } = await begun();
    const piped = response.pipe((piece) => ((got += String(piece)), true));
    socket.write(chunks('said', 'before'), () => socket.destroy());
    await expect(piped).rejects.toMatchObject({ problem: 'broken' });
    expect(got).toBe('saidbefore');
  });

  test('may be refused by it when all has arrived already', async () => {
    const { response, socket } = await begun();
    const piped = response.pipe(() => {
      throw new Error('too much');
    });
    socket.write(chunks('last') + end);
    await expect(piped).rejects.toThrow('too much');
  });

  test('waits for a slow reader, and so does the end', async () => {
    let got = 0;
    const { response, socket } = await begun();
    let isOver = false;
    const piped = response.pipe((piece) => ((got += piece.length), false)).then((ended) => ((isOver = true), ended));
    socket.write(chunks(...Array<string>(8).fill(long)) + end);
    for (let before = 0; got < 8 * long.length;) {
      await expect.poll(() => got).toBeGreaterThan(before);
      if (got < 8 * long.length) expect(isOver).toBe(false);
      before = got;
      response.resume();
    }
    response.resume();
    expect(await piped).toBe(true);
  });

  test('is reported between two pieces, and the second is not lost', async () => {
    let got = 0;
    let reports = 0;
    const { response, socket } = await begun();
    let waiting = response.pipe((piece) => {
      got += piece.length;
      response.nudge();
      return true;
    });
    socket.write(chunks(long, long, 'rest') + end);
    for (; !(await waiting); waiting = response.piped()) reports++;
    expect(got).toBe(2 * long.length + 4);
    expect(reports).toBeGreaterThan(0);
  });

  test('is nothing more once the answer was left, though more has arrived', async () => {
    const pieces: string[] = [];
    const { response, socket } = await begun();
    const piped = response.pipe((piece) => {
      pieces.push(String(piece));
      response.leave();
      return true;
    });
    socket.write(chunks(long, 'rest') + end);
    await expect(piped).rejects.toMatchObject({ problem: 'broken' });
    expect(pieces).toEqual([long]);
  });

  test('keeps a fast provider waiting while it is slow: nothing piles up here', async () => {
    const most = 64 << 20;
    const { response, socket } = await begun();
    let waiting = most;
    const more = (): void => {
      waiting -= long.length;
      if (waiting > 0) socket.write(chunks(long), more);
    };
    let got = 0;
    const piped = response.pipe((piece) => ((got += piece.length), false));
    more();
    for (let pieces = 0, before = 0; pieces < 20; pieces++) {
      await expect.poll(() => got).toBeGreaterThan(before);
      await new Promise((resolve) => setTimeout(resolve, 10));
      before = got;
      response.resume();
    }
    expect(most - waiting - got).toBeLessThan(16 << 20); // what the sockets hold
    response.leave();
    await expect(piped).rejects.toThrow();
  });
});

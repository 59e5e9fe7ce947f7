import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { testClock } from '../../test/fakes/clock.ts';
import { openUpstreams, type Upstreams } from './pool.ts';

const size = 8 << 20;
let server: Server;
let upstreams: Upstreams;
const clock = testClock();

beforeEach(async () => {
  server = createServer((_, response) => void response.write(Buffer.alloc(size)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  upstreams = openUpstreams({ clock, connectSeconds: 3, proxy: '', noProxy: '' });
});
afterEach(async () => {
  await upstreams.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const post = () =>
  upstreams.post({
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    path: '/',
    headers: {},
    body: '',
    signal: new AbortController().signal,
    headSeconds: 5,
    quietSeconds: 5,
  });

test('an answer that we do not read is not called silent; one that says no more after that is', async () => {
  const answering = await post();
  await vi.waitFor(() => expect(answering.paused).toBe(true));
  clock.advance(60_000);
  let read = 0;
  while (read < size) read += (await answering.take())!.length;
  clock.advance(4000);
  const rest = answering.take();
  clock.advance(2000);
  await expect(rest).rejects.toMatchObject({ problem: 'slow-body' });
});

test('neither is one whose sink wants no more', async () => {
  const answering = await post();
  let read = 0;
  const piped = answering.pipe((chunk) => {
    read += chunk.length;
    return false;
  });
  await vi.waitFor(() => expect(answering.paused).toBe(true));
  while (read < size) {
    clock.advance(60_000);
    answering.resume();
    await new Promise(setImmediate);
  }
  answering.resume();
  clock.advance(6000);
  await expect(piped).rejects.toMatchObject({ problem: 'slow-body' });
});

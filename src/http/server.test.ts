import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { ByteBudget } from '#kit/memory/byte-budget';
import { systemClock } from '#kit/async/clock';
import { EventStream } from './event-stream.ts';
import type { Route } from './route.ts';
import { nowhere } from '../../test/support/surroundings.ts';
import { serve, type Listening } from './server.ts';

const common = { method: 'GET', scope: 'public', owner: 'caller', summary: '' } as const;

const listen = (route: Route, clock = systemClock): Promise<Listening> =>
  serve(
    {
      faces: [{ name: 'own', roots: [''], routes: [route], refusal: ({ message }) => ({ message }) }],
      identify: () => Promise.reject(new Error('nobody asks')),
      limits: () => ({ bodyBytes: 1, fileBytes: 1, bodyIdleSeconds: 1, headerSeconds: 1, maxConnections: 10 }),
      keyInQuery: () => false,
      surroundings: () => nowhere,
      clock,
      once: (_asked, _key, run) => run(),
      budget: new ByteBudget({ total: 1, each: 1 }),
      uploads: { hold: () => Promise.reject(new Error('nobody sends files')) },
      done: () => {},
    },
    { host: '127.0.0.1', port: 0 },
  );

test('a server that stops waits for the work of clients that left, not only for their connections', async () => {
  const began = Promise.withResolvers<void>();
  const leaves = Promise.withResolvers<void>();
  const unwinds = Promise.withResolvers<void>();
  const route: Route = {
    ...common,
    path: '/slow',
    answer({ exchange }) {
      began.resolve();
      exchange.signal.addEventListener('abort', () => leaves.resolve());
      return unwinds.promise.then(() => ({}));
    },
  };
  const listening = await listen(route);
  const client = connect(Number(new URL(listening.url).port), '127.0.0.1', () => client.write('GET /slow HTTP/1.1\r\nhost: a\r\n\r\n'));
  await began.promise;
  client.destroy();
  await leaves.promise;

  let isClosed = false;
  const closed = listening.close(10).then(() => (isClosed = true));
  await expect.poll(() => listening.connections()).toBe(0);
  await new Promise((resolve) => setImmediate(resolve));
  expect({ isClosed, inFlight: listening.inFlight() }).toEqual({ isClosed: false, inFlight: 1 });
  unwinds.resolve();
  await closed;
  expect(listening.inFlight()).toBe(0);
});

test('a client that reads nothing of a stream for as long as it may pause is cut off, however many keep-alives wait for it', async () => {
  // In this time keep-alives are due every 300 ms instead of every 15 s; the client may pause for a second.
  const clock = {
    ...systemClock,
    monotonic: () => 50 * systemClock.monotonic(),
    after: (milliseconds: number, then: () => void) => systemClock.after(milliseconds / 50, then),
  };
  let isCut = false;
  const route: Route = {
    ...common,
    path: '/stream',
    async answer({ exchange }) {
      const out = new EventStream(exchange, { clock, holdSeconds: 10, keepAlive: ': alive\n\n', contentType: 'text/event-stream', headers: () => [] });
      while (!exchange.signal.aborted) if (!out.write('x'.repeat(65_536))) await out.drained();
      out.close();
      isCut = true;
    },
  };
  const listening = await listen(route, clock);
  onTestFinished(() => listening.close(0));
  const client = connect(Number(new URL(listening.url).port), '127.0.0.1', () => client.write('GET /stream HTTP/1.1\r\nhost: a\r\n\r\n'));
  client.on('error', () => {});
  client.pause();
  await expect.poll(() => isCut).toBe(true);
  client.destroy();
});

test('an answer that is cut off in the turn in which it began has sent its head and what was written', async () => {
  const route: Route = {
    ...common,
    path: '/cut',
    answer({ exchange }) {
      exchange.open(200, ['content-type', 'audio/mpeg']);
      exchange.write('the beginning');
      throw new Error('It broke off.');
    },
  };
  const listening = await listen(route);
  onTestFinished(() => listening.close(0));
  const said = await new Promise<string>((resolve) => {
    let text = '';
    const client = connect(Number(new URL(listening.url).port), '127.0.0.1', () => client.write('GET /cut HTTP/1.1\r\nhost: a\r\n\r\n'));
    client.on('data', (bytes: Buffer) => (text += bytes.toString())).on('error', () => {});
    client.on('close', () => resolve(text));
  });
  expect(said).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*the beginning/);
});

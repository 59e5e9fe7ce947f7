import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { ByteBudget } from '#kit/memory/byte-budget';
import { systemClock } from '#kit/async/clock';
import type { Route } from './route.ts';
import { nowhere } from '../../test/support/surroundings.ts';
import { serve } from './server.ts';

test('a server that stops waits for the work of clients that left, not only for their connections', async () => {
  const began = Promise.withResolvers<void>();
  const leaves = Promise.withResolvers<void>();
  const unwinds = Promise.withResolvers<void>();
  const route: Route = {
    method: 'GET',
    path: '/slow',
    scope: 'public',
    owner: 'caller',
    summary: '',
    answer({ exchange }) {
      began.resolve();
      exchange.signal.addEventListener('abort', () => leaves.resolve());
      return unwinds.promise.then(() => ({}));
    },
  };
  const listening = await serve(
    {
      faces: [{ name: 'own', roots: [''], routes: [route], refusal: ({ message }) => ({ message }) }],
      identify: () => Promise.reject(new Error('nobody asks')),
      limits: () => ({ bodyBytes: 1, fileBytes: 1, bodyIdleSeconds: 1, headerSeconds: 1, maxConnections: 10 }),
      keyInQuery: () => false,
      surroundings: () => nowhere,
      clock: systemClock,
      once: (_asked, _key, run) => run(),
      budget: new ByteBudget({ total: 1, each: 1 }),
      uploads: { hold: () => Promise.reject(new Error('nobody sends files')) },
      done: () => {},
    },
    { host: '127.0.0.1', port: 0 },
  );
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

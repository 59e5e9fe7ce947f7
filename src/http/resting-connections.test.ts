import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { Caller } from '#core/context';
import { systemClock } from '#kit/async/clock';
import { ByteBudget } from '#kit/memory/byte-budget';
import { connectRaw } from '../../test/support/fakes/raw.ts';
import { nowhere } from '../../test/support/surroundings.ts';
import type { Route } from './route.ts';
import { serve } from './server.ts';

const common = { owner: 'caller', summary: '', answer: () => ({}) } as const;
const routes: readonly Route[] = [
  { ...common, method: 'POST', path: '/work', scope: 'query' },
  { ...common, method: 'GET', path: '/anybody', scope: 'public' },
];
const caller: Caller = { userId: 1, email: '', role: 'user', plan: '', teamIds: [], keyId: 1, keyName: '', scopes: undefined };
const work = 'POST /work HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key\r\ncontent-length: 0\r\n\r\n';
const anybody = 'GET /anybody HTTP/1.1\r\nhost: a\r\n\r\n';
const unansweredEach = 32;
const places = 10_000;

/** A server on which requests begin when the test says so. */
async function serverInTurns() {
  let ends: (() => void)[] = [];
  const deps = {
    faces: [{ name: 'own', roots: [''], routes, refusal: ({ message }: Error) => ({ message }) }],
    identify: () => caller,
    limits: () => ({ bodyBytes: 1, fileBytes: 1, bodyIdleSeconds: 60, headerSeconds: 60, maxConnections: 1000 }),
    keyInQuery: () => false,
    surroundings: () => nowhere,
    clock: systemClock,
    once: (_asked: unknown, _key: string, run: () => Promise<void>) => run(),
    budget: new ByteBudget({ total: 1000, each: 1000 }),
    uploads: { hold: () => Promise.reject(new Error('nobody sends files')) },
    done: () => {},
    atTurnEnd: (run: () => void) => void ends.push(run),
  };
  const listening = await serve(deps, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => listening.close(0));
  return {
    listening,
    turn: async () => {
      const now = ends;
      ends = [];
      for (const end of now) end();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test('a connection whose request was refused is not read until others have had their turn', async () => {
  const { listening, turn } = await serverInTurns();
  const port = Number(new URL(listening.url).port);
  for (let at = 0; at < places / unansweredEach + 1; at++)
    connect(port, '127.0.0.1')
      .on('error', () => {})
      .write(work.repeat(unansweredEach));
  await expect.poll(() => listening.waiting(), { timeout: 20_000 }).toBe(places);

  const [refused, other] = [await connectRaw(listening.url), await connectRaw(listening.url)];
  refused.send(work);
  const { status, header } = await refused.answer();
  expect([status, header('retry-after')]).toEqual([503, expect.stringMatching(/^[1-5]$/)]);
  refused.send(anybody);
  const before = refused.bytesRead;
  for (let at = 0; at < 5; at++) {
    other.send(anybody);
    expect((await other.answer()).status).toBe(200);
  }
  expect(refused.bytesRead).toBe(before);

  let turns = 0;
  while (refused.bytesRead === before && turns < 100) {
    turns++;
    await turn();
  }
  expect((await refused.answer()).status).toBe(200);
  expect(turns).toBeLessThan(100);
  expect(listening.waiting()).toBeGreaterThan(places / 2);
});

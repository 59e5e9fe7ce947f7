import { Type } from 'typebox';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Caller } from '#core/context';
import { Fault } from '#core/fault';
import { systemClock } from '#kit/async/clock';
import { ByteBudget } from '#kit/memory/byte-budget';
import { admin } from '../../../src/faces/plain/index.ts';
import { Bytes, nounRoute } from '../../../src/http/noun-route.ts';
import { serve, type Listening } from '../../../src/http/server.ts';
import { connectRaw } from '../../support/fakes/raw.ts';
import { nowhere } from '../../support/surroundings.ts';

/* A noun answers with a value, bytes or updates, and its face sends them. */

const common = { scope: 'datasets', owner: 'caller', summary: '' } as const;
const caller: Caller = { userId: 1, email: 'a@example.org', role: 'user', plan: 'free', teamIds: [], keyId: 1, keyName: 'k' };

let ended = '';
async function* updates(count: number, fails = false) {
  try {
    for (let at = 0; at < count; at++) yield { at };
    if (fails) throw new Fault('conflict', 'No more.');
  } finally {
    ended = `after ${count}`;
  }
}
async function* endless(signal: AbortSignal | undefined) {
  try {
    for (;;) {
      yield Buffer.alloc(65_536);
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
    }
  } finally {
    ended = 'endless';
  }
}

const Query = Type.Object(
  {
    limit: Type.Optional(Type.Integer()),
    all: Type.Optional(Type.Boolean()),
    tags: Type.Optional(Type.Array(Type.String())),
    name: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);

let listening: Listening;
beforeAll(async () => {
  const routes = [
    nounRoute('GET', '/value', { ...common, query: Query, answer: ({ query }) => query }),
    nounRoute('GET', '/open', { ...common, scope: 'any', answer: () => ({}) }),
    nounRoute('GET', '/query', { ...common, scope: 'query', answer: () => ({}) }),
    nounRoute('GET', '/bytes', { ...common, answer: () => new Bytes('audio/wav', Buffer.from('RIFF'), ['content-disposition', 'attachment']) }),
    nounRoute('GET', '/table', {
      ...common,
      answer: () =>
        new Bytes(
          'text/csv',
          (async function* () {
            yield 'a,b\n';
            yield '1,2\n';
          })(),
        ),
    }),
    nounRoute('GET', '/updates', { ...common, answer: () => updates(2) }),
    nounRoute('GET', '/no-updates', { ...common, answer: () => updates(0) }),
    nounRoute('GET', '/refused', { ...common, answer: () => updates(0, true) }),
    nounRoute('GET', '/broken', { ...common, answer: () => updates(1, true) }),
    nounRoute('GET', '/endless', { ...common, answer: ({ signal }) => new Bytes('application/octet-stream', endless(signal)) }),
  ];
  listening = await serve(
    {
      faces: [{ ...admin(routes), roots: [''] }],
      identify: (name) => ({ ...caller, ...(name === 'all' ? {} : { scopes: [name] }) }),
      limits: () => ({ bodyBytes: 1, fileBytes: 1, bodyIdleSeconds: 1, headerSeconds: 5, maxConnections: 100 }),
      keyInQuery: () => false,
      surroundings: () => nowhere,
      clock: systemClock,
      once: (_asked, _key, run) => run(),
      budget: new ByteBudget({ total: 64_000_000, each: 32_000_000 }),
      uploads: { hold: () => Promise.reject(new Error('nobody sends files')) },
      done: () => {},
    },
    { host: '127.0.0.1', port: 0 },
  );
});
afterAll(() => listening.close(0));

const get = (path: string, key = 'all', method = 'GET') => fetch(listening.url + path, { method, headers: { 'x-access-tokens': key } });

test.each([
  ['/value?limit=5&all=true&tags=a&tags=b&name=7', { limit: 5, all: true, tags: ['a', 'b'], name: '7' }],
  ['/value?tags=["a","b"]&all=0', { tags: ['a', 'b'], all: false }],
  ['/value?key=secret', {}],
])('a query becomes what its schema says: %s', async (path, value) => {
  expect(await (await get(path)).json()).toEqual(value);
});

test.each([
  ['/value?limit=5.5', 'limit must be an integer.'],
  ['/value?limit=1&limit=2', 'limit is given more than once.'],
  ['/value?all=maybe', 'all must be a boolean.'],
  ['/value?other=1', 'other is not known. Known: limit, all, tags, name.'],
  ['/value?other=1&other=2', 'other is not known. Known: limit, all, tags, name.'],
])('a query that fits nothing is refused, naming it: %s', async (path, message) => {
  const answer = await get(path);
  expect([answer.status, ((await answer.json()) as { message: string }).message]).toEqual([400, message]);
});

test('bytes go out as they are, whole or piece by piece', async () => {
  const sound = await get('/bytes');
  expect([sound.status, sound.headers.get('content-type'), sound.headers.get('content-length'), sound.headers.get('content-disposition')]).toEqual([
    200,
    'audio/wav',
    '4',
    'attachment',
  ]);
  expect(await sound.text()).toBe('RIFF');
  const table = await get('/table');
  expect([table.headers.get('content-type'), await table.text()]).toEqual(['text/csv', 'a,b\n1,2\n']);
});

test('updates are events, also where there are none', async () => {
  const answer = await get('/updates');
  expect([answer.headers.get('content-type'), await answer.text()]).toEqual(['text/event-stream; charset=utf-8', 'data: {"at":0}\n\ndata: {"at":1}\n\n']);
  expect([(await get('/no-updates')).status, await (await get('/no-updates')).text()]).toEqual([200, '']);
});

test('a failure before the first update is a refusal, a later one cuts the answer', async () => {
  const refused = await get('/refused');
  expect([refused.status, ((await refused.json()) as { message: string }).message]).toEqual([409, 'No more.']);
  await expect(get('/broken').then((answer) => answer.text())).rejects.toThrow();
});

test('HEAD of updates is their head, and they end', async () => {
  ended = '';
  const answer = await get('/endless', 'all', 'HEAD');
  expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([200, 'application/octet-stream', '']);
  await expect.poll(() => ended).toBe('endless');
});

test('what comes ends when the client leaves, and waits for one that does not read', async () => {
  ended = '';
  const raw = await connectRaw(listening.url);
  raw.send('GET /endless HTTP/1.1\r\nhost: a\r\nx-access-tokens: all\r\n\r\n');
  await raw.until('200 OK');
  raw.reset();
  await expect.poll(() => ended).toBe('endless');
});

test.each([
  ['all', [200, 200, 200]],
  ['query', [200, 200, 200]],
  ['datasets', [200, 200, 403]],
  ['plugins', [200, 403, 403]],
])('a key with the scope %s may enter any address, one for datasets and one for query: %j', async (scope, statuses) => {
  expect(await Promise.all(['/open', '/value', '/query'].map(async (path) => (await get(path, scope)).status))).toEqual(statuses);
});

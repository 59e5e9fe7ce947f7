import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { connectRaw } from '../support/fakes/raw.ts';
import { always, headersThenHang, ok, startUpstream, usage, type Upstream } from '../support/fakes/upstream/index.ts';
import { chat, startTestServer, type TestServer } from '../support/server.ts';
import { proves } from '../support/proves.ts';

const server = inject('postgres');
const name = `hostile_${process.pid}`;
let upstream: Upstream;
let dragoman: TestServer;
let books: pg.Client;

beforeAll(async () => {
  if (!server) return;
  const admin = new pg.Client({ connectionString: server });
  await admin.connect();
  await admin.query(`create database ${name}`);
  await admin.end();
  const databaseUrl = server.replace(/[^/]*$/, name);
  upstream = await startUpstream();
  dragoman = await startTestServer({ upstream: upstream.url, databaseUrl, yaml: 'routing: { cooldownSeconds: 0 }\n' });
  books = new pg.Client({ connectionString: databaseUrl });
  await books.connect();
});
afterAll(async () => {
  if (!server) return;
  await books.end();
  await dragoman.close();
  await upstream.close();
});
afterEach(() => upstream?.reset());

interface Row {
  readonly request_id: string;
  readonly app: string;
  readonly end: string;
  readonly served_model: string;
  readonly provenance: string;
  readonly input_tokens: string;
  readonly output_tokens: string;
  readonly plan_tokens: string;
}

/** The rows of this many requests, once they are there. */
async function rows(where: string, count: number, within = 20_000): Promise<readonly Row[]> {
  for (const until = performance.now() + within; ; await sleep(25)) {
    const { rows } = await books.query<Row>(`select * from usage where ${where} order by at`);
    if (rows.length >= count || performance.now() > until) return rows;
  }
}

const body = (app: string, stream: boolean) => ({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: 'one two three' }],
  stream,
  ...(app ? { app_name: app } : {}),
});

describe.skipIf(!server)('accounting', () => {
  test.each([
    ['an application named with NUL', 'poison\0a', ok()],
    ['an application named with half a character', `${'x'.repeat(99)}🐉`, ok()],
    ['a provider that names its model with NUL', 'poison-b', ok({ model: 'm\0' })],
    ['a provider that names its model at length', 'poison-c', ok({ model: 'm'.repeat(1_000_000) })],
  ])('stores the row of %s, and the rows after it', async (_what, app, behaviour) => {
    upstream.script(behaviour);
    for (const one of [app, `after ${app.slice(0, 8)}`]) await (await dragoman.ask(chat, body(one, false))).text();
    const [row] = await rows(`app = 'after ${app.slice(0, 8).replaceAll('\0', '\ufffd')}'`, 1);
    expect(row).toMatchObject({ end: 'completed' });
  });

  test.each<[string, Parameters<typeof usage>[0]]>([
    ['missing', 'missing'],
    ['null', 'null'],
    ['negative', { input: -5, output: -7 }],
    ['strings', { input: '5', output: '7' }],
    ['1e308', { input: 1e308, output: 1e308 }],
    ['fractions', { input: 1.5, output: 2.5 }],
    ['absurd', { input: 1e12, output: 1 }],
  ])(proves('F-12', 'stores an estimate, marked as such, if the usage is %s'), async (what, told) => {
    for (const stream of [false, true]) {
      upstream.script(usage(told));
      await (await dragoman.ask(chat, body(`usage ${what}`, stream))).text();
    }
    const found = await rows(`app = 'usage ${what}'`, 2);
    expect(found).toHaveLength(2);
    for (const row of found) {
      expect(row.provenance).toBe('estimated');
      for (const tokens of [row.input_tokens, row.output_tokens, row.plan_tokens]) expect(Number(tokens)).toBeGreaterThan(0);
      expect(Number(row.plan_tokens)).toBeLessThan(1000);
    }
  });

  test(proves('F-12', 'counts usage that is reported twice only once, and also usage in the last chunk'), async () => {
    for (const told of ['twice', 'with-finish'] as const) {
      upstream.script(usage(told));
      await (await dragoman.ask(chat, body('usage told', true))).text();
    }
    expect(await rows(`app = 'usage told'`, 2)).toMatchObject([
      { provenance: 'provider', input_tokens: '3', output_tokens: '5' },
      { provenance: 'provider', input_tokens: '3', output_tokens: '5' },
    ]);
  });

  test.each([
    ['the passthrough', ''],
    ['the decoded path', 'left early'],
  ])(proves('S-04', 'books a client that disconnects in mid-stream within a second, for the generated text, on %s'), async (_way, app) => {
    upstream.script(headersThenHang({ afterEvents: 4 }));
    const leaving = new AbortController();
    const answer = await dragoman.ask(chat, body(app, true), { signal: leaving.signal });
    const id = answer.headers.get('x-request-id')!;
    await answer.body!.getReader().read();
    await upstream.until((requests) => requests[0]!.piecesSent >= 4);
    await sleep(20);
    leaving.abort();
    const [row] = await rows(`request_id = '${id}'`, 1);
    expect(row).toMatchObject({ end: 'client-left', provenance: 'partial' });
    expect(Number(row!.output_tokens)).toBeGreaterThanOrEqual(2);
    expect(Number(row!.output_tokens)).toBeLessThan(20);
    expect(Number(row!.input_tokens)).toBeGreaterThan(0);
  });

  test(proves('S-06', 'books each request once whose client disconnects in the tick of completion'), async () => {
    upstream.script(always(ok()));
    const before = await books.query<{ count: string; requests: string }>(
      'select (select count(*) from usage) as count, (select sum(requests) from spent) as requests',
    );
    const count = 400;
    const leave = async (at: number) => {
      const raw = await connectRaw(dragoman.url);
      const text = JSON.stringify(body(at % 2 === 0 ? '' : 'tick', at % 4 < 2));
      raw.send(`POST ${chat} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${dragoman.key}\r\ncontent-length: ${text.length}\r\n\r\n${text}`);
      await raw.until(at % 3 === 0 ? 'HTTP/1.1 200' : at % 4 < 2 ? '[DONE]' : '"usage"');
      raw.reset();
    };
    for (let at = 0; at < count; at += 50) await Promise.all(Array.from({ length: 50 }, (_, more) => leave(at + more)));
    await expect
      .poll(
        async () =>
          (
            await books.query<{ count: string; requests: string }>(
              'select (select count(*) from usage) as count, (select sum(requests) from spent) as requests',
            )
          ).rows[0],
        { timeout: 30_000 },
      )
      .toEqual({ count: String(Number(before.rows[0]!.count) + count), requests: String(Number(before.rows[0]!.requests) + count) });
  });
});

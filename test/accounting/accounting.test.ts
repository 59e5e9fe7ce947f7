import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { onServer } from '../support/databases.ts';
import {
  always,
  cut,
  errorEvent,
  failing,
  headersThenHang,
  ok,
  pace,
  startUpstream,
  tooMany,
  usage,
  type Behaviour,
  type Upstream,
} from '../support/fakes/upstream/index.ts';
import { chat, startTestServer, type TestServer } from '../support/server.ts';
import { proves } from '../support/proves.ts';
import { quickest } from '../support/quickest.ts';

const address = inject('postgres');

interface Row {
  readonly request_id: string;
  readonly end: string;
  readonly status: number;
  readonly provenance: string;
  readonly input_tokens: string;
  readonly output_tokens: string;
  readonly plan_tokens: string;
}

interface Booked {
  readonly server: TestServer;
  readonly upstream: Upstream;
  /** The rows, once there are this many. */
  rows(count: number): Promise<Row[]>;
  /** Plan tokens that the counter of the month says. */
  spent(): Promise<number>;
}

/** A server on PostgreSQL with a scripted upstream, and its books. */
async function open(yaml = ''): Promise<Booked> {
  const { databaseUrl, folder } = await onServer(address!).place();
  const upstream = await startUpstream();
  const server = await startTestServer({
    upstream: upstream.url,
    databaseUrl: databaseUrl!,
    folder,
    yaml: `limits: { streamIdleSeconds: 1 }\nrouting: { cooldownSeconds: 0 }\n${yaml}`,
  });
  const client = new pg.Client(databaseUrl);
  await client.connect();
  onTestFinished(async () => {
    await client.end();
    await server.close();
    await upstream.close();
  });
  return {
    server,
    upstream,
    async rows(count) {
      for (let tries = 0; ; tries++) {
        const { rows } = await client.query<Row>(
          'select request_id, "end", status, provenance, input_tokens, output_tokens, plan_tokens from usage order by at',
        );
        if (rows.length >= count || tries > 1000) return rows;
        await new Promise((resolve) => setTimeout(resolve, 30));
      }
    },
    spent: async () => Number((await client.query<{ sum: string }>('select coalesce(sum(inference), 0) as sum from spent')).rows[0]!.sum),
  };
}

const request = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'one two three four five six seven eight' }] };

describe.skipIf(!address)('accounting', () => {
  test('each answered request has one row with the usage that the provider reported, and the counter is their sum', async () => {
    const { server, upstream, rows, spent } = await open();
    upstream.script(always(ok()));
    const answers = await Promise.all([false, true, false, true].map((stream) => server.ask(chat, { ...request, stream })));
    await Promise.all(answers.map((answer) => answer.text()));
    const booked = await rows(4);
    expect(booked.map(({ request_id }) => request_id).toSorted()).toEqual(answers.map((answer) => answer.headers.get('x-request-id')!).toSorted());
    expect(new Set(booked.map(({ end, status, provenance }) => `${end} ${status} ${provenance}`))).toEqual(new Set(['completed 200 provider']));
    expect(await spent()).toBe(booked.reduce((sum, { plan_tokens }) => sum + Number(plan_tokens), 0));
  });

  test.each<[string, () => Behaviour, string, string]>([
    ['cut by the provider', () => cut({ afterEvents: 5, how: 'reset' }), 'upstream-cut', 'partial'],
    ['ended by an error event', () => pace(5, errorEvent({ afterEvents: 5 })), 'upstream-cut', 'partial'],
    ['silent for too long', () => headersThenHang({ afterEvents: 5 }), 'timed-out', 'partial'],
    ['answered without usage', () => usage('missing'), 'completed', 'estimated'],
    ['answered with negative usage', () => usage({ input: -5, output: -5 }), 'completed', 'estimated'],
    ['answered with usage in words', () => usage({ input: 'many', output: 'few' }), 'completed', 'estimated'],
    ['answered with usage of 1e308', () => usage({ input: 1e308, output: 1e308 }), 'completed', 'estimated'],
    ['answered with usage of null', () => usage('null'), 'completed', 'estimated'],
  ])(proves('F-12', 'a stream %s is booked once, for at least the text that was sent'), async (_how, behaviour, end, provenance) => {
    const { server, upstream, rows } = await open();
    upstream.script(behaviour());
    await (await server.ask(chat, { ...request, stream: true })).text();
    const [row, ...more] = await rows(1);
    expect(more).toEqual([]);
    expect(row).toMatchObject({ end, provenance });
    expect(Number(row!.output_tokens)).toBeGreaterThanOrEqual(2);
    expect(Number(row!.input_tokens)).toBeGreaterThan(0);
    expect(Number(row!.output_tokens)).toBeLessThan(1000);
  });

  test.each<[string, () => Behaviour, number]>([
    ['429', () => tooMany({ retryAfter: 1 }), 429],
    ['500', () => failing(500), 502],
    ['503', () => failing(503), 503],
  ])('a request that the provider rejects with %s costs nothing', async (_what, behaviour, status) => {
    const { server, upstream, rows, spent } = await open();
    upstream.script(behaviour());
    await (await server.ask(chat, request)).text();
    const [row] = await rows(1);
    expect(row).toMatchObject({ end: 'upstream-failed', status, plan_tokens: '0' });
    expect(await spent()).toBe(0);
  });

  test(proves('S-04', 'a client that disconnects in the middle of a stream is booked within a second for the text that was sent'), async () => {
    const { server, upstream, rows } = await open();
    let asked = 0;
    const took = await quickest(1000, async () => {
      upstream.script(headersThenHang({ afterEvents: 6 }));
      const leaving = new AbortController();
      const answer = await server.ask(chat, { ...request, stream: true }, { signal: leaving.signal });
      await answer.body!.getReader().read();
      const leftAt = performance.now();
      leaving.abort();
      const row = (await rows(++asked)).at(-1)!;
      expect(row).toMatchObject({ end: 'client-left', status: 499, provenance: 'partial' });
      expect(Number(row.output_tokens)).toBeGreaterThanOrEqual(3);
      return performance.now() - leftAt;
    });
    expect(took).toBeLessThan(1000);
  });

  test(proves('S-06', 'clients that disconnect in the tick of completion are booked once each'), async () => {
    const { server, upstream, rows } = await open();
    upstream.script(always(ok()));
    const ids = new Set<string>();
    for (let round = 0; round < 100; round++) {
      const leaving = new AbortController();
      const answer = await server.ask(chat, { ...request, stream: true }, { signal: leaving.signal }).catch(() => undefined);
      if (!answer) continue;
      ids.add(answer.headers.get('x-request-id')!);
      const reader = answer.body!.getReader();
      for (let reads = 0; reads <= round % 3; reads++) await reader.read().catch(() => undefined);
      leaving.abort();
    }
    const booked = await rows(ids.size);
    expect(booked.map(({ request_id }) => request_id).toSorted()).toEqual([...ids].toSorted());
  });

  test('a label that the database cannot store does not hold up any other row', async () => {
    const { server, rows } = await open();
    const said = ['a\u0000b', `${'a'.repeat(99)}😀`, '\ud800', 'fine'];
    for (const app_name of said) expect((await server.ask(chat, { ...request, model: 'built-in', app_name })).status).toBe(200);
    expect(await rows(4)).toHaveLength(4);
  });
});

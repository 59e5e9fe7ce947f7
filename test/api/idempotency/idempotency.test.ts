import { join } from 'node:path';
import { sql } from 'kysely';
import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { randomKey } from '#kit/crypto/ids';
import { sealer } from '#kit/crypto/sealing';
import { openApiKeys } from '../../../src/resources/api-keys/store.ts';
import { openUsers } from '../../../src/resources/users/store.ts';
import { masterKey } from '../../../src/store/master-key.ts';
import { openStore, type Store } from '../../../src/store/open.ts';
import { secretRow } from '../../../src/store/secrets.ts';
import { onBothDatabases, type Place, type TestDatabase } from '../../support/databases.ts';
import { administer } from '../../support/postgres.ts';
import { always, badRequest, cut, errorEvent, hang, headersThenHang, ok, pace, slowThinker } from '../../support/fakes/upstream/index.ts';
import { chat, type TestServerSettings } from '../../support/server.ts';
import { server, isReplayed, keyed, request, scripted, streamed } from './idempotent.ts';
import { startProcess } from '../../support/server-process.ts';
import { proves } from '../../support/proves.ts';

async function open(database: TestDatabase, settings?: TestServerSettings) {
  const place = await database.place();
  const upstream = await scripted();
  return { place, upstream, server: await server(place, upstream, settings) };
}

/** What a closed server has left in its database. */
async function leftIn<Found>({ folder, databaseUrl }: Place, look: (store: Store) => Promise<Found>): Promise<Found> {
  const store = await openStore({ folder: join(folder, 'data'), ...(databaseUrl ? { databaseUrl } : {}), migrations: [], clock: systemClock });
  try {
    return await look(store);
  } finally {
    await store.close();
  }
}

const booked = (place: Place) =>
  leftIn(place, async ({ db }) => (await sql<{ request_id: string }>`select request_id from usage`.execute(db)).rows.map((row) => row.request_id));

/** What must be the same in an answer that is given again. */
const lasting = async (answer: Response) => ({
  status: answer.status,
  type: answer.headers.get('content-type'),
  length: answer.headers.get('content-length'),
  provider: answer.headers.get('x-dragoman-provider'),
  attempts: answer.headers.get('x-dragoman-attempts'),
  bytes: Buffer.from(await answer.arrayBuffer()).toString('latin1'),
});

onBothDatabases('an idempotency key', (database) => {
  test(proves('A-06', 'sent again gets the same bytes from one upstream call, whole and streamed, and is booked once'), async () => {
    const { place, upstream, server } = await open(database);
    for (const [at, body] of [request, streamed].entries()) {
      const first = await server.ask(chat, body, keyed(`sent-again-${at}`));
      const second = await server.ask(chat, body, keyed(`sent-again-${at}`));
      expect([isReplayed(first), isReplayed(second)]).toEqual([false, true]);
      expect(second.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
      expect(second.headers.get('x-ratelimit-remaining-tokens')).toBe(String(Number.MAX_SAFE_INTEGER));
      const before = await lasting(first);
      expect(await lasting(second)).toEqual(before);
      expect(before.bytes).toContain('seven');
    }
    expect(upstream.requests).toHaveLength(2);
    expect(JSON.stringify(upstream.requests.map(({ headers }) => headers))).not.toMatch(/sent-again|idempotency/);
    await server.close();
    expect(await booked(place)).toHaveLength(2);
  });

  test(proves('A-06', 'sent fifty times at once is answered by one upstream call'), async () => {
    const { place, upstream, server } = await open(database);
    upstream.script(slowThinker(0.2));
    const answers = await Promise.all(Array.from({ length: 50 }, () => server.ask(chat, streamed, keyed('same'))));
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    expect(new Set(texts).size).toBe(1);
    expect(answers.filter(isReplayed)).toHaveLength(49);
    expect(upstream.requests).toHaveLength(1);
    await server.close();
    expect(await booked(place)).toHaveLength(1);
  });

  test(proves('A-07', 'with another body or address is refused with 422, while the first runs and after it, without an upstream call'), async () => {
    const { upstream, server } = await open(database);
    upstream.script(slowThinker(0.2));
    const first = server.ask(chat, request, keyed('one'));
    await upstream.arrived(0);
    const other = { ...request, temperature: 1 };
    const during = await server.ask(chat, other, keyed('one'));
    expect((await first).status).toBe(200);
    const answers = [during, await server.ask(chat, other, keyed('one')), await server.ask(`${chat}?a=b`, request, keyed('one'))];
    for (const answer of answers) {
      expect(answer.status).toBe(422);
      expect(await answer.json()).toMatchObject({ error: { param: 'Idempotency-Key', message: expect.stringContaining('Another request') as string } });
    }
    expect(upstream.requests).toHaveLength(1);
  });

  test(proves('A-08', 'of another user is independent'), async () => {
    const { place, upstream, server: first } = await open(database);
    await first.close();
    const otherKey = await leftIn(place, async (store) => {
      const seal = sealer(await masterKey({ file: join(place.folder, 'data', 'master.key') }));
      const { id } = await openUsers(store).add({ email: 'other@localhost', role: 'user', plan: 'unlimited' });
      return (await openApiKeys(store, await secretRow(store, seal, 'api-key pepper', randomKey)).add({ userId: id, name: 'other' }))!.key;
    });
    const { ask } = await server(place, upstream);
    const asOther = { headers: { 'idempotency-key': 'same', authorization: `Bearer ${otherKey}` } };
    const mine = await ask(chat, request, keyed('same'));
    const theirs = await ask(chat, { ...request, temperature: 1 }, asOther);
    expect([mine.status, theirs.status, isReplayed(theirs)]).toEqual([200, 200, false]);
    expect(upstream.requests).toHaveLength(2);
    expect(isReplayed(await ask(chat, { ...request, temperature: 1 }, asOther))).toBe(true);
  });

  test('is free again when the try failed: refused, ended by an error event, cut in the middle', async () => {
    const { upstream, server } = await open(database);
    const failures = [badRequest(), errorEvent({ afterEvents: 3 }), cut({ afterEvents: 3, how: 'reset' })];
    for (const [at, failure] of failures.entries()) {
      upstream.reset();
      upstream.script(failure);
      const failed = await server.ask(chat, streamed, keyed(`failing-${at}`));
      expect(await failed.text()).not.toContain('[DONE]');
      const again = await server.ask(chat, streamed, keyed(`failing-${at}`));
      expect([again.status, isReplayed(again)]).toEqual([200, false]);
      expect(await again.text()).toContain('[DONE]');
      expect(upstream.requests).toHaveLength(2);
    }
  });

  test('is free for another request as soon as the client has the end of one that failed', async () => {
    const { upstream, server } = await open(database);
    for (const [at, failure] of [badRequest(), errorEvent({ afterEvents: 3 }), cut({ afterEvents: 3, how: 'reset' })].entries())
      for (const body of [request, streamed]) {
        upstream.reset();
        upstream.script(failure);
        const key = `failing-${at}-${'stream' in body}`;
        await (await server.ask(chat, body, keyed(key))).text();
        const other = await server.ask(chat, { ...body, temperature: 1 }, keyed(key));
        expect([key, other.status, isReplayed(other)]).toEqual([key, 200, false]);
        await other.text();
      }
  });

  test('of an API key that may use fewer models, or sent with other targets, is another request: what was answered is not given to it', async () => {
    const { upstream, server } = await open(database);
    expect((await server.ask(chat, request, keyed('narrow'))).status).toBe(200);
    const headers = { 'content-type': 'application/json', 'x-access-tokens': server.key };
    const made = await fetch(`${server.url}/server/mine/keys`, { method: 'POST', headers, body: JSON.stringify({ name: 'narrow', models: ['built-in'] }) });
    const { key } = (await made.json()) as { key: string };
    const narrow = { headers: { 'idempotency-key': 'narrow', authorization: `Bearer ${key}` } };
    expect((await server.ask(chat, request, narrow)).status).toBe(422);
    const elsewhere = { headers: { 'idempotency-key': 'narrow', 'x-dragoman-targets': 'built-in' } };
    expect((await server.ask(chat, request, elsewhere)).status).toBe(422);
    expect(isReplayed(await server.ask(chat, request, keyed('narrow')))).toBe(true);
    expect(upstream.requests).toHaveLength(1);
  });

  test('is free again when the client left in the middle, and the call is cancelled', async () => {
    const { upstream, server } = await open(database);
    upstream.script(headersThenHang({ afterEvents: 3 }));
    const leaving = new AbortController();
    const first = await server.ask(chat, streamed, keyed('left', { signal: leaving.signal }));
    await first.body!.getReader().read();
    leaving.abort();
    await upstream.closed(0);
    const again = await server.ask(chat, streamed, keyed('left'));
    expect([again.status, isReplayed(again)]).toEqual([200, false]);
    expect(await again.text()).toContain('[DONE]');
  });

  test('whose first request fails is tried by exactly one of those that wait, and one that left is not among them', async () => {
    const { upstream, server } = await open(database);
    const leaving = new AbortController();
    upstream.script(hang());
    const first = server.ask(chat, request, keyed('chain', { signal: leaving.signal })).catch(() => undefined);
    await upstream.arrived(0);
    const left = server.ask(chat, request, keyed('chain', { signal: leaving.signal })).catch(() => undefined);
    const waiting = Array.from({ length: 10 }, () => server.ask(chat, request, keyed('chain')));
    setTimeout(() => leaving.abort(), 100);
    expect([await first, await left]).toEqual([undefined, undefined]);
    const answers = await Promise.all(waiting);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(answers.filter(isReplayed)).toHaveLength(9);
    expect(upstream.requests).toHaveLength(2);
  });

  test('gives its answer again when the quota is spent, and spends none of it', async () => {
    const { server } = await open(database, { yaml: 'plans: { unlimited: { monthlyTokens: 200 } }\n' });
    const small = { ...request, max_tokens: 5 };
    const kept = await (await server.ask(chat, small, keyed('early'))).text();
    let spent: Response;
    do {
      spent = await server.ask(chat, small);
      await spent.arrayBuffer();
    } while (spent.status === 200);
    expect((await server.ask(chat, small, keyed('late'))).status).toBe(429);
    for (let times = 0; times < 3; times++) {
      const again = await server.ask(chat, small, keyed('early'));
      expect([again.status, isReplayed(again), await again.text()]).toEqual([200, true, kept]);
    }
  });

  test(proves('A-06', 'holds through a restart, for 24 hours, and what is kept cannot be read in the database'), async () => {
    const { place, upstream, server: first } = await open(database);
    const answer = await lasting(await first.ask(chat, request, keyed('restart-canary')));
    await first.close();
    const rows = await leftIn(place, async ({ db }) => (await sql<{ answer: Buffer }>`select * from idempotency`.execute(db)).rows);
    expect(rows).toHaveLength(1);
    expect(rows[0]!.answer.length).toBeGreaterThan(answer.bytes.length);
    const atRest = Object.values(rows[0]!).map((value) => (Buffer.isBuffer(value) ? value.toString('latin1') : String(value)));
    expect(atRest.join()).not.toMatch(/seven|canary|content/);

    const older = (interval: string) => leftIn(place, ({ db }) => sql`update idempotency set expires_at = expires_at - ${interval}::interval`.execute(db));
    await older('23:59');
    const astray = { ...systemClock, now: () => Date.now() + 400 * 24 * 3_600_000 };
    const second = await server(place, upstream, { clock: astray });
    const again = await second.ask(chat, request, keyed('restart-canary'));
    expect(isReplayed(again)).toBe(true);
    expect(await lasting(again)).toEqual(answer);
    expect(upstream.requests).toHaveLength(1);
    await second.close();
    await older('2 minutes');
    const third = await server(place, upstream);
    expect(isReplayed(await third.ask(chat, request, keyed('restart-canary')))).toBe(false);
    expect(upstream.requests).toHaveLength(2);
  });

  test(
    proves('A-06', 'holds through kill -9 right after the answer; one killed in the middle is free again'),
    async () => {
      const place = await database.place();
      const upstream = await scripted();
      const ask = (url: string, key: string, of: string) =>
        fetch(url + chat, {
          method: 'POST',
          body: JSON.stringify(streamed),
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'idempotency-key': of },
        });
      const first = await startProcess(place, upstream.url);
      const answered = await (await ask(first.url, first.key, 'answered')).text();
      upstream.script(headersThenHang({ afterEvents: 3 }));
      const cutOff = await ask(first.url, first.key, 'cut');
      await cutOff.body!.getReader().read();
      await first.kill();
      // that its lease ends soon is not what frees it
      if (place.databaseUrl) await administer(place.databaseUrl, `update idempotency set busy_until = now() + interval '1 hour' where claim is not null`);

      const second = await startProcess(place, upstream.url);
      const again = await ask(second.url, second.key, 'answered');
      expect([isReplayed(again), await again.text()]).toEqual([true, answered]);
      expect(upstream.requests).toHaveLength(2);
      const free = await ask(second.url, second.key, 'cut');
      expect([free.status, isReplayed(free)]).toEqual([200, false]);
      expect(await free.text()).toContain('[DONE]');
      expect(upstream.requests).toHaveLength(3);
      await second.kill();
    },
    120_000,
  );

  test('that is empty, too long, or has a space or a letter beyond ASCII is refused with 400 that names the header', async () => {
    const { upstream, server } = await open(database);
    for (const key of ['', 'k'.repeat(256), 'a b', 'a\tb', 'schlüssel', 'one, two']) {
      const answer = await server.ask(chat, request, keyed(key));
      expect([key, answer.status]).toEqual([key, 400]);
      expect(await answer.json()).toMatchObject({ error: { param: 'Idempotency-Key' } });
    }
    expect(upstream.requests).toHaveLength(0);
  });

  test('may be any visible characters, and stands in no log line', async () => {
    const lines: string[] = [];
    const note = (fields: object, message: string) => void lines.push(JSON.stringify([fields, message]));
    const log = { debug: note, info: note, warn: note, error: note, fatal: note, level() {}, flush: () => Promise.resolve() };
    const { server } = await open(database, { log });
    const keys = ['__proto__', "'; drop table idempotency; --", '%s%n\\0', 'k'.repeat(255)].map((key) => key.replaceAll(' ', '_'));
    for (const key of keys) {
      expect(isReplayed(await server.ask(chat, request, keyed(key)))).toBe(false);
      expect(isReplayed(await server.ask(chat, request, keyed(key)))).toBe(true);
    }
    expect(lines.length).toBeGreaterThan(7);
    for (const key of keys) expect(lines.join('\n')).not.toContain(JSON.stringify(key).slice(1, -1));
    expect(lines.filter((line) => line.includes('replayed'))).toHaveLength(4);
  });

  test('of an answer too large to be kept is free again, and the answer says so', async () => {
    const { upstream, server } = await open(database);
    upstream.script(always(ok({ text: 'x'.repeat(9 * 2 ** 20) })));
    for (let times = 0; times < 2; times++) {
      const answer = await server.ask(chat, request, keyed('large'));
      expect((await answer.text()).length).toBeGreaterThan(9 * 2 ** 20);
      expect(answer.headers.get('x-dragoman-warnings')).toContain('too large to be kept');
    }
    expect(upstream.requests).toHaveLength(2);
  });

  test('of the openai SDK goes as a header, and a stream is read again as it was', async () => {
    const { upstream, server } = await open(database);
    upstream.script(pace(2));
    const client = new OpenAI({ apiKey: server.key, baseURL: `${server.url}/server/chatcompat/v1`, maxRetries: 0 });
    const read = async () => {
      const chunks: unknown[] = [];
      const options = { headers: { 'Idempotency-Key': 'from-the-sdk' } };
      for await (const chunk of await client.chat.completions.create(streamed as OpenAI.ChatCompletionCreateParamsStreaming, options)) chunks.push(chunk);
      return chunks;
    };
    const first = await read();
    expect(first.length).toBeGreaterThan(8);
    expect(await read()).toEqual(first);
    expect(upstream.requests).toHaveLength(1);
  });
});

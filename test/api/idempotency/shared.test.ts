import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { onServer, type Place } from '../../support/databases.ts';
import { hang, slowThinker } from '../../support/fakes/upstream/index.ts';
import { askWith, fixed, fixedCost, newMember } from '../../support/members.ts';
import { chat } from '../../support/server.ts';
import { lineTo } from '../../support/tcp-proxy.ts';
import { server, isReplayed, keyed, request, scripted, streamed } from './idempotent.ts';
import { proves } from '../../support/proves.ts';

const address = inject('postgres');

describe.skipIf(!address)('two servers on one database', () => {
  async function two(clock = systemClock) {
    const { folder, databaseUrl } = await onServer(address!).place();
    const upstream = await scripted();
    const places = ['a', 'b'].map((name) => ({ folder: join(folder, name), databaseUrl: databaseUrl! }));
    const [a, b] = places as [Place, Place];
    for (const place of places) await mkdir(join(place.folder, 'data'), { recursive: true });
    const line = await lineTo(databaseUrl!);
    const first = await server({ ...a, databaseUrl: line.url }, upstream, { clock });
    onTestFinished(() => line.set('on'));
    await copyFile(join(a.folder, 'data', 'master.key'), join(b.folder, 'data', 'master.key'));
    const database = new pg.Client(databaseUrl);
    await database.connect();
    onTestFinished(() => database.end());
    return { upstream, database, line, first, second: await server(b, upstream) };
  }

  test(proves(['A-06', 'A-07'], 'give the same answer: twenty requests at each at once make one upstream call, and another body is 422 at both'), async () => {
    const { upstream, first, second } = await two();
    upstream.script(slowThinker(0.3));
    const answers = await Promise.all(Array.from({ length: 40 }, (_, at) => (at % 2 ? first : second).ask(chat, streamed, keyed('shared'))));
    const texts = await Promise.all(answers.map((answer) => answer.text()));
    expect(new Set(texts).size).toBe(1);
    expect(answers.filter(isReplayed)).toHaveLength(39);
    expect(upstream.requests).toHaveLength(1);
    const other = await Promise.all([first, second].map((one) => one.ask(chat, request, keyed('shared'))));
    expect(other.map(({ status }) => status)).toEqual([422, 422]);
  });

  test(
    'do not both run a request whose key could not be renewed for some seconds: the other waits, and has the answer again',
    { timeout: 120_000 },
    async () => {
      const { upstream, first, second, line } = await two();
      upstream.script(slowThinker(16));
      const running = first.ask(chat, request, keyed('away'));
      await upstream.arrived(0);
      await line.set('refuse');
      await sleep(11_500);
      await line.set('on');
      const again = await second.ask(chat, request, keyed('away'));
      const answer = await running;
      expect([answer.status, again.status, isReplayed(again), await again.text()]).toEqual([200, 200, true, await answer.text()]);
      expect(upstream.requests).toHaveLength(1);
    },
  );

  test('give way: the run of one that cannot renew its key for its lease ends before the other begins', { timeout: 120_000 }, async () => {
    let later = 0;
    const { upstream, database, first, second, line } = await two({ ...systemClock, monotonic: () => systemClock.monotonic() + later });
    upstream.script(hang());
    const cutOff = first.ask(chat, request, keyed('cut-off'));
    await upstream.arrived(0);
    await line.set('refuse');
    later = 30_000; // of this machine; of the database below
    const answer = await cutOff;
    expect([answer.status, answer.headers.get('retry-after'), await answer.text()]).toEqual([503, '1', expect.stringContaining('Idempotency-Key')]);
    expect((await upstream.closed(0)).closedEarlyAt).toBeDefined();
    await database.query(`update idempotency set busy_until = busy_until - interval '40 seconds'`);
    const next = await second.ask(chat, request, keyed('cut-off'));
    expect([next.status, isReplayed(next)]).toEqual([200, false]);
    await line.set('on');
    await expect.poll(async () => isReplayed(await first.ask(chat, request, keyed('cut-off'))), { timeout: 30_000 }).toBe(true);
    expect(upstream.requests).toHaveLength(2);
  });

  test('an answer that ends while the database is away is kept when that is back', { timeout: 120_000 }, async () => {
    const { upstream, first, second, line } = await two();
    upstream.script(slowThinker(1));
    const running = first.ask(chat, request, keyed('ends-away'));
    await upstream.arrived(0);
    await line.set('refuse');
    const text = await (await running).text();
    await line.set('on');
    const again = await second.ask(chat, request, keyed('ends-away'));
    expect([isReplayed(again), await again.text()]).toEqual([true, text]);
    expect(upstream.requests).toHaveLength(1);
  });

  test('say with an answer that is given again what is left of the limits, where they know it', async () => {
    const { first, second } = await two();
    const { keys, ask } = await newMember(first, { monthlyTokens: 1_000_000 });
    const leftIn = (answer: Response) => [isReplayed(answer), answer.headers.get('x-ratelimit-remaining-tokens')];
    await ask(fixed, keyed('left'));
    const left = 1_000_000 - (await fixedCost(first));
    expect(leftIn(await ask(fixed, keyed('left')))).toEqual([true, String(left)]);
    expect(leftIn(await askWith(second, keys[0]!, fixed, keyed('left')))).toEqual([true, null]);
  });

  test('hand over: when the try of one fails, one request at the other is next', async () => {
    const { upstream, first, second } = await two();
    upstream.script(hang());
    const leaving = new AbortController();
    const failing = first.ask(chat, request, keyed('over', { signal: leaving.signal })).catch(() => undefined);
    await upstream.arrived(0);
    const waiting = Array.from({ length: 5 }, () => second.ask(chat, request, keyed('over')));
    setTimeout(() => leaving.abort(), 300);
    await failing;
    const answers = await Promise.all(waiting);
    expect(answers.filter(isReplayed)).toHaveLength(4);
    expect(upstream.requests).toHaveLength(2);
  });

  test('an answer ends when it is kept, and not before', async () => {
    const { first, second, database } = await two();
    await database.query(`create function dawdle() returns trigger language plpgsql as $$ begin perform pg_sleep(0.5); return new; end $$`);
    await database.query('create trigger dawdle before update of answer on idempotency for each row execute function dawdle()');
    for (const [at, body] of [request, streamed].entries()) {
      await (await first.ask(chat, body, keyed(`ends-${at}`))).arrayBuffer();
      const { rows } = await database.query<{ kept: boolean }>('select answer is not null as kept from idempotency');
      expect(rows).toEqual(Array.from({ length: at + 1 }, () => ({ kept: true })));
      expect(isReplayed(await second.ask(chat, body, keyed(`ends-${at}`)))).toBe(true);
    }
  });

  test('a database that is stuck holds an answer back for some two seconds; it is kept when that is over', async () => {
    const { upstream, first, second, database } = await two();
    upstream.script(slowThinker(0.3));
    const asked = first.ask(chat, streamed, keyed('stuck'));
    await upstream.arrived(0);
    await database.query('begin');
    await database.query('lock table idempotency in share mode');
    const answer = await asked;
    const text = await answer.text();
    expect(text).toContain('[DONE]');
    await database.query('commit');
    const again = await second.ask(chat, streamed, keyed('stuck'));
    expect([isReplayed(again), await again.text()]).toEqual([true, text]);
    expect(upstream.requests).toHaveLength(1);
  });

  test('an answer that the database does not take is given all the same, and its key is free', async () => {
    const { upstream, first, database } = await two();
    await database.query(`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$`);
    await database.query('create trigger refuse before update of answer on idempotency for each row execute function refuse()');
    for (let times = 0; times < 2; times++) {
      const answer = await first.ask(chat, streamed, keyed('unkept'));
      expect([answer.status, isReplayed(answer)]).toEqual([200, false]);
      expect(await answer.text()).toContain('[DONE]');
    }
    expect(upstream.requests).toHaveLength(2);
  });
});

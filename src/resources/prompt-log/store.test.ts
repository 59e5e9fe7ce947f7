/* The texts of the log as they stand in the database, in rows of this version and of earlier ones. */
import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import type { ToldRequest } from '#core/prompt-log';
import { requestId } from '#kit/crypto/ids';
import { sealer } from '#kit/crypto/sealing';
import { booksOf } from '../../../test/support/books-of.ts';
import { testClock } from '../../../test/support/fakes/clock.ts';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { usageRow } from '../../../test/support/usage-rows.ts';
import { decompressed } from './lot.ts';
import { openPromptStore } from './store.ts';

const told = (userId: number, text: string): ToldRequest => ({
  requestId: requestId(),
  userId,
  address: '127.0.0.1',
  prompt: text,
  promptLength: text.length,
  answer: { text: `You said: ${text}`, length: text.length + 10 },
});

onBothDatabases('the rows of the prompt log', ({ shared }) => {
  const store = shared({ migrations: ['./', '../users/', '../usage/'].map((folder) => new URL(folder, import.meta.url)) });
  const seal = sealer(randomBytes(32));

  beforeAll(async () => {
    await sql`
      insert into users (id, email, role, plan) overriding system value
      select id, id || '@example.org', 'user', 'unlimited' from generate_series(71, 82) as id`.execute(store().db);
  });

  function opened(bodies: () => 'own' | 'all' | 'none' = () => 'own') {
    const clock = testClock();
    const log = openPromptStore({
      store: store(),
      seal,
      clock,
      bodies,
      days: () => 30,
      log: (problem, cause) => expect.unreachable(`${problem} ${String(cause)}`),
    });
    const of = ({ requestId: id, userId }: ToldRequest) => ({ requestId: id, userId, at: new Date(clock.now() - 60_000).toISOString() });
    return { log, of, clock };
  }

  test('hold what is told of each user at once, and each request is found with its own texts', async () => {
    const { log, of } = opened();
    const all = Array.from({ length: 300 }, (_, at) => told(71 + (at % 3), `text ${at}`));
    for (const one of all) log.record(one);
    for (const one of [all[0]!, all[150]!, all[299]!]) expect(await log.find(of(one), false)).toMatchObject({ prompt: one.prompt, answer: one.answer.text });
    expect(await log.find(of(all[0]!), true)).toBeUndefined();
    expect(await log.find({ ...of(all[0]!), userId: 72 }, false)).toBeUndefined();
    const { rows } = await sql<{
      many: number;
      sealed: Buffer;
    }>`select cardinality(requests) as many, sealed from prompt_log where user_id between 71 and 73`.execute(store().db);
    expect(rows.length).toBeLessThan(12);
    expect(rows.reduce((sum, { many }) => sum + many, 0)).toBe(300);
    for (const { sealed } of rows) expect(sealed.includes('text')).toBe(false);
    await log.close();
  });

  test('show of a request that was told twice, such as one that was interrupted, what was told first', async () => {
    const { log, of, clock } = opened();
    const [twice, other] = [told(80, 'first'), told(80, 'other')];
    log.record(twice);
    expect(await log.find(of(twice), false)).toMatchObject({ prompt: 'first' });
    clock.advance(1000);
    for (const one of [{ ...twice, prompt: 'second' }, other]) log.record(one);
    for (const one of [twice, other]) expect(await log.find(of(one), false)).toMatchObject({ prompt: one.prompt });
    await booksOf(store()).record([twice, other].map(({ requestId: id }) => usageRow({ requestId: id, userId: 80, at: clock.now() })));
    const listed = await log.list(80, { limit: 10, forAdministrators: false });
    expect(listed.map(({ prompt }) => prompt).toSorted()).toEqual(['first', 'other']);
    await log.close();
  });

  test('that are of one user do not open as those of another', async () => {
    const { log, of } = opened();
    const one = told(74, 'mine');
    log.record(one);
    expect(await log.find(of(one), false)).toMatchObject({ prompt: 'mine' });
    await sql`update prompt_log set user_id = 75 where user_id = 74`.execute(store().db);
    expect(await log.find({ ...of(one), userId: 75 }, false)).toBeUndefined();
    await log.close();
  });

  test('of earlier versions, one for each request, are read as before', async () => {
    const { log, of, clock } = opened();
    const one = { ...told(76, ''), requestId: 'req_0Zz9randomrandomrandom' };
    const sealed = seal.seal(Buffer.from('5:helloYou said: hello'), `prompt/76/${one.requestId}`);
    await sql`
      insert into prompt_log (last_request, user_id, at, address, prompt_length, answer_length, for_administrators, sealed)
      values (${one.requestId}, 76, ${new Date(clock.now())}, '10.0.0.1', 5, 15, true, ${sealed})`.execute(store().db);
    for (const forAdministrators of [false, true])
      expect(await log.find(of(one), forAdministrators)).toMatchObject({ prompt: 'hello', answer: 'You said: hello' });
    await log.close();
  });

  test('without texts are of requests of which nothing is kept', async () => {
    const { log, of } = opened(() => 'none');
    const one = told(77, 'gone');
    log.record({ ...one, prompt: '', answer: { ...one.answer, text: '' } });
    expect(await log.find(of(one), false)).toBeUndefined();
    await log.close();
  });

  test('have no texts of what waited when the settings came to say that none are kept', async () => {
    let bodies: 'own' | 'none' = 'own';
    const { log, of } = opened(() => bodies);
    const one = told(81, 'told before');
    log.record(one);
    bodies = 'none';
    expect(await log.find(of(one), false)).toBeUndefined();
    await booksOf(store()).record([usageRow({ requestId: one.requestId, userId: 81, at: Date.parse(of(one).at) })]);
    const lengths = { prompt: '', answer: '', promptLength: one.promptLength, answerLength: one.answer.length, address: one.address };
    expect(await log.list(81, { limit: 10, forAdministrators: false })).toMatchObject([lengths]);
    const { rows } = await sql<{ sealed: Buffer }>`select sealed from prompt_log where user_id = 81`.execute(store().db);
    expect(decompressed(seal.open(rows[0]!.sealed, `prompt/81/${one.requestId}`)).toString()).not.toContain('told before');
    await log.close();
  });

  test('are not written of a user who was deleted meanwhile', async () => {
    const { log } = opened();
    const [gone, present] = [told(75, 'of nobody'), told(82, 'of somebody')];
    await sql`update users set removed_at = now() where id = 75`.execute(store().db);
    for (const one of [gone, present]) log.record(one);
    await log.close();
    const { rows } = await sql<{
      id: number;
    }>`select user_id as id from prompt_log where last_request = any(${[gone, present].map((one) => one.requestId)})`.execute(store().db);
    expect(rows).toEqual([{ id: 82 }]);
  });

  test('go after the days that the settings say', async () => {
    const { log, clock } = opened();
    for (const userId of [78, 79]) log.record(told(userId, 'old or young'));
    clock.advance(1000);
    const users = async () =>
      (await sql<{ id: number }>`select user_id as id from prompt_log where user_id between 78 and 79 order by 1`.execute(store().db)).rows.map(({ id }) => id);
    await expect.poll(users).toEqual([78, 79]);
    for (const [userId, minutes] of [
      [78, -1],
      [79, 1],
    ])
      await sql`update prompt_log set at = now() - interval '30 days' + make_interval(mins => ${minutes}) where user_id = ${userId}`.execute(store().db);
    clock.advance(60_000);
    await expect.poll(users, { timeout: 30_000 }).toEqual([79]);
    await log.close();
  });
});

import { sql } from 'kysely';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { sealer } from '#kit/crypto/sealing';
import { jobs } from '#store/jobs';
import { testClock, type TestClock } from '../../../test/support/fakes/clock.ts';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { longestStretch } from '../../../test/support/cpu-time.ts';
import { quickest } from '../../../test/support/quickest.ts';
import type { Conversations, StoredEntry } from '#core/stored-responses';
import { openConversations } from './conversations.ts';
import { openRuns } from './runs.ts';
import { openStoredResponses, type ResponseStore } from './store.ts';

const migrations = ['../users/', './'].map((folder) => new URL(folder, import.meta.url));
const seal = sealer(Buffer.alloc(32, 7));
const day = 86_400_000;

interface Body {
  readonly text: string;
}

onBothDatabases('stored responses', ({ shared }) => {
  const store = shared({ migrations });
  let most = 1e9;
  let clock: TestClock;
  let responses: ResponseStore<Body>;
  let conversations: Conversations<Body>;
  let ada: number;
  let bob: number;

  beforeEach(async () => {
    const { rows } = await sql<{ id: number }>`
      insert into users (email, plan) values (gen_random_uuid()::text, 'unlimited'), (gen_random_uuid()::text, 'unlimited') returning id`.execute(store().db);
    [ada, bob] = rows.map(({ id }) => id) as [number, number];
    clock = testClock();
    const parts = { store: store(), seal, clock, retentionDays: () => 30, mostBytes: () => most };
    responses = openStoredResponses<Body>(parts);
    conversations = openConversations(parts, responses);
  });
  const entry = (id: string, more: Partial<StoredEntry<Body>> = {}): StoredEntry<Body> => ({
    userId: ada,
    id,
    status: 'completed',
    items: 2,
    body: { text: `of ${id}` },
    ...more,
  });
  const keepChain = async (count: number, items = 2) => {
    for (let at = 0; at < count; at++) await responses.keep(entry(`r${at}`, { items, ...(at > 0 ? { previousId: `r${at - 1}` } : {}) }));
  };

  test('what was kept comes back, and what is kept again is written anew', async () => {
    await responses.keep(entry('r'));
    expect(await responses.find(ada, 'r')).toEqual(entry('r'));
    await responses.keep(entry('r', { status: 'failed', body: { text: 'anew' } }));
    expect(await responses.find(ada, 'r')).toEqual(entry('r', { status: 'failed', body: { text: 'anew' } }));
  });

  test('what is renewed is neither brought back after it was deleted nor taken out of a status that it has reached', async () => {
    await responses.keep(entry('r', { status: 'queued' }));
    expect(await responses.renew(entry('r', { status: 'completed' }), ['queued'])).toBe(true);
    expect(await responses.renew(entry('r', { status: 'cancelled' }), ['queued'])).toBe(false);
    expect((await responses.find(ada, 'r'))!.status).toBe('completed');
    await responses.remove(ada, 'r');
    expect(await responses.renew(entry('r'), ['completed'])).toBe(false);
    expect(await responses.find(ada, 'r')).toBeUndefined();
  });

  test('what is read is counted before it is made use of', async () => {
    await responses.keep(entry('r', { body: { text: 'x'.repeat(10_000) } }));
    await responses.keep(entry('next', { previousId: 'r' }));
    const need = (bytes: number) => {
      throw new Error(`${bytes > 20_000}`);
    };
    await expect(responses.find(ada, 'r', { need })).rejects.toThrow('true');
    await expect(responses.chain(ada, 'next', 'id', { need })).rejects.toThrow('true');
    expect(await responses.bytes(ada, 'next')).toBeGreaterThan(20_000);
    expect(await responses.bytes(bob, 'next')).toBe(0);
  });

  test('many that are kept at once are all there, and one that cannot be kept is refused alone', async () => {
    const kept = Array.from({ length: 250 }, (_, at) => entry(`r${at}`));
    const nobody = entry('of nobody', { userId: 1_000_000 });
    const settled = await Promise.allSettled(
      [...kept.slice(0, 100), nobody, ...kept.slice(100), entry('r7', { status: 'failed' })].map((one) => responses.keep(one)),
    );
    expect(settled.map(({ status }) => status).filter((status) => status === 'rejected')).toHaveLength(1);
    expect(settled[100]!.status).toBe('rejected');
    for (const { id } of kept) expect(await responses.find(ada, id)).toEqual(entry(id, id === 'r7' ? { status: 'failed' } : {}));
  });

  test('nothing of it can be read in the table, and another row with its bytes does not open', async () => {
    await responses.keep(entry('r', { body: { text: 'a secret canary' } }));
    const { rows } = await sql<{ body: Buffer }>`select body from stored_response where user_id = ${ada}`.execute(store().db);
    expect(rows[0]!.body.toString('latin1')).not.toContain('canary');
    await responses.keep(entry('other'));
    await sql`update stored_response set body = ${rows[0]!.body} where user_id = ${ada} and id = 'other'`.execute(store().db);
    await expect(responses.find(ada, 'other')).rejects.toThrow('does not open');
  });

  test("another user's is not there: not to be read, gone on from, written or deleted", async () => {
    await responses.keep(entry('r'));
    expect(await responses.find(bob, 'r')).toBeUndefined();
    await expect(responses.chain(bob, 'r', 'previous_response_id')).rejects.toMatchObject({ code: 'not-found', details: { field: 'previous_response_id' } });
    expect(await responses.remove(bob, 'r')).toBe(false);
    await responses.keep(entry('mine', { userId: bob, previousId: 'r' }));
    await expect(responses.chain(bob, 'mine', 'id')).rejects.toMatchObject({ code: 'not-found' });
    await responses.keep(entry('r', { userId: bob, body: { text: 'of bob' } }));
    expect((await responses.find(ada, 'r'))!.body.text).toBe('of r');
  });

  test('a chain comes oldest first', async () => {
    await keepChain(5);
    expect((await responses.chain(ada, 'r4', 'id')).map(({ id }) => id)).toEqual(['r0', 'r1', 'r2', 'r3', 'r4']);
  });

  test('a chain of 10,000 items is taken, one more is refused and names the field', async () => {
    await keepChain(5, 2000);
    expect(await responses.chain(ada, 'r4', 'id')).toHaveLength(5);
    await responses.keep(entry('r5', { items: 1, previousId: 'r4' }));
    await expect(responses.chain(ada, 'r5', 'previous_response_id')).rejects.toMatchObject({ code: 'invalid', details: { field: 'previous_response_id' } });
  });

  test('a chain of more than 32 MiB is refused before it is read', async () => {
    for (let at = 0; at < 3; at++)
      await responses.keep(entry(`big${at}`, { body: { text: 'x'.repeat(12 * 2 ** 20) }, ...(at > 0 ? { previousId: `big${at - 1}` } : {}) }));
    expect(await responses.chain(ada, 'big1', 'id')).toHaveLength(2);
    await expect(responses.chain(ada, 'big2', 'id')).rejects.toMatchObject({ code: 'invalid' });
  });

  test('a chain that is only read may be longer, and its refusal says how long', async () => {
    await keepChain(6, 3000);
    expect(await responses.chain(ada, 'r4', 'conversation_id', undefined, 'read')).toHaveLength(5);
    await expect(responses.chain(ada, 'r4', 'conversation_id')).rejects.toThrow('longer than 10000 items or 32 MiB');
    await expect(responses.chain(ada, 'r5', 'conversation_id', undefined, 'read')).rejects.toThrow('longer than 15000 items or 64 MiB');
  });

  test('a chain of 56 MiB is read without holding the event loop for 50 ms', { timeout: 120_000 }, async () => {
    const text = 'A line of "some" length.\n'.repeat(40_000);
    for (let at = 0; at < 56; at++) await responses.keep(entry(`r${at}`, { body: { text }, ...(at > 0 ? { previousId: `r${at - 1}` } : {}) }));
    expect(await quickest(50, () => longestStretch(() => responses.chain(ada, 'r55', 'id', undefined, 'read')))).toBeLessThan(50);
  });

  test('a chain of 5,000 entries is read without holding the event loop for 50 ms', { timeout: 120_000 }, async () => {
    const links = Array.from({ length: 5000 }, (_, at) => entry(`r${at}`, at > 0 ? { previousId: `r${at - 1}` } : {}));
    await Promise.all(links.map((one) => responses.keep(one)));
    expect(await quickest(50, () => longestStretch(() => responses.chain(ada, 'r4999', 'id')))).toBeLessThan(50);
  });

  /** As if so much time had passed. */
  const older = async (interval: string) => {
    for (const table of ['stored_response', 'conversation'])
      await sql`update ${sql.table(table)} set expires_at = expires_at - ${interval}::interval`.execute(store().db);
  };

  test.each([400, -400])('what is young stays although the clock of the machine that keeps or purges is %i days ahead', async (days) => {
    const astray = { ...clock, now: () => clock.now() + days * day };
    const parts = { store: store(), seal, clock: astray, retentionDays: () => 30, mostBytes: () => Infinity };
    const elsewhere = openStoredResponses<Body>(parts);
    await elsewhere.keep(entry('there'));
    await responses.keep(entry('here'));
    const { id, createdAt } = await openConversations(parts, elsewhere).make(ada, {});
    expect(Math.abs(createdAt.getTime() - Date.now())).toBeLessThan(60_000);
    await Promise.all([elsewhere.purge(), responses.purge()]);
    for (const one of ['there', 'here']) expect(await responses.find(ada, one)).toBeDefined();
    expect(await conversations.find(ada, id)).toBeDefined();
    await older('30 days');
    await responses.purge();
    for (const one of ['there', 'here']) expect(await responses.find(ada, one)).toBeUndefined();
  });

  test('what is old is deleted, but not what something younger goes on from', async () => {
    await keepChain(2);
    await responses.keep(entry('alone'));
    await older('29 days');
    await responses.keep(entry('r2', { previousId: 'r1' }));
    await older('2 days');
    await responses.purge();
    expect(await responses.find(ada, 'alone')).toBeUndefined();
    expect(await responses.chain(ada, 'r2', 'id')).toHaveLength(3);
    await older('30 days');
    await responses.purge();
    for (const id of ['r0', 'r1', 'r2']) expect(await responses.find(ada, id)).toBeUndefined();
  });

  describe('a conversation', () => {
    test('grows at its head', async () => {
      const { id } = await conversations.make(ada, { topic: 'x' });
      await conversations.add(id, entry('a'));
      await conversations.add(id, entry('b', { previousId: 'a' }));
      const found = (await conversations.find(ada, id))!;
      expect([found.metadata, found.head]).toEqual([{ topic: 'x' }, 'b']);
      expect((await responses.chain(ada, 'b', 'id')).map((one) => one.id)).toEqual(['a', 'b']);
    });

    test('keeps all that is added at once, made anew or run in the background, each behind the one before it', async () => {
      const { id } = await conversations.make(ada, {});
      await conversations.add(id, entry('first'));
      const all = Array.from({ length: 20 }, (_, at) => entry(`r${at}`, { previousId: 'first' }));
      const [runs, turns] = [all.slice(0, 10), all.slice(10)];
      for (const run of runs) await responses.keep({ ...run, status: 'in_progress' });
      const ended: string[] = [];
      await Promise.all([
        ...runs.map((run) => conversations.add(id, run, { statuses: ['in_progress'] }).then(() => ended.push(run.id))),
        ...turns.map((turn) => conversations.add(id, turn).then(() => ended.push(turn.id))),
      ]);
      const { head } = (await conversations.find(ada, id))!;
      const kept = await responses.chain(ada, head!, 'id');
      expect(kept.map((one) => one.id).toSorted()).toEqual(['first', ...ended].toSorted());
      expect(kept.map(({ status }) => status)).toEqual(kept.map(() => 'completed'));
      expect(kept.map(({ previousId }) => previousId)).toEqual([undefined, ...kept.slice(0, -1).map((one) => one.id)]);
    });

    test.each(['deleted', 'cancelled'])('is not gone on with by a run that was %s meanwhile: nothing of it comes back', async (how) => {
      const { id } = await conversations.make(ada, {});
      const run = entry('run', { status: 'in_progress' });
      const ended = entry('run');
      for (let round = 0; round < 20; round++) {
        await responses.keep(run);
        const ending = how === 'deleted' ? responses.remove(ada, 'run') : responses.renew({ ...run, status: 'cancelled' }, ['in_progress']);
        if (round % 2 === 0) await ending;
        const [isEnded, added] = await Promise.allSettled([ending, conversations.add(id, ended, { statuses: ['in_progress'] })]);
        const left = (await responses.find(ada, 'run'))?.status;
        const { head } = (await conversations.find(ada, id))!;
        expect(isEnded.status).toBe('fulfilled');
        if (round % 2 === 0) expect(added.status).toBe('rejected');
        if (added.status === 'rejected') expect([head, left]).toEqual([null, how === 'deleted' ? undefined : 'cancelled']);
        else expect([head, left]).toEqual(['run', how === 'deleted' ? undefined : 'completed']);
        await responses.remove(ada, 'run');
        await sql`update conversation set head = null where id = ${id}`.execute(store().db);
      }
    });

    test('takes nothing that goes on from a head that was deleted, and stays as it is then', async () => {
      const { id } = await conversations.make(ada, {});
      await conversations.add(id, entry('a'));
      await responses.remove(ada, 'a');
      await expect(conversations.add(id, entry('b', { previousId: 'a' }))).rejects.toMatchObject({ code: 'not-found' });
      expect([(await conversations.find(ada, id))!.head, await responses.find(ada, 'b')]).toEqual(['a', undefined]);
    });

    test('can be read whatever response of it is deleted, also one that is added at that moment', async () => {
      const left = (one: StoredEntry<Body>) => ({ ...one, status: 'items' });
      for (let round = 0; round < 20; round++) {
        const { id } = await conversations.make(ada, {});
        const [first, run] = [entry(`first-${id}`), entry(`run-${id}`, { status: 'in_progress' })];
        await conversations.add(id, first);
        await responses.keep(run);
        const adding = conversations.add(id, { ...run, status: 'completed' }, { statuses: ['in_progress'] });
        if (round % 2 === 0) await adding;
        const [added, ...removed] = await Promise.allSettled([adding, ...[run, first].map((one) => conversations.removeEntry(id, ada, one.id, left))]);
        expect(removed).toEqual([1, 2].map(() => ({ status: 'fulfilled', value: true })));
        const kept = await responses.chain(ada, (await conversations.find(ada, id))!.head!, 'id');
        expect(kept.map((one) => [one.id, one.status])).toEqual([first, ...(added.status === 'fulfilled' ? [run] : [])].map((one) => [one.id, 'items']));
      }
      expect(await conversations.removeEntry('none', ada, 'none', left)).toBe(false);
    });

    test('that is deleted while something is added has it before that or not at all', async () => {
      for (let round = 0; round < 20; round++) {
        const { id } = await conversations.make(ada, {});
        const one = entry(`of-${id}`);
        const [added, gone] = await Promise.allSettled([conversations.add(id, one), conversations.remove(ada, id)]);
        expect(gone).toMatchObject({ status: 'fulfilled', value: true });
        expect(await conversations.find(ada, id)).toBeUndefined();
        expect((await responses.find(ada, one.id)) !== undefined).toBe(added.status === 'fulfilled');
      }
    });

    test('of another user is not there', async () => {
      const { id } = await conversations.make(ada, {});
      expect(await conversations.find(bob, id)).toBeUndefined();
      expect(await conversations.describe(bob, id, {})).toBe(false);
      expect(await conversations.remove(bob, id)).toBe(false);
      await expect(conversations.add(id, entry('x', { userId: bob }))).rejects.toMatchObject({ code: 'conflict' });
      expect(await conversations.remove(ada, id)).toBe(true);
    });
  });

  test('there is no room where as many bytes are kept as may be, and there is again when some were deleted', async () => {
    const big = entry('big', { body: { text: 'x'.repeat(100_000) } });
    await responses.enter(ada);
    await responses.keep(big);
    most = 50_000;
    onTestFinished(() => void (most = 1e9));
    const entering = async (userId = ada) => responses.enter(userId);
    await expect(entering()).rejects.toMatchObject({ code: 'rate-limited', message: expect.stringContaining('50000 bytes') });
    await entering(bob);
    await responses.remove(ada, 'big');
    await entering();
    await responses.keep({ ...big, body: { text: 'x'.repeat(30_000) } });
    await responses.keep({ ...big, body: { text: 'x'.repeat(30_000) } }); // the same again takes no more room
    clock.advance(6000);
    await entering();
  });

  test('a run is queued together with its entry, and cancelled while it runs', async () => {
    const working = jobs({ store: store(), clock });
    const runs = openRuns({ store: store(), jobs: working, responses, most: () => 10 });
    const begun = Promise.withResolvers<string>();
    const ended = Promise.withResolvers<void>();
    runs.work(async ({ id, signal }) => {
      begun.resolve(id);
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      ended.resolve();
      throw new Error('cancelled');
    });
    let job = '';
    await runs.begin((made) => {
      job = made;
      return entry('run', { status: 'queued' });
    }, 1);
    expect(await begun.promise).toBe('run');
    expect((await responses.find(ada, 'run'))!.status).toBe('queued');
    await runs.cancel(job);
    await ended.promise;
    await working.close();
  });

  test('many runs that are queued at once are not more than may be', async () => {
    const working = jobs({ store: store(), clock });
    const runs = openRuns({ store: store(), jobs: working, responses, most: () => 3 });
    await Promise.all(Array.from({ length: 20 }, () => sql`select pg_sleep(0.02)`.execute(store().db))); // all connections are open
    const begun = await Promise.allSettled(Array.from({ length: 20 }, (_, at) => runs.begin(() => entry(`run${at}`, { status: 'queued' }), 1)));
    const waiting = await runs.waiting(ada);
    for (const { job } of waiting) await runs.cancel(job);
    expect(begun.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    expect(waiting).toHaveLength(3);
    await working.close();
  });
});

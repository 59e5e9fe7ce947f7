import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { jobs } from '#store/jobs';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { askForRemoval, workOnRemovals } from './removal.ts';
import { openUsers } from './store.ts';

const migrations = ['users', 'api-keys', 'teams', 'sessions', 'stored-responses', 'personas'].map((noun) => new URL(`../${noun}/`, import.meta.url));
const owned = [{ table: 'stored_response', bytes: 'bytes' }, { table: 'conversation' }];
const shared = [{ kind: 'persona', table: 'persona' }];

onBothDatabases('removing a user', ({ open }) => {
  test('who was deleted is not seen from then on, and a later process takes away what is left, in pieces', { timeout: 120_000 }, async () => {
    const store = await open({ migrations });
    const asking = jobs({ store, clock: systemClock });
    const users = openUsers(store);
    const add = (email: string) => users.add({ email, role: 'user', plan: 'unlimited' });
    const [ada, bob] = [await add('ada@example.org'), await add('bob@example.org')];
    for (const [id, rows] of [
      [ada.id, 1800],
      [bob.id, 5],
    ] as const)
      await sql`
        insert into stored_response (user_id, id, status, items, body, bytes, expires_at)
        select ${id}, 'r' || n, 'completed', 1, 'x', 1000000, now() from generate_series(1, ${rows}::int) n`.execute(store.db);
    for (const { id } of [ada, bob]) await asking.add('ingestion', { filename: 'diary.md' }, { owner: `user:${id}` });
    await store.transaction(async (inside) => {
      expect(await openUsers(inside).remove(ada.id)).toMatchObject({ email: 'ada@example.org', status: 'active' });
      await askForRemoval(asking, ada.id, inside);
    });
    expect(await users.find(ada.id)).toBeUndefined();
    expect((await users.list({ text: '', after: 0, limit: 10 })).map(({ email }) => email)).toEqual(['bob@example.org']);
    expect(await users.remove(ada.id)).toBeUndefined();
    expect((await add('ada@example.org')).id).not.toBe(ada.id);
    const working = jobs({ store, clock: systemClock });
    onTestFinished(() => working.close());
    workOnRemovals({ store, jobs: working, owned, shared, log: (problem) => expect.fail(problem) });
    const left = async () => {
      const { rows } = await sql<{ id: number; rows: number }>`
        select users.id, (select count(*)::int from stored_response where user_id = users.id) as rows from users where id = any(${[ada.id, bob.id]}::bigint[])`.execute(
        store.db,
      );
      return rows;
    };
    await expect.poll(left, { timeout: 60_000 }).toEqual([{ id: bob.id, rows: 5 }]);
    const { rows: work } = await sql`select owner, payload from job where kind = 'ingestion'`.execute(store.db);
    expect(work).toEqual([{ owner: `user:${bob.id}`, payload: { filename: 'diary.md' } }]); // a job says what its file is called
  });

  test('grants that were set while their owner was deleted go before all else', { timeout: 120_000 }, async () => {
    const store = await open({ migrations });
    const users = openUsers(store);
    const add = (email: string) => users.add({ email, role: 'user', plan: 'unlimited' });
    const [ada, bob] = [await add('ada@example.org'), await add('bob@example.org')];
    for (const { id } of [ada, bob])
      await sql`
        with made as (insert into persona (owner_id, name, description, prompt) values (${id}, 'p', '', 'x') returning id)
        insert into grants (kind, thing_id, everybody, level) select 'persona', id, true, 1 from made`.execute(store.db);
    const working = jobs({ store, clock: systemClock });
    onTestFinished(() => working.close());
    const left = Promise.withResolvers<unknown>();
    const also = async () => {
      const { rows } = await sql`select owner_id as owner from grants join persona on persona.id = thing_id where kind = 'persona'`.execute(store.db);
      left.resolve(rows);
    };
    workOnRemovals({ store, jobs: working, owned, shared, also, log: (problem) => expect.fail(problem) });
    await users.remove(ada.id);
    await askForRemoval(working, ada.id);
    expect(await left.promise).toEqual([{ owner: bob.id }]);
  });
});

import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { onBothDatabases } from '../../../test/support/databases.ts';
import { openSessions } from './store.ts';

const migrations = ['users', 'api-keys', 'teams', 'sessions'].map((noun) => new URL(`../${noun}/`, import.meta.url));

onBothDatabases('sessions', ({ open }) => {
  async function opened() {
    const store = await open({ migrations });
    const sessions = openSessions(store, randomBytes(32));
    await sql`insert into users (email, plan) values ('ada@example.org', 'free')`.execute(store.db);
    const ada = { userId: 1, version: 0 };
    const isGood = async (text: string) => (await sessions.find([text]))[0] !== undefined;
    /** As if the session had been made, or used, so long before. */
    const age = (column: 'made_at' | 'used_at', by: string) =>
      sql`update session set ${sql.ref(column)} = ${sql.ref(column)} - ${by}::interval`.execute(store.db);
    return { store, sessions, ada, isGood, age };
  }

  test('end after 12 hours without use, and each use counts', async () => {
    const { sessions, ada, isGood, age } = await opened();
    const text = await sessions.begin(ada);
    for (let day = 0; day < 3; day++) {
      await age('used_at', '11 hours 59 minutes');
      expect(await isGood(text)).toBe(true);
    }
    await age('used_at', '12 hours 1 second');
    expect(await isGood(text)).toBe(false);
    expect(await isGood(text)).toBe(false);
  });

  test('end after 30 days in all, however often they are used', async () => {
    const { sessions, ada, isGood, age } = await opened();
    const text = await sessions.begin(ada);
    await age('made_at', '29 days 23 hours');
    const [found] = await sessions.find([text]);
    expect(found!.expiresIn).toBeLessThanOrEqual(3_600_000);
    expect(found!.expiresIn).toBeGreaterThan(3_500_000);
    expect(Math.abs(found!.caller.session!.expiresAt - Date.now() - found!.expiresIn!)).toBeLessThan(60_000);
    await age('made_at', '1 hour 1 second');
    expect(await isGood(text)).toBe(false);
  });

  test('are kept as digests that depend on a secret of the installation, and are found by their text alone', async () => {
    const { store, sessions, ada, isGood } = await opened();
    const [one, other] = [await sessions.begin(ada), await sessions.begin(ada)];
    expect(one).not.toBe(other);
    const { rows } = await sql<{ row: string }>`select session::text as row from session`.execute(store.db);
    expect(rows).toHaveLength(2);
    for (const { row } of rows) for (const text of [one, other]) expect(row).not.toContain(text.slice(4, 20));
    expect(await openSessions(store, randomBytes(32)).find([one])).toEqual([undefined]);
    expect(await isGood(one.slice(0, -1) + (one.endsWith('a') ? 'b' : 'a'))).toBe(false);
    const [first, nothing, second] = await sessions.find([one, 'dgs_none', other]);
    expect([first!.caller.userId, nothing, second!.caller.session!.id === first!.caller.session!.id]).toEqual([1, undefined, false]);
  });

  test('none begins for a user who was suspended, or who has another password since it was checked', async () => {
    const { store, sessions, ada } = await opened();
    await sql`update users set password_version = 1`.execute(store.db);
    await expect(sessions.begin(ada)).rejects.toThrow('sign in again');
    await sessions.begin({ ...ada, version: 1 });
    await sql`update users set status = 'suspended'`.execute(store.db);
    await expect(sessions.begin({ ...ada, version: 1 })).rejects.toThrow('sign in again');
  });

  test('a user has at most 100, of which the one that was not used for longest ends, and those that are over go with the next sign-in', async () => {
    const { store, sessions, ada, isGood, age } = await opened();
    const first = await sessions.begin(ada);
    const second = await sessions.begin(ada);
    await age('used_at', '1 hour');
    await isGood(first);
    for (let n = 0; n < 99; n++) await sessions.begin(ada);
    expect([await isGood(first), await isGood(second)]).toEqual([true, false]);
    await age('used_at', '13 hours');
    await sessions.begin(ada);
    const { rows } = await sql<{ count: number }>`select count(*)::int as count from session`.execute(store.db);
    expect(rows[0]!.count).toBe(1);
  });

  test('that are asked for by many at the same moment are found by all of them', async () => {
    const { sessions, ada, age } = await opened();
    const texts = await Promise.all(Array.from({ length: 8 }, () => sessions.begin(ada)));
    for (let round = 0; round < 5; round++) {
      await age('used_at', '1 hour');
      const found = await Promise.all(Array.from({ length: 8 }, (_, at) => sessions.find(at % 2 === 0 ? texts : texts.toReversed())));
      expect(found.flat().filter((one) => one === undefined)).toEqual([]);
    }
  });
});

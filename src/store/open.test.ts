import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { Fault } from '#core/fault';
import { isDuplicate, SqlError } from '#store/sql-error';
import type { Change } from '#store/open';
import { onBothDatabases } from '../../test/support/databases.ts';

type Tables = { note: { id: number; text: string; extra: unknown } };

onBothDatabases('a store', ({ name, open, shared }) => {
  const sharedStore = shared();
  const withNotes = async () => {
    const store = sharedStore();
    await sql`drop table if exists note`.execute(store.db);
    await sql`create table note (id integer primary key, text text not null, extra jsonb)`.execute(store.db);
    return { store, notes: store.db.$extendTables<Tables>() };
  };

  test('says which it is, is ready, and speaks the SQL of PostgreSQL 15', async () => {
    const { store, notes } = await withNotes();
    expect(store.kind).toBe(name);
    await store.ready();
    await notes
      .insertInto('note')
      .values({ id: 1, text: 'a', extra: JSON.stringify([1]) })
      .execute();
    const merged = await sql`merge into note using (values (1, 'b'), (2, 'c')) as v (id, text) on note.id = v.id
      when matched then update set text = v.text when not matched then insert (id, text) values (v.id, v.text)`.execute(store.db);
    expect(merged.numAffectedRows).toBe(2n);
    expect(await notes.selectFrom('note').selectAll().orderBy('id').execute()).toEqual([
      { id: 1, text: 'b', extra: [1] },
      { id: 2, text: 'c', extra: null },
    ]);
    expect((await notes.deleteFrom('note').executeTakeFirst()).numDeletedRows).toBe(2n);
  });

  test('gives every kind of value back alike on both databases', async () => {
    const store = sharedStore();
    const when = new Date('2026-11-21T10:20:30.456Z');
    const bytes = Buffer.from([0, 1, 2, 254, 255]);
    const { rows } = await sql`select
      ${7}::int4 as int4, ${2 ** 40}::int8 as int8, ${2n ** 60n}::int8 as big, ${1.5}::float8 as float8, ${'12.340'}::numeric as numeric, ${true} and true as bool,
      ${when}::timestamptz as at, ${'2026-11-21'}::date as date, '12:30'::time as time, '2026-11-21 10:00'::timestamp as local, '1 day 2 hours'::interval as interval,
      ${bytes}::bytea as bytes, ${{ a: [1, null] }}::jsonb as json, ${'ä€😀'}::text as text, ${null}::text as nothing, ${undefined}::text as absent,
      ${['a"b', 'c\\d', null, 'e,f', '']}::text[] as texts, ${[1, 2 ** 40]}::int8[] as ints, ${[when]}::timestamptz[] as times, ${['1.10']}::numeric[] as numerics,
      ${new Float32Array([0.5, 1])}::real[] as reals, ${[
        [1, 2],
        [3, 4],
      ]}::int4[] as nested, (${[bytes]}::bytea[])[1] as listed, ${[]}::text[] as empty, count(*) as count`.execute(store.db);
    expect(rows[0]).toEqual({
      int4: 7,
      int8: 2 ** 40,
      big: 2n ** 60n,
      float8: 1.5,
      numeric: '12.340',
      bool: true,
      at: when,
      date: '2026-11-21',
      time: '12:30:00',
      local: '2026-11-21 10:00:00',
      interval: '1 day 02:00:00',
      bytes,
      json: { a: [1, null] },
      text: 'ä€😀',
      nothing: null,
      absent: null,
      texts: ['a"b', 'c\\d', null, 'e,f', ''],
      ints: [1, 2 ** 40],
      times: [when],
      numerics: ['1.10'],
      reals: [0.5, 1],
      nested: [
        [1, 2],
        [3, 4],
      ],
      listed: bytes,
      empty: [],
      count: 1,
    });
    expect(rows[0]).toHaveProperty('bytes', expect.any(Buffer));
  });

  test('carries any text, refuses U+0000 as the caller’s mistake, and mends lone surrogates', async () => {
    const { store, notes } = await withNotes();
    const hostile = ["'; drop table note; --", '\\', 'é\udc00x', '\ud800', '\u202e', '💥'.repeat(20_000), '$1', '%s'];
    await notes
      .insertInto('note')
      .values(hostile.map((text, id) => ({ id, text, extra: null })))
      .execute();
    const texts = (await notes.selectFrom('note').select('text').orderBy('id').execute()).map(({ text }) => text);
    expect(texts).toEqual(hostile.map((text) => text.toWellFormed()));
    await expect(notes.insertInto('note').values({ id: 99, text: 'a\0b', extra: null }).execute()).rejects.toMatchObject({ code: 'invalid' });
    await expect(
      notes
        .insertInto('note')
        .values({ id: 99, text: 'a', extra: JSON.stringify('a\0b') })
        .execute(),
    ).rejects.toMatchObject({ code: 'invalid' });
    await store.ready();
  });

  test('tells a duplicate from other errors, without the row in the message', async () => {
    const { store, notes } = await withNotes();
    const insert = () => notes.insertInto('note').values({ id: 1, text: 'sk-canary', extra: null }).execute();
    await insert();
    const error = await insert().catch((thrown: unknown) => thrown);
    expect(isDuplicate(error)).toBe(true);
    expect(isDuplicate(error, 'note_pkey')).toBe(true);
    expect(isDuplicate(error, 'other')).toBe(false);
    expect(JSON.stringify([error, (error as Error).message, Object.entries(error as object)])).not.toContain('canary');
    await expect(sql`select * from nowhere`.execute(store.db)).rejects.toBeInstanceOf(SqlError);
    expect(isDuplicate(await sql`select * from nowhere`.execute(store.db).catch((thrown: unknown) => thrown))).toBe(false);
  });

  test('a transaction is all or nothing, and nobody sees half of it', async () => {
    const { store, notes } = await withNotes();
    const count = async () =>
      Number(
        (
          await notes
            .selectFrom('note')
            .select(({ fn }) => fn.countAll().as('n'))
            .executeTakeFirstOrThrow()
        ).n,
      );
    const seen: number[] = [];
    const insert = (fails: boolean) =>
      store.transaction(async ({ db }) => {
        await db.$extendTables<Tables>().insertInto('note').values({ id: 1, text: 'a', extra: null }).execute();
        const outside = count().then((n) => seen.push(n));
        if (name === 'server') await outside; // the embedded one lets nobody in between
        await db.$extendTables<Tables>().insertInto('note').values({ id: 2, text: 'b', extra: null }).execute();
        if (fails) throw new Error('changed my mind');
        return 'done';
      });
    await expect(insert(true)).rejects.toThrow('changed my mind');
    expect(await count()).toBe(0);
    expect(await insert(false)).toBe('done');
    expect(await count()).toBe(2);
    expect(seen.every((n) => n === 0 || n === 2)).toBe(true);
  });

  test('a failed statement spoils its transaction and nobody else’s', async () => {
    const { store, notes } = await withNotes();
    const spoiled = store.transaction(async ({ db }) => {
      await sql`insert into note values (1, 'a')`.execute(db);
      await sql`select 1 / 0`.execute(db).catch(() => {});
    });
    await expect(spoiled).rejects.toThrow();
    expect(await notes.selectFrom('note').selectAll().execute()).toEqual([]);
    await Promise.all(
      Array.from({ length: 50 }, async (_, id) => {
        if (id % 2) await expect(sql`insert into note values (${id}, null)`.execute(store.db)).rejects.toThrow();
        else await sql`insert into note values (${id}, 'a')`.execute(store.db);
      }),
    );
    expect(await notes.selectFrom('note').select('id').execute()).toHaveLength(25);
  });

  test('two hundred transactions at once on one row lose no update', async () => {
    const { store } = await withNotes();
    await sql`insert into note values (1, '0', '0')`.execute(store.db);
    await Promise.all(
      Array.from({ length: 200 }, () =>
        store.transaction(async ({ db }) => {
          const { rows } = await sql<{ extra: number }>`select extra from note where id = 1 for update`.execute(db);
          await sql`update note set extra = ${JSON.stringify(rows[0]!.extra + 1)}::jsonb where id = 1`.execute(db);
        }),
      ),
    );
    expect((await sql`select extra from note`.execute(store.db)).rows).toEqual([{ extra: 200 }]);
  });

  test('transactions that collide are run again', async () => {
    const { store } = await withNotes();
    await sql`insert into note values (1, '0', '0')`.execute(store.db);
    let tries = 0;
    const result = await store.transaction(async ({ db }) => {
      await sql`update note set text = ${String(++tries)}`.execute(db);
      if (tries < 3) await sql.raw("do $$ begin raise exception 'collided' using errcode = '40001'; end $$").execute(db);
      return tries;
    });
    expect(result).toBe(3);
    expect((await sql`select text from note`.execute(store.db)).rows).toEqual([{ text: '3' }]);
  });

  test('a statement past its deadline is refused as overloaded, and the next one is answered', async () => {
    const { store, notes } = await withNotes();
    await sql`insert into note values (1, 'kept')`.execute(store.db);
    const { db } = store.long(0.5);
    const endless = sql`select count(*) from generate_series(1, 100000000000)`.execute(db);
    await expect(endless).rejects.toMatchObject({ code: 'overloaded', details: { retryAfter: 1 } });
    await expect
      .poll(
        () =>
          notes
            .selectFrom('note')
            .select('text')
            .execute()
            .catch(() => 'away'),
        { timeout: 30_000 },
      )
      .toEqual([{ text: 'kept' }]);
  });

  test('a change is told to whoever subscribed, after its transaction, and never when that was rolled back', async () => {
    const store = sharedStore();
    const heard: Change[] = [];
    const unsubscribe = store.subscribe('keys', (change) => heard.push(change));
    store.subscribe('other', () => heard.push({ type: 'reset' }));
    store.subscribe('keys', () => {
      throw new Error('a bad listener disturbs nobody');
    });
    await store.publish('keys', { id: 1 });
    await store.transaction(async ({ publish }) => {
      await publish('keys', 2);
      expect(heard).toHaveLength(1);
    });
    await store
      .transaction(async ({ publish }) => {
        await publish('keys', 3);
        throw new Error('no');
      })
      .catch(() => {});
    unsubscribe();
    await store.publish('keys', 4);
    expect(heard).toEqual([
      { type: 'change', payload: { id: 1 } },
      { type: 'change', payload: 2 },
    ]);
  });

  test('refuses everything once it is closed', async () => {
    const store = await open();
    await store.close();
    await expect(sql`select 1`.execute(store.db)).rejects.toBeInstanceOf(Fault);
  });
});

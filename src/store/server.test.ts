import { sql } from 'kysely';
import { describe, expect, inject, test } from 'vitest';
import type { Change } from '#store/open';
import { emptyName, onServer } from '../../test/support/databases.ts';
import { administer } from '../../test/support/postgres.ts';
import { behindProxy, timed } from '../../test/support/tcp-proxy.ts';

const address = inject('postgres') ?? '';

describe.skipIf(!address)('a store on a server', () => {
  const database = onServer(address);
  const { open, place } = database;
  test('that goes away refuses quickly with a time to come back, and serves soon after its return', async () => {
    const { store, proxy, told, insert } = await behindProxy(database);
    await proxy.set('refuse');
    await expect(insert()).rejects.toMatchObject({ code: 'overloaded', details: { retryAfter: 1 } });
    await expect.poll(() => told).toContain('the database is away');
    const during = await Promise.all(Array.from({ length: 300 }, () => timed(insert)));
    expect(during.every(({ outcome }) => outcome === 'overloaded')).toBe(true);
    expect(Math.max(...during.map(({ milliseconds }) => milliseconds))).toBeLessThan(5000); // half a second, on a machine with nothing else to do
    await expect(store.ready()).rejects.toMatchObject({ code: 'overloaded' });
    await proxy.set('on');
    const since = performance.now();
    await expect
      .poll(
        () =>
          insert().then(
            () => 'served',
            () => 'away',
          ),
        { interval: 20, timeout: 5000 },
      )
      .toBe('served');
    expect(performance.now() - since).toBeLessThan(10_000);
    await Promise.all(Array.from({ length: 50 }, insert));
    await store.ready();
  });

  test('that ends every connection costs what was under way and nothing after', async () => {
    const { store, direct, insert } = await behindProxy(database);
    await Promise.all(Array.from({ length: 20 }, insert));
    const name = new URL(direct).pathname.slice(1);
    const inside = store.transaction(async ({ db }) => {
      await sql`insert into t values (2)`.execute(db);
      await administer(address, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
      await sql`insert into t values (3)`.execute(db);
    });
    await expect(inside).rejects.toMatchObject({ code: 'overloaded' });
    await expect
      .poll(
        () =>
          insert().then(
            () => true,
            () => false,
          ),
        { timeout: 30_000 },
      )
      .toBe(true);
    expect((await sql`select count(*) as n from t where n > 1`.execute(store.db)).rows).toEqual([{ n: 0 }]);
  });

  test('that only reads for a while is left for new connections, so that it writes again when the server does', async () => {
    const { store, direct, insert } = await behindProxy(database);
    const name = new URL(direct).pathname.slice(1);
    const connectAnew = `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and pid <> pg_backend_pid()`;
    await administer(address, `alter database ${name} set default_transaction_read_only = on`);
    await administer(address, connectAnew);
    await expect
      .poll(
        () =>
          sql`select 1`.execute(store.db).then(
            () => true,
            () => false,
          ),
        { timeout: 30_000 },
      )
      .toBe(true);
    await expect(insert()).rejects.toMatchObject({ code: 'overloaded', message: 'The database cannot be written to right now.' });
    await administer(address, `alter database ${name} set default_transaction_read_only = off`);
    await insert().catch(() => {});
    await insert();
  });

  test('with no connection to spare lets callers share those it gave', async () => {
    const { folder, databaseUrl } = await place(emptyName);
    const name = new URL(databaseUrl!).pathname.slice(1);
    await administer(address, `create role ${name} login connection limit 4`);
    await administer(address, `alter database ${name} owner to ${name}`);
    const url = new URL(databaseUrl!);
    url.username = name;
    const store = await open({ folder, databaseUrl: url.href });
    const all = await Promise.allSettled(Array.from({ length: 200 }, () => sql`select pg_sleep(0.005)`.execute(store.db)));
    expect(all.filter(({ status }) => status === 'rejected')).toEqual([]);
    await store.close();
    await administer(databaseUrl!, `reassign owned by ${name} to postgres; drop owned by ${name}; drop role ${name}`);
  });

  test('that takes no connection at all refuses those who wait, and serves once it does', async () => {
    const { folder, databaseUrl } = await place(emptyName);
    const name = new URL(databaseUrl!).pathname.slice(1);
    await administer(address, `create role ${name} login`);
    await administer(address, `alter database ${name} owner to ${name}`);
    const url = new URL(databaseUrl!);
    url.username = name;
    const store = await open({ folder, databaseUrl: url.href });
    await administer(address, `alter role ${name} connection limit 0`);
    await administer(address, `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${name}'`);
    const ask = () => sql`select 1`.execute(store.db);
    const outcome = () =>
      ask().then(
        () => 'served',
        ({ code }: { code: string }) => code,
      );
    expect(new Set(await Promise.all(Array.from({ length: 50 }, outcome)))).toEqual(new Set(['overloaded']));
    await administer(address, `alter role ${name} connection limit -1`);
    await expect.poll(outcome, { timeout: 30_000 }).toBe('served');
    await store.close();
    await administer(databaseUrl!, `reassign owned by ${name} to postgres; drop owned by ${name}; drop role ${name}`);
  }, 60_000);

  test('hears of changes on other machines, and after a gap is told to read again', async () => {
    const { store: there, proxy, told, direct } = await behindProxy(database);
    const here = await open({ folder: (await place()).folder, databaseUrl: direct });
    const heard: Change[] = [];
    there.subscribe('keys', (change) => heard.push(change));

    await here.transaction(({ publish }) => publish('keys', { revoked: 'ä' }));
    await here
      .transaction(async ({ publish }) => {
        await publish('keys', 'never');
        throw new Error('no');
      })
      .catch(() => {});
    await expect.poll(() => heard, { timeout: 30_000 }).toEqual([{ type: 'change', payload: { revoked: 'ä' } }]);

    for (const foreign of ['', 'no JSON', 'null', '7', '{}', '{"origin":1}']) await administer(direct, `select pg_notify('dragoman', '${foreign}')`);

    await proxy.set('refuse');
    await here.publish('keys', 'missed');
    await proxy.set('on');
    await expect.poll(() => heard.length, { timeout: 30_000 }).toBe(2);
    expect(heard[1]).toEqual({ type: 'reset' });
    await here.publish('keys', 'again');
    await expect.poll(() => heard.at(-1), { timeout: 30_000 }).toEqual({ type: 'change', payload: 'again' });

    await proxy.set('hang'); // no end is told, the heart just stops
    told.length = 0;
    await expect.poll(() => told, { timeout: 30_000 }).toContain('the change feed was lost');
    await proxy.set('refuse');
    await proxy.set('on');
    await expect.poll(() => heard.at(-1), { timeout: 30_000 }).toEqual({ type: 'reset' });
  }, 120_000);

  test('that is not there when it is opened is an error at once', async () => {
    const { folder } = await place();
    const since = performance.now();
    await expect(open({ folder, databaseUrl: 'postgres://postgres@127.0.0.1:1/none' })).rejects.toMatchObject({ code: 'overloaded' });
    expect(performance.now() - since).toBeLessThan(15_000);
  });

  test('leaves no connection behind when it is closed', async () => {
    const { folder, databaseUrl } = await place();
    const store = await open({ folder, databaseUrl: databaseUrl! });
    await Promise.all(Array.from({ length: 20 }, () => sql`select 1`.execute(store.db)));
    await store.close();
    const name = new URL(databaseUrl!).pathname.slice(1);
    const other = await open();
    const count = () => sql<{ n: number }>`select count(*) as n from pg_stat_activity where datname = ${name}`.execute(other.db);
    await expect.poll(async () => (await count()).rows).toEqual([{ n: 0 }]);
  });
});

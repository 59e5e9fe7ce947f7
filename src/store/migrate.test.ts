import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sql } from 'kysely';
import pg from 'pg';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { emptyName, onBothDatabases, onServer } from '../../test/support/databases.ts';
import { storeProcess } from '../../test/support/processes.ts';

/** A noun's folder with these files. */
async function migrations(files: Readonly<Record<string, string>>): Promise<URL & { write(name: string, text: string): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-migrations-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const write = (name: string, text: string) => writeFile(join(folder, name), text);
  for (const [name, text] of Object.entries(files)) await write(name, text);
  return Object.assign(pathToFileURL(`${folder}/`), { write });
}

async function isSleeping(databaseUrl: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rowCount } = await client.query("select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'");
    return rowCount === 1;
  } finally {
    await client.end();
  }
}

onBothDatabases('migrations', ({ name, open, place }) => {
  test('of several nouns run once, in the order of their names, and are recorded', async () => {
    const where = await place();
    const a = await migrations({
      '2026-01-02-b.sql': "insert into log values ('second'); insert into log values ('third');",
      '2026-01-01-a.sql': "create table log (text text); -- it's; $1",
    });
    const b = await migrations({ '2026-01-03-c.sql': "insert into log select 'fourth'" });
    const ran: object[] = [];
    const log = { info: (details: object) => void ran.push(details), warn() {}, error() {} };
    for (let start = 0; start < 3; start++) {
      const store = await open({ ...where, migrations: [b, a], log });
      expect((await sql`select text from log`.execute(store.db)).rows).toEqual([{ text: 'second' }, { text: 'third' }, { text: 'fourth' }]);
      await store.close();
    }
    expect(ran.filter((one) => JSON.stringify(one).includes('2026-01-0'))).toEqual(
      ['a', 'b', 'c'].map((one, at) => ({ migration: `2026-01-0${at + 1}-${one}.sql` })),
    );
  });

  test('that come late run though younger ones have run, and those of other folders are left alone', async () => {
    const where = await place();
    const first = await migrations({ '2026-01-02-b.sql': 'create table b ()' });
    await (await open({ ...where, migrations: [first] })).close();
    const second = await migrations({ '2026-01-01-a.sql': 'create table a ()' });
    const store = await open({ ...where, migrations: [second] });
    expect((await sql`select count(*) as n from a, b`.execute(store.db)).rows).toEqual([{ n: 0 }]);
  });

  test('of a newer version refuse an older one, which changes nothing; the newer one opens the database as before', async () => {
    const where = await place(emptyName);
    const newer = await migrations({ '2026-01-01-a.sql': 'create table a ()', '2026-01-02-b.sql': 'create table b ()' });
    await (await open({ ...where, migrations: [newer], areAll: true })).close();
    const older = await migrations({ '2026-01-01-a.sql': 'create table a ()', '2026-01-01-c.sql': 'create table c ()' });
    await expect(open({ ...where, migrations: [older], areAll: true })).rejects.toThrow(
      'A newer version of Dragoman has migrated the database (2026-01-02-b.sql), and this one cannot use it: install the newer version again, or restore the backup from before the upgrade.',
    );
    const store = await open({ ...where, migrations: [newer], areAll: true });
    expect((await sql`select to_regclass('c') as c`.execute(store.db)).rows).toEqual([{ c: null }]);
  });

  test('that were changed after they had run are refused by name; a changed end of line is no change', async () => {
    const where = await place();
    const folder = await migrations({ '2026-01-01-a.sql': 'create table a ();\n' });
    await (await open({ ...where, migrations: [folder] })).close();
    await folder.write('2026-01-01-a.sql', 'create table a ();\r\n');
    await (await open({ ...where, migrations: [folder] })).close();
    await folder.write('2026-01-01-a.sql', 'create table a (b text);\n');
    await expect(open({ ...where, migrations: [folder] })).rejects.toThrow(
      'The database was made by a state of Dragoman between two releases, which cannot be brought up to date (2026-01-01-a.sql has changed since).',
    );
  });

  test('that fail leave nothing of themselves, and what ran before stays', async () => {
    const where = await place();
    const folder = await migrations({ '2026-01-01-a.sql': 'create table a ()', '2026-01-02-b.sql': 'create table b (); select 1 / 0; create table c ()' });
    await expect(open({ ...where, migrations: [folder] })).rejects.toThrow('division by zero');
    await folder.write('2026-01-02-b.sql', 'create table b ()');
    const store = await open({ ...where, migrations: [folder] });
    expect(
      (await sql`select to_regclass('a') is not null as a, to_regclass('b') is not null as b, to_regclass('c') is not null as c`.execute(store.db)).rows,
    ).toEqual([{ a: true, b: true, c: false }]);
  });

  test('need a name with a date, and one of their own', async () => {
    const where = await place();
    await expect(open({ ...where, migrations: [await migrations({ 'a.sql': '' })] })).rejects.toThrow('is not named YYYY-MM-DD-name.sql');
    const twice = [await migrations({ '2026-01-01-a.sql': '' }), await migrations({ '2026-01-01-a.sql': '' })];
    await expect(open({ ...where, migrations: twice })).rejects.toThrow('There is a second migration 2026-01-01-a.sql');
  });

  test('cut off by kill -9 in the middle are whole after the next start', async () => {
    const where = await place();
    // each says in its own way that it is in the middle
    const stall = name === 'server' ? 'select pg_sleep(6)' : "copy (select 1) to '/pglite/data/middle'; select count(*) from generate_series(1, 100000000000)";
    const slow = `create table a (n integer); insert into a select generate_series(1, 1000); ${stall}`;
    const folder = await migrations({ '2026-01-01-a.sql': slow, '2026-01-02-b.sql': 'create table b ()' });
    const killed = storeProcess({ ...where, migrations: [folder.href], task: 'hold' });
    const isInTheMiddle = () => (where.databaseUrl === undefined ? existsSync(join(where.folder, 'database/middle')) : isSleeping(where.databaseUrl));
    await expect.poll(isInTheMiddle, { timeout: 30_000 }).toBe(true);
    expect(killed.said).toEqual([]);
    await killed.kill();
    await folder.write('2026-01-01-a.sql', 'create table a (n integer); insert into a select generate_series(1, 1000)');
    const store = await open({ ...where, migrations: [folder] });
    expect((await sql`select count(*) as n from a`.execute(store.db)).rows).toEqual([{ n: 1000 }]);
    expect((await sql`select count(*) as n from b`.execute(store.db)).rows).toEqual([{ n: 0 }]);
  }, 120_000);
});

const address = inject('postgres');

/** Nobody else can open an embedded folder. */
describe.skipIf(!address)('migrations of several machines', () => {
  const { place, open } = onServer(address ?? '');

  test('run once when eight machines start at once', async () => {
    const { folder, databaseUrl } = await place();
    const slow = await migrations({
      '2026-01-01-a.sql': 'create table a (n integer); select pg_sleep(0.2)',
      '2026-01-02-b.sql': 'insert into a values (1); select pg_sleep(0.1)',
    });
    const stores = await Promise.all(Array.from({ length: 8 }, () => open({ folder, databaseUrl: databaseUrl!, migrations: [slow] })));
    expect((await sql`select n from a`.execute(stores[0]!.db)).rows).toEqual([{ n: 1 }]);
    expect((await sql`select count(*) as n from migration where name like '2026-01%'`.execute(stores[7]!.db)).rows).toEqual([{ n: 2 }]);
  });
});

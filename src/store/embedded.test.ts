import { execFileSync, spawn } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { systemClock, type Clock } from '#kit/async/clock';
import { shippedImage, unpack } from '#store/empty-database';
import { silent } from '#store/log';
import type { Database } from '#store/open';
import { embedded } from '../../test/support/databases.ts';
import { storeProcess } from '../../test/support/processes.ts';

const { open, place, shared } = embedded;
const endless = (db: Database) => sql`select count(*) from generate_series(1, 100000000000)`.execute(db);
/** Waits end twenty times sooner. */
const hasty: Clock = { ...systemClock, after: (milliseconds, then) => systemClock.after(milliseconds / 20, then) };
const numbers = async (folder: string) => {
  const store = await open({ folder });
  const { rows } = await sql<{ n: number }>`select n from written order by n`.execute(store.db);
  await store.close();
  return rows.map(({ n }) => n);
};

describe('the data folder', () => {
  test('belongs to one process: a second is told the folder and who has it, and the first is not disturbed', async () => {
    const { folder } = await place();
    const first = storeProcess({ folder, task: 'write' });
    await first.until('open');
    const second = storeProcess({ folder, task: 'hold' });
    const refusal = await second.until('refused');
    expect(refusal).toContain(folder);
    expect(refusal).toContain(`process ${first.pid} `);
    expect(refusal).toContain('DRAGOMAN_DATA');
    expect(await second.ended).toBe(1);
    await expect(open({ folder })).rejects.toMatchObject({ code: 'conflict' });
    const before = first.said.length;
    await expect.poll(() => first.said.length).toBeGreaterThan(before);
  });

  test('is refused to a second store of the same process, and free again after close', async () => {
    const { folder } = await place();
    const store = await open({ folder });
    await expect(open({ folder })).rejects.toMatchObject({ code: 'conflict' });
    await store.close();
    await (await open({ folder })).ready();
  });

  test('is shut to other users of the machine', async () => {
    const { folder } = await place();
    await open({ folder: join(folder, 'data') });
    for (const name of ['data', 'data/database', 'data/database/PG_VERSION']) expect((await stat(join(folder, name))).mode & 0o077).toBe(0);
  });

  test('left half made by a kill is made anew', async () => {
    const { folder } = await place();
    await mkdir(join(folder, 'database.new/base'), { recursive: true });
    await writeFile(join(folder, 'database.new/PG_VERSION'), '18');
    await (await open({ folder })).ready();
    expect(existsSync(join(folder, 'database.new'))).toBe(false);
  });

  test('with a database whose file PG_VERSION is missing is refused in a sentence, and left as it is', async () => {
    const { folder } = await place();
    await mkdir(join(folder, 'database/base'), { recursive: true });
    await expect(open({ folder })).rejects.toThrow(/The embedded database in .* cannot be opened: its file PG_VERSION is missing/);
    expect(existsSync(join(folder, 'database.new'))).toBe(false);
    expect(existsSync(join(folder, 'database/base'))).toBe(true);
  });

  test('with a broken database is refused in a sentence, and left as it is', async () => {
    const { folder } = await place();
    await (await open({ folder })).close();
    const control = join(folder, 'database/global/pg_control');
    const broken = (await readFile(control)).fill(7, 0, 100);
    await writeFile(control, broken);
    await expect(open({ folder })).rejects.toThrow(/The embedded database in .* cannot be opened: .*(FATAL|PANIC)/);
    expect(await readFile(control)).toEqual(broken);
  });
});

describe('the embedded database', () => {
  const sharedStore = shared();

  test('loses no acknowledged commit to kill -9', async () => {
    const { folder } = await place();
    const acknowledged: number[] = [];
    for (let round = 0; round < 4; round++) {
      const from = round * 1_000_000;
      const writer = storeProcess({ folder, task: 'write', from });
      await writer.until(`${from + 20 + Math.floor(Math.random() * 300)}`);
      await writer.kill();
      acknowledged.push(...writer.said.filter((line) => line !== 'open').map(Number));
    }
    const kept = new Set(await numbers(folder));
    expect(acknowledged.filter((n) => !kept.has(n))).toEqual([]);
    expect(acknowledged.length).toBeGreaterThan(80);
  }, 120_000);

  test('whose thread ends in the middle of everything opens again by itself; who waited is told, and a transaction is never half there', async () => {
    const warnings: object[] = [];
    const store = await open({ log: { ...silent, warn: (details) => void warnings.push(details) } });
    await sql`create table t (n integer)`.execute(store.db);
    const half = store.long(0.4).transaction(async ({ db }) => {
      await sql`insert into t values (1)`.execute(db);
      await endless(db).catch(() => {});
      await sql`insert into t values (2)`.execute(db); // on the new thread it would be committed by itself
    });
    const waiting = Array.from({ length: 20 }, () => sql`select 1`.execute(store.db));
    await expect(half).rejects.toMatchObject({ code: 'overloaded', details: { retryAfter: 1 } });
    await expect
      .poll(
        () =>
          sql`select n from t`.execute(store.db).then(
            ({ rows }) => rows,
            () => 'away',
          ),
        { timeout: 30_000 },
      )
      .toEqual([]);
    expect(warnings).toEqual([{ reason: 'a statement took longer than 400 ms', lost: 1 }]);
    await Promise.all(waiting);
  });

  test('rolls back a transaction that is left waiting, and goes on with the others', async () => {
    const store = await open({ clock: hasty });
    await sql`create table t (n integer)`.execute(store.db);
    const forgotten = store.transaction(async ({ db }) => {
      await sql`insert into t values (1)`.execute(db);
      await expect
        .poll(
          () =>
            sql`select n from t`.execute(store.db).then(
              ({ rows }) => rows,
              () => 'busy',
            ),
          { timeout: 30_000 },
        )
        .toEqual([]);
      await sql`insert into t values (2)`.execute(db);
    });
    await expect(forgotten).rejects.toMatchObject({ code: 'overloaded' });
    expect((await sql`select n from t`.execute(store.db)).rows).toEqual([]);
  });

  test('waits its turn in order: single statements go around a transaction, not into it', async () => {
    const store = sharedStore();
    await sql`create table t (n integer)`.execute(store.db);
    const order: string[] = [];
    const transaction = store.transaction(async ({ db }) => {
      await sql`insert into t values (1)`.execute(db);
      for (let n = 0; n < 20; n++) await sql`select 1`.execute(db); // time enough to come between
      await sql`insert into t values (2)`.execute(db);
      order.push('transaction');
    });
    const outside = sql<{ n: number }>`select count(*)::int as n from t`.execute(store.db).then(({ rows }) => order.push(`saw ${rows[0]!.n}`));
    await Promise.all([transaction, outside]);
    expect(order.join()).toMatch(/^(saw 0,transaction|transaction,saw 2)$/);
  });

  test('answers a quick statement before the slow one behind it, and spares it that one’s deadline', async () => {
    const store = await open();
    const order: string[] = [];
    const quick = sql`select 1`.execute(store.long(2).db).then(() => order.push('quick'));
    const slow = sql`select pg_sleep(3)`.execute(store.long(60).db).then(() => order.push('slow'));
    await quick;
    expect(order).toEqual(['quick']);
    await slow;
  });

  test('gives every caller its own answer, also after a parameter that cannot be sent', async () => {
    const store = sharedStore();
    const circle: Record<string, unknown> = {};
    circle['itself'] = circle;
    const ask = async (n: number) => (await sql<{ n: number }>`select ${n}::int4 as n`.execute(store.db)).rows[0]!.n;
    const answers = await Promise.all(
      Array.from({ length: 300 }, async (_, n) => {
        if (n % 10 === 0) await expect(sql`select ${circle}::jsonb`.execute(store.db)).rejects.toThrow(TypeError);
        return ask(n);
      }),
    );
    expect(answers).toEqual(Array.from({ length: 300 }, (_, n) => n));
  });

  test('keeps its journal short by itself', async () => {
    const { folder } = await place();
    const store = await open({ folder });
    await sql`create table t (text text)`.execute(store.db);
    for (let round = 0; round < 4; round++) await sql`insert into t select repeat('x', 500) from generate_series(1, 100000)`.execute(store.db);
    const journal = () => globSync(join(folder, 'database/pg_wal/0*')).length * 4;
    await expect.poll(journal, { timeout: 30_000, interval: 200 }).toBeLessThan(100); // MB, of 220 written
  }, 120_000);

  test('starts from an image that the installed PGlite has made', async () => {
    const { folder } = await place();
    const { madeBy } = await unpack(await readFile(shippedImage), join(folder, 'image'));
    const store = sharedStore();
    expect((await sql`select version()`.execute(store.db)).rows).toEqual([{ version: madeBy }]);
  });

  test('has no other database whose age would stop it', async () => {
    const store = sharedStore();
    expect((await sql`select datname from pg_database`.execute(store.db)).rows).toEqual([{ datname: 'postgres' }]);
  });

  test('has pgvector', async () => {
    const store = sharedStore();
    await sql`create extension if not exists vector`.execute(store.db);
    expect((await sql`select '[1,0]'::vector <=> '[0,1]'::vector as distance`.execute(store.db)).rows).toEqual([{ distance: 1 }]);
  });

  test('syncs to the disk what it commits', async () => {
    const { folder } = await place();
    const log = join(folder, 'calls');
    try {
      execFileSync('strace', ['-V'], { stdio: 'ignore' });
    } catch {
      return process.emitWarning('strace is not installed here: not seen whether the embedded database syncs.');
    }
    const writer = storeProcess({ folder, task: 'write' });
    await writer.until('10');
    const before = writer.said.length;
    // Its lines are read meanwhile: when nobody does, it stops to write after some hundred, on a busy machine before strace is there.
    const strace = spawn('strace', ['-f', '-e', 'trace=fdatasync', '-p', `${writer.pid}`, '-o', log], { stdio: 'ignore' });
    await expect.poll(() => readFile(log, 'utf8').catch(() => ''), { timeout: 60_000 }).toContain('fdatasync(');
    strace.kill('SIGINT');
    await writer.kill();
    expect(writer.said.length).toBeGreaterThan(before);
  });
});

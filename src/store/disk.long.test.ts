import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, describe, expect, test } from 'vitest';
import { systemClock, type Clock } from '#kit/async/clock';
import { folderBlobs } from '#store/blobs';
import { embedded } from '../../test/support/databases.ts';

const small = mount(80);
afterAll(async () => {
  if (!small) return;
  execFileSync('umount', ['-l', small]);
  await rmdir(small);
});

/** A disk of this many megabytes, where this user may mount one. */
function mount(megabytes: number): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder], { stdio: 'ignore' });
    return folder;
  } catch {
    process.emitWarning('A small disk cannot be mounted here: the tests of a full one are skipped.');
    return undefined;
  }
}

describe.skipIf(!small)('a full disk', () => {
  const folder = join(small ?? '', 'data');

  test('costs no committed row: writes are refused as overloaded, reads go on, and all is well again by itself when there is room', async () => {
    const told: string[] = [];
    const log = { info: () => {}, warn: (_: object, text: string) => void told.push(text), error: (_: object, text: string) => void told.push(text) };
    const ballast = (name: string, bytes: number) => writeFile(join(small!, name), Buffer.alloc(bytes)).catch(() => {}); // as much as there is room for
    await ballast('first', 25e6);
    const store = await embedded.open({ folder, log });
    await sql`create table t (n integer primary key, text text)`.execute(store.db);
    const kept: number[] = [];
    const write = async (n: number) => {
      await sql`insert into t select ${n}, string_agg(md5(random()::text), '') from generate_series(1, 3000)`.execute(store.db);
      kept.push(n);
      return 'written';
    };
    const codeOf = (error: { code?: unknown }) => error.code;
    const rows = () => sql<{ n: number }>`select n from t order by n`.execute(store.db).then(({ rows }) => rows.map(({ n }) => n), codeOf);

    // it fills little by little
    const outcomes = new Set<unknown>();
    for (let n = 0; outcomes.size < 2 && n < 2000; n++) outcomes.add(await write(n).catch(codeOf));
    expect([...outcomes]).toEqual(['written', 'overloaded']);
    await expect.poll(rows, { timeout: 30_000 }).toEqual(kept);

    // and from one moment to the next, while it is written to
    await rm(join(small!, 'first'));
    await expect.poll(() => write(3000).catch(codeOf), { timeout: 30_000 }).toBe('written');
    const writing = (async () => {
      for (let n = 4000; n < 6000; n++) if ((await write(n).catch(codeOf)) !== 'written') return;
    })();
    await ballast('second', 100e6);
    await writing;
    await expect.poll(rows, { timeout: 30_000 }).toEqual(kept);
    await expect.poll(() => told, { timeout: 30_000 }).toContain('the disk is full: the database only reads');
    expect(await write(7000).catch(codeOf)).toBe('overloaded');

    await rm(join(small!, 'second'));
    await expect.poll(() => write(8000).catch(codeOf), { timeout: 30_000 }).toBe('written');
    expect(await rows()).toEqual(kept);
    expect(told).toContain('the disk has room again');
    await store.close();
  }, 120_000);

  test('that ends the database’s thread loses no committed row either', async () => {
    const told: object[] = [];
    const log = { info: () => {}, warn: (details: object) => void told.push(details), error: (details: object) => void told.push(details) };
    const blind: Clock = { ...systemClock, after: (milliseconds, then) => (milliseconds === 1000 ? () => {} : systemClock.after(milliseconds, then)) }; // nobody looks at the room
    const store = await embedded.open({ folder, log, clock: blind });
    await sql`drop table if exists t`.execute(store.db);
    await sql`create table u as select n, 0 as changed, repeat('x', 200) as text from generate_series(1, 20000) n`.execute(store.db);
    await sql`checkpoint`.execute(store.long(60).db);
    await writeFile(join(small!, 'second'), Buffer.alloc(100e6)).catch(() => {});
    let changed = 0;
    for (let round = 1; round < 500 && told.length === 0; round++) {
      await sql`update u set changed = ${round} where n = 1`.execute(store.db).then(
        () => (changed = round),
        () => {},
      );
      await sql`select pg_logical_emit_message(true, '', repeat('x', 1000000))`.execute(store.db).catch(() => {}); // grows the journal alone
    }
    expect(told[0]).toMatchObject({ reason: expect.stringMatching(/PANIC.*No space left/) });
    const read = () =>
      sql<{ n: number; changed: number }>`select count(*) as n, max(changed) as changed from u`.execute(store.db).then(
        ({ rows }) => rows[0],
        () => 'away',
      );
    await rm(join(small!, 'second'));
    await expect.poll(read, { timeout: 30_000 }).toEqual({ n: 20_000, changed });
    await expect
      .poll(
        () =>
          sql`update u set changed = -1 where n = 1`.execute(store.db).then(
            () => 'written',
            () => 'away',
          ),
        { timeout: 120_000 },
      )
      .toBe('written');
  }, 120_000);

  test('refuses a blob as overloaded and keeps nothing of it', async () => {
    const blobs = await folderBlobs(join(small!, 'blobs'), systemClock);
    await expect(blobs.put(Buffer.alloc(200e6), 1e9)).rejects.toMatchObject({ code: 'overloaded' });
    expect((await blobs.put(Buffer.from('small'), 10)).size).toBe(5);
  });
});

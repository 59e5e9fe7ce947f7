import { mkdtemp, rm, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock, type Clock } from '#kit/async/clock';
import { requireRoom, sweepBlobs, type BlobColumn } from '#store/blob-rows';
import { folderBlobs } from '#store/blobs';
import { silent } from '#store/log';
import { onBothDatabases } from '../../test/support/databases.ts';

const columns: readonly BlobColumn[] = [
  { table: 'kept', blob: 'blob', bytes: 'bytes', user: 'user_id', gone: 'deleted_at' },
  { table: 'kept', blob: 'next_blob', bytes: 'next_bytes', user: 'user_id', gone: 'deleted_at' },
];

onBothDatabases('rows that name blobs', ({ shared }) => {
  const store = shared();
  const fresh = async () => {
    await sql`drop table if exists kept`.execute(store().db);
    await sql`create table kept (user_id bigint, blob text, bytes bigint, next_blob text, next_bytes bigint, deleted_at timestamptz)`.execute(store().db);
  };
  const keep = (userId: number, blob: string, bytes: number, most: number | undefined) =>
    store().transaction(async (inside) => {
      await requireRoom(inside, columns, { userId, blob, bytes, most });
      await sql`insert into kept (user_id, next_blob, next_bytes) values (${userId}, ${blob}, ${bytes})`.execute(inside.db);
    });

  test('a user has room for so many bytes, each content counted once; what is deleted takes none', async () => {
    await fresh();
    await keep(1, 'a', 60, 100);
    await keep(1, 'a', 60, 100);
    await keep(2, 'c', 60, 100);
    await expect(keep(1, 'b', 41, 100)).rejects.toMatchObject({ code: 'too-large', details: { field: 'file' } });
    await keep(1, 'b', 40, 100);
    await keep(1, 'd', 1000, undefined);
    await expect(keep(3, 'e', 1, 0)).rejects.toMatchObject({ code: 'too-large' });
    await sql`update kept set blob = next_blob, bytes = next_bytes, next_blob = null, next_bytes = null, deleted_at = case when next_blob <> 'b' then now() end`.execute(
      store().db,
    );
    await keep(1, 'f', 60, 100);
    await expect(keep(1, 'g', 1, 100)).rejects.toMatchObject({ code: 'too-large' });
  });

  test('twenty at once do not get more room than there is', async () => {
    await fresh();
    const all = await Promise.allSettled(Array.from({ length: 20 }, (_, at) => keep(1, `blob ${at}`, 10, 50)));
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
  });

  test('within the hour a file that no row names is gone, and one that is named or young stays', async () => {
    await fresh();
    const folder = await mkdtemp(join(tmpdir(), 'dragoman-sweep-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const timers: (() => void)[] = [];
    const clock: Clock = { ...systemClock, after: (_, then) => (timers.push(then), () => {}) };
    const blobs = await folderBlobs(folder, clock);
    const put = async (text: string, isOld: boolean) => {
      const { id } = await blobs.put(Buffer.from(text), 100);
      if (isOld) await utimes(join(folder, id.slice(0, 2), id.slice(2, 4), id), 0, Date.now() / 1000 - 3600);
      return id;
    };
    const [named, coming, orphan, young] = [await put('named', true), await put('coming', true), await put('orphan', true), await put('young', false)];
    await sql`insert into kept (user_id, blob, next_blob) values (1, ${named}, ${coming})`.execute(store().db);
    const end = sweepBlobs({ blobs, store: store(), columns, clock, log: silent });
    timers.shift()!();
    await expect.poll(() => timers.length).toBe(1);
    for (const id of [named, coming, young]) (await blobs.get(id)).content.destroy();
    await expect(blobs.get(orphan)).rejects.toMatchObject({ code: 'not-found' });
    end();
  });
});

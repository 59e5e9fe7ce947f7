import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { Database, Store } from '#store/open';
import { emptyName, onBothDatabases } from '../../../../test/support/databases.ts';
import { lexicalRanks } from './lexical.ts';
import { openPassageIndex } from './passage-index.ts';
import { scopeOf } from './scope.ts';
import { callerOf, filed, migrations, newDataset, newFile, newUser } from '../../../../test/support/datasets.ts';
import type { Chunk } from './types.ts';

const chunksOf = (texts: readonly string[]): Chunk[] =>
  texts.map((text, ordinal) => ({ ordinal, start: 100 * ordinal, end: 100 * ordinal + text.length, page: null, context: '', quote: text, text, tokens: 10 }));

/** Six hundred passages, which are three parts: `heron` is in all, other words in some, and more than once. */
const passages = chunksOf(
  Array.from({ length: 600 }, (_, at) => `The heron ${at} ${at % 3 === 0 ? 'nests nests' : 'fishes'} by quay ${at % 7}. ${'Reeds. '.repeat(at % 4)}`),
);

async function put(store: Store, file: { datasetId: number; fileId: number }, pieces: readonly (readonly Chunk[])[]): Promise<void> {
  const index = openPassageIndex(store);
  for (const chunks of pieces) await store.transaction((inside) => index.add(inside, { ...file, generation: 1, language: 'en', chunks }));
  await store.transaction((inside) => index.flip(inside, { fileId: file.fileId, generation: 1 }));
}

async function rowsOf(db: Database, fileId: number): Promise<unknown> {
  const { rows } = await sql`
    select term, part, ordinals, codes from postings where edition_id in (select id from editions where file_id = ${fileId}) order by term collate "C", part`.execute(
    db,
  );
  return rows;
}

onBothDatabases('postings', ({ open, place }) => {
  test('are the same in whatever pieces the passages of a file are added, each perhaps twice', { timeout: 120_000 }, async () => {
    const store = await open({ migrations });
    const { id: datasetId } = await newDataset(store, await newUser(store));
    const [whole, cut] = [await newFile(store, datasetId), await newFile(store, datasetId)];
    await put(store, { datasetId, fileId: whole }, [passages]);
    const pieces = Array.from({ length: 10 }, (_, at) => passages.slice(64 * at, 64 * at + 64));
    await put(store, { datasetId, fileId: cut }, [pieces[0]!, ...pieces, pieces[9]!]);
    const [one, other] = [await rowsOf(store.db, whole), await rowsOf(store.db, cut)];
    expect(one).toHaveLength(629); // 600 numbers, of which 7 are in three parts, and 5 words that are in all three
    expect(other).toEqual(one);
  });

  test('of a word that 60,000 passages have come in several pieces, of which none is lost', { timeout: 120_000 }, async () => {
    const store = await open({ migrations });
    const user = await newUser(store);
    const { id: datasetId } = await newDataset(store, user);
    const fileId = await newFile(store, datasetId);
    await put(store, { datasetId, fileId }, [chunksOf(['The heron nests.'])]);
    const [edition] = (await sql<{ id: number }>`update editions set passages = 60000, terms = 120000 where file_id = ${fileId} returning id`.execute(store.db))
      .rows;
    await sql`
      insert into passages (edition_id, ordinal, start, "end", context, quote, tokens)
      select ${edition!.id}, ordinal, ordinal, ordinal, '', 'heron', 1 from generate_series(1, 59999) as ordinal`.execute(store.db);
    await sql`delete from postings where edition_id = ${edition!.id}`.execute(store.db);
    // the later a passage stands, the shorter it is
    await sql`
      insert into postings
      select 'heron', ${datasetId}, ${edition!.id}, ordinal >> 8, string_agg(substring(int2send((ordinal & 255)::smallint) from 2), ''::bytea order by ordinal),
        string_agg(substring(int4send(4000 - ordinal / 20) from 3), ''::bytea order by ordinal)
      from generate_series(0, 59999) as ordinal group by ordinal >> 8`.execute(store.db);
    const scope = await scopeOf(store.db, { caller: callerOf(user), datasets: 'all' });
    const found = await lexicalRanks(store.db, scope, 'Which heron?', 100);
    expect(found.map(({ ordinal }) => ordinal).toSorted((one, other) => one - other)).toEqual(
      [59_980, 59_960, 59_940, 59_920, 59_900].toReversed().flatMap((from) => Array.from({ length: 20 }, (_, at) => from + at)),
    );
  });

  test('have the beginning of a word that is longer than a row has room for', { timeout: 120_000 }, async () => {
    const store = await open({ migrations });
    const user = await newUser(store);
    const { id: datasetId } = await newDataset(store, user);
    const long = `ab${randomBytes(900).toString('hex')}`;
    const fileId = await newFile(store, datasetId);
    await put(store, { datasetId, fileId }, [chunksOf(Array.from({ length: 300 }, (_, at) => `${long} ${at}`))]);
    const scope = await scopeOf(store.db, { caller: callerOf(user), datasets: 'all' });
    expect(await lexicalRanks(store.db, scope, `What is ${long}?`, 10)).toHaveLength(10);
    expect(await lexicalRanks(store.db, scope, `What is ${long.slice(0, 250)}?`, 10)).toEqual([]);
  });

  test('come from a database of an earlier release, which had a row for each', { timeout: 120_000 }, async () => {
    const at = await place(emptyName);
    const store = await open({ ...at, migrations });
    const user = await newUser(store);
    const { id: datasetId } = await newDataset(store, user);
    const fileId = await newFile(store, datasetId);
    await put(store, { datasetId, fileId }, [passages]);
    await filed(store, openPassageIndex(store), { datasetId, fileId: await newFile(store, datasetId), text: 'Ein Reiher nistet. 会議室の予約' });
    const ask = async ({ db }: Store) => lexicalRanks(db, await scopeOf(db, { caller: callerOf(user), datasets: 'all' }), 'Which heron nests by quay 3?', 100);
    const before = { rows: await rowsOf(store.db, fileId), found: await ask(store) };
    expect(before.found).toHaveLength(100);

    const made = await Promise.all(
      ['2026-11-30-passages', '2026-12-06-posting-order'].map((name) => readFile(new URL(`./${name}.sql`, import.meta.url), 'utf8')),
    );
    const [, table] = /(create table posting \([^;]*;[^;]*;[^;]*;)/.exec(made[0]!)!;
    for (const statement of [table!, made[1]!]) await sql.raw(statement).execute(store.db);
    await sql`
      insert into posting
      select dataset_id, edition_id, passages.id, term, get_byte(codes, 2 * place) / 16 + 1,
        get_byte(codes, 2 * place) % 16 * 256 + get_byte(codes, 2 * place + 1)
      from postings cross join generate_series(0, length(ordinals) - 1) as place
      join passages using (edition_id) where passages.ordinal = part * 256 + get_byte(ordinals, place)`.execute(store.db);
    await sql`drop table postings`.execute(store.db);
    await sql`delete from migration where name = '2026-12-09-postings.sql'`.execute(store.db);
    await store.close();

    const again = await open({ ...at, migrations });
    expect({ rows: await rowsOf(again.db, fileId), found: await ask(again) }).toEqual(before);
  });
});

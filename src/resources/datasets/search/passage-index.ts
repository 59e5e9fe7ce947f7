import { sql } from 'kysely';
import { Fault } from '#core/fault';
import type { Database, Store } from '#store/open';
import { copyEdition } from './copy-edition.ts';
import { countsOf, editionOf, textOf } from './editions.ts';
import type { NewPassages, PassageIndex, VectorModel } from './types.ts';
import { byte, codeOf, partPassages } from './postings.ts';
import { openVectorTables, tableName, type VectorTable, type VectorTables } from './vector-tables.ts';
import { columnValue, unit } from './vectors.ts';
import { configurationOf, wordsOf } from './words.ts';
import { repeatUntilFewer } from '#store/pieces';

const pieceRows = 5000;

/** The passages of files in the database: see `PassageIndex`. */
export function openPassageIndex(store: Store, tables: VectorTables = openVectorTables(store)): PassageIndex {
  return {
    async prepare(vectors) {
      await tables.make(vectors);
    },
    async add({ db }, passages) {
      const edition = await editionOf(db, passages);
      await addPassages(db, edition, passages);
      const { vectors, chunks } = passages;
      if (vectors) await addVectors(db, await madeTable(db, tables, vectors), edition, new Map(chunks.map(({ ordinal }, at) => [ordinal, vectors.of[at]!])));
    },
    async addVectors({ db }, { of, ...file }) {
      const { rows } = await sql<{ id: number }>`select id from editions where file_id = ${file.fileId} and generation = ${file.generation}`.execute(db);
      if (rows[0]) await addVectors(db, await madeTable(db, tables, file), rows[0].id, of);
    },
    async texts({ fileId, generation }, from, limit) {
      const { rows } = await sql<{ ordinal: number; context: string; quote: string }>`
        select ordinal, context, quote from passages
        where edition_id = (select id from editions where file_id = ${fileId} and generation = ${generation}) and ordinal >= ${from}
        order by ordinal limit ${limit}`.execute(store.db);
      return rows.map(({ ordinal, context, quote }) => ({ ordinal, text: textOf(context, quote.trim()) }));
    },
    async flip(inside, file) {
      const { numAffectedRows } = await sql`update dataset_files set generation = ${file.generation} where id = ${file.fileId}`.execute(inside.db);
      if (!numAffectedRows) throw new Fault('not-found', 'There is no such file.');
      return countsOf(inside, file);
    },
    counts: countsOf,
    copy: (from, to) => copyEdition(store, tables, from.fileId, to),
    async remove({ fileId, exceptGeneration = -1 }) {
      const { rows } = await sql<{ id: number }>`select id from editions where file_id = ${fileId} and generation <> ${exceptGeneration}`.execute(store.db);
      for (const { id } of rows) await removeEdition(store, tables, id);
    },
    async removeVectors(datasetId, vectors) {
      const table = await tables.find(vectors);
      if (!table) return;
      const some = sql`
        select passage_id from ${tableName(table)} where edition_id in (select id from editions where dataset_id = ${datasetId})
          and not exists (select from datasets where id = ${datasetId} and deleted_at is null and (building_model = ${vectors.model}
            or (embedding_model = ${vectors.model} and coalesce(embedding_dimensions, ${vectors.dimensions}) = ${vectors.dimensions})))
        limit ${pieceRows}`;
      await repeatUntilFewer(sql`delete from ${tableName(table)} where passage_id = any(array(${some}))`, store.db, pieceRows);
    },
    async reconcile() {
      const { rows } = await sql<{ id: number }>`
        select id from editions where not exists (select from dataset_files where dataset_files.id = file_id and dataset_files.dataset_id = editions.dataset_id)
        order by id limit 10000`.execute(store.db);
      for (const { id } of rows) await removeEdition(store, tables, id);
      return rows.length;
    },
  };
}

async function madeTable(db: Database, tables: VectorTables, vectors: VectorModel): Promise<VectorTable> {
  const table = await tables.find(vectors, db);
  if (!table) throw new TypeError(`The vectors of ${vectors.model} have no table: prepare makes it.`);
  return table;
}

/** What has the same ordinal stays as it is. */
async function addPassages(db: Database, edition: number, { datasetId, language, chunks }: NewPassages): Promise<void> {
  await sql`
    with given as (
      select * from unnest(
        ${chunks.map(({ ordinal }) => ordinal)}::int[], ${chunks.map(({ page }) => page)}::int[], ${chunks.map(({ start }) => start)}::int[],
        ${chunks.map(({ end }) => end)}::int[], ${chunks.map(({ context }) => clean(context))}::text[], ${chunks.map(({ quote }) => clean(quote))}::text[],
        ${chunks.map(({ tokens }) => tokens)}::int[], ${chunks.map(({ text }) => wordsOf(text))}::text[]
      ) as given (ordinal, page, start, "end", context, quote, tokens, words)
    ), added as (
      insert into passages (edition_id, ordinal, page, start, "end", context, quote, tokens)
      select ${edition}::bigint, ordinal, page, start, "end", context, quote, tokens from given order by ordinal
      on conflict (edition_id, ordinal) do nothing returning ordinal, tokens
    ), term as materialized (
      select ordinal, lexeme, cardinality(positions) as tf, sum(cardinality(positions)) over (partition by ordinal) as len
      from added join given using (ordinal), unnest(to_tsvector(${configurationOf(language)}::text::regconfig, given.words))
    ), posted as (
      insert into postings (term, dataset_id, edition_id, part, ordinals, codes)
      select lexeme, ${datasetId}::bigint, ${edition}::bigint, ordinal / ${sql.lit(partPassages)},
        string_agg(${byte(sql`ordinal % ${sql.lit(partPassages)}`)}, ''::bytea order by ordinal),
        string_agg(${codeOf(sql`tf`, sql`len`)}, ''::bytea order by ordinal)
      from term group by lexeme, ordinal / ${sql.lit(partPassages)}
      on conflict (term, dataset_id, edition_id, part) do update set ordinals = postings.ordinals || excluded.ordinals, codes = postings.codes || excluded.codes
    )
    update editions set
      passages = passages + (select count(*) from added),
      tokens = editions.tokens + (select coalesce(sum(tokens), 0) from added),
      terms = terms + (select coalesce(sum(tf), 0) from term)
    where id = ${edition} and exists (select from added)`.execute(db);
}

async function addVectors(db: Database, table: VectorTable, edition: number, of: ReadonlyMap<number, readonly number[] | Float32Array>): Promise<void> {
  const given = [...of].flatMap(([ordinal, vector]) => {
    if (vector.length !== table.dimensions) throw new TypeError(`A vector has ${vector.length} dimensions and not ${table.dimensions}.`);
    const made = unit(vector);
    return made ? [{ ordinal, value: columnValue(table, made) }] : [];
  });
  await sql`
    insert into ${tableName(table)} (passage_id, edition_id, vector)
    select passages.id, ${edition}::bigint, given.value::${sql.raw(table.kind === 'vector' ? 'vector' : 'bytea')}
    from unnest(${given.map(({ ordinal }) => ordinal)}::int[], ${given.map(({ value }) => value)}::text[]) as given (ordinal, value)
    join passages on passages.edition_id = ${edition} and passages.ordinal = given.ordinal
    on conflict (passage_id) do nothing`.execute(db);
}

async function removeEdition(store: Store, tables: VectorTables, edition: number): Promise<void> {
  for (const table of await tables.all()) {
    const name = tableName(table);
    const some = sql`select passage_id from ${name} where edition_id = ${edition} limit ${pieceRows}`;
    await repeatUntilFewer(sql`delete from ${name} where passage_id = any(array(${some}))`, store.db, pieceRows);
  }
  for (const name of [sql.table('postings'), sql.table('passages')]) {
    const some = sql`select ctid from ${name} where edition_id = ${edition} limit ${pieceRows}`;
    await repeatUntilFewer(sql`delete from ${name} where ctid = any(array(${some}))`, store.db, pieceRows);
  }
  await sql`delete from editions where id = ${edition} and not exists (select from passages where edition_id = ${edition})`.execute(store.db);
}

/** PostgreSQL has no U+0000; the length stays. */
const clean = (text: string) => text.replaceAll('\0', '\ufffd');

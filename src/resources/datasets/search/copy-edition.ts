import { sql } from 'kysely';
import { Fault } from '#core/fault';
import type { Access, Store } from '#store/open';
import { countsOf, editionOf } from './editions.ts';
import type { FileGeneration, GenerationCounts } from './types.ts';
import { tableName, type VectorTable, type VectorTables } from './vector-tables.ts';

const pieceRows = 256;

interface Source {
  readonly id: number;
  readonly language: string;
  readonly passages: number;
}

/** Copies the generation that counts of one file, with words and vectors, as a generation of another. @throws Fault `conflict` where it is removed meanwhile */
export async function copyEdition(
  store: Store,
  tables: VectorTables,
  from: number,
  to: FileGeneration & { readonly datasetId: number },
): Promise<GenerationCounts> {
  const { rows } = await sql<Source>`
    select editions.id, language, editions.passages from editions join dataset_files on dataset_files.id = file_id and dataset_files.generation = editions.generation
    where file_id = ${from}`.execute(store.db);
  const source = rows[0];
  if (!source) throw new Fault('conflict', 'The file has no passages to copy yet.');
  const kinds = await tables.all();
  for (let at = 0; at < source.passages; at += pieceRows) await store.transaction((inside) => copyPiece(inside, kinds, { source, to, at }));
  const counts = await countsOf(store, to);
  if (counts.passages !== source.passages) throw new Fault('conflict', 'The file was changed while it was copied.');
  return counts;
}

async function copyPiece(
  { db }: Access,
  kinds: readonly VectorTable[],
  { source, to, at }: { source: Source; to: FileGeneration & { readonly datasetId: number }; at: number },
): Promise<void> {
  const edition = await editionOf(db, { ...to, language: source.language });
  const { rows } = await sql<{ old: number; made: number }>`
    with piece as (select * from passages where edition_id = ${source.id} and ordinal >= ${at} and ordinal < ${at + pieceRows}),
    added as (
      insert into passages (edition_id, ordinal, page, start, "end", context, quote, tokens)
      select ${edition}::bigint, ordinal, page, start, "end", context, quote, tokens from piece order by ordinal
      on conflict (edition_id, ordinal) do nothing returning id, ordinal
    ) select piece.id as old, added.id as made from piece join added using (ordinal)`.execute(db);
  if (rows.length === 0) return;
  const pairs = sql`unnest(${rows.map(({ old }) => old)}::bigint[], ${rows.map(({ made }) => made)}::bigint[]) as pair (old, made)`;
  await sql`
    with posted as (
      insert into posting (dataset_id, edition_id, passage_id, term, tf, len)
      select ${to.datasetId}::bigint, ${edition}::bigint, pair.made, term, tf, len from posting join ${pairs} on passage_id = pair.old
      where posting.edition_id = ${source.id} returning tf
    )
    update editions set passages = passages + ${rows.length}, terms = terms + (select coalesce(sum(tf), 0) from posted),
      tokens = tokens + (select coalesce(sum(passages.tokens), 0) from passages join ${pairs} on passages.id = pair.made)
    where id = ${edition}`.execute(db);
  for (const table of kinds)
    await sql`
      insert into ${tableName(table)} (passage_id, edition_id, vector)
      select pair.made, ${edition}::bigint, vector from ${tableName(table)} join ${pairs} on passage_id = pair.old on conflict (passage_id) do nothing`.execute(
      db,
    );
}

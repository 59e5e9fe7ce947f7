import { sql } from 'kysely';
import { Fault } from '#core/fault';
import type { Access, Store } from '#store/open';
import { countsOf, editionOf } from './editions.ts';
import { partPassages } from './postings.ts';
import type { FileGeneration, GenerationCounts } from './types.ts';
import { tableName, type VectorTable, type VectorTables } from './vector-tables.ts';

interface Source {
  readonly id: number;
  readonly language: string;
  readonly passages: number;
  readonly terms: number;
}

/** Copies the generation that counts of one file, with words and vectors, as a generation of another. @throws Fault `conflict` where it is removed meanwhile */
export async function copyEdition(
  store: Store,
  tables: VectorTables,
  from: number,
  to: FileGeneration & { readonly datasetId: number },
): Promise<GenerationCounts> {
  const { rows } = await sql<Source>`
    select editions.id, language, editions.passages, editions.terms from editions join dataset_files on dataset_files.id = file_id and dataset_files.generation = editions.generation
    where file_id = ${from}`.execute(store.db);
  const source = rows[0];
  if (!source) throw new Fault('conflict', 'The file has no passages to copy yet.');
  const kinds = await tables.all();
  for (let at = 0; at < source.passages; at += partPassages) await store.transaction((inside) => copyPiece(inside, kinds, { source, to, at }));
  await sql`update editions set terms = ${source.terms} where file_id = ${to.fileId} and generation = ${to.generation}`.execute(store.db);
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
    with piece as (select * from passages where edition_id = ${source.id} and ordinal >= ${at} and ordinal < ${at + partPassages}),
    added as (
      insert into passages (edition_id, ordinal, page, start, "end", context, quote, tokens)
      select ${edition}::bigint, ordinal, page, start, "end", context, quote, tokens from piece order by ordinal
      on conflict (edition_id, ordinal) do nothing returning id, ordinal
    ) select piece.id as old, added.id as made from piece join added using (ordinal)`.execute(db);
  if (rows.length === 0) return;
  const pairs = sql`unnest(${rows.map(({ old }) => old)}::bigint[], ${rows.map(({ made }) => made)}::bigint[]) as pair (old, made)`;
  await sql`
    with posted as (
      insert into postings (term, dataset_id, edition_id, part, ordinals, codes)
      select term, ${to.datasetId}::bigint, ${edition}::bigint, part, ordinals, codes from postings
      where edition_id = ${source.id} and part = ${at / partPassages}::int
    )
    update editions set passages = passages + ${rows.length},
      tokens = tokens + (select coalesce(sum(passages.tokens), 0) from passages join ${pairs} on passages.id = pair.made)
    where id = ${edition}`.execute(db);
  for (const table of kinds)
    await sql`
      insert into ${tableName(table)} (passage_id, edition_id, vector)
      select pair.made, ${edition}::bigint, vector from ${tableName(table)} join ${pairs} on passage_id = pair.old on conflict (passage_id) do nothing`.execute(
      db,
    );
}

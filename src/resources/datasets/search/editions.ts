import { sql } from 'kysely';
import { Fault } from '#core/fault';
import type { Access, Database } from '#store/open';
import type { FileGeneration, GenerationCounts, NewPassages } from './types.ts';

/**
 * The id of a generation, which is made where there is none. To be called in a transaction: the lock keeps the file from being deleted before it ends, so that
 * a deletion finds everything that was added.
 * @throws Fault `not-found` where the file was deleted
 */
export async function editionOf(db: Database, { datasetId, fileId, generation, language }: Omit<NewPassages, 'chunks'>): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    with file as (select id from dataset_files where id = ${fileId} and deleted_at is null for share)
    insert into editions (dataset_id, file_id, generation, language) select ${datasetId}::bigint, id, ${generation}::int, ${language}::text from file
    on conflict (file_id, generation) do update set language = editions.language returning id`.execute(db);
  if (!rows[0]) throw new Fault('not-found', 'The file was deleted.');
  return rows[0].id;
}

/** Of a generation; zeros where there is none. */
export async function countsOf({ db }: Pick<Access, 'db'>, { fileId, generation }: FileGeneration): Promise<GenerationCounts> {
  const { rows } = await sql<GenerationCounts>`select passages, tokens from editions where file_id = ${fileId} and generation = ${generation}`.execute(db);
  return rows[0] ?? { passages: 0, tokens: 0 };
}

/** A passage as it is embedded and shown to models. */
export const textOf = (context: string, quote: string): string => (context === '' ? quote : `${context}\n\n${quote}`);

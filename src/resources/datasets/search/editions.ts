import { sql } from 'kysely';
import type { Access, Database } from '#store/open';
import type { FileGeneration, GenerationCounts, NewPassages } from './types.ts';

/** The id of a generation, which is made where there is none. */
export async function editionOf(db: Database, { datasetId, fileId, generation, language }: Omit<NewPassages, 'chunks'>): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into editions (dataset_id, file_id, generation, language) values (${datasetId}, ${fileId}, ${generation}, ${language})
    on conflict (file_id, generation) do update set language = editions.language returning id`.execute(db);
  return rows[0]!.id;
}

/** Of a generation; zeros where there is none. */
export async function countsOf({ db }: Pick<Access, 'db'>, { fileId, generation }: FileGeneration): Promise<GenerationCounts> {
  const { rows } = await sql<GenerationCounts>`select passages, tokens from editions where file_id = ${fileId} and generation = ${generation}`.execute(db);
  return rows[0] ?? { passages: 0, tokens: 0 };
}

/** A passage as it is embedded and shown to models. */
export const textOf = (context: string, quote: string): string => (context === '' ? quote : `${context}\n\n${quote}`);

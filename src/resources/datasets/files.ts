import { sql, type RawBuilder } from 'kysely';
import type { Job } from '#store/jobs';
import { Fault } from '#core/fault';
import type { OfferedFile } from '#core/mcp-offers';
import { unknownThing } from '#http/noun-route';
import { readableFiles, type Reader, type Right } from '#store/grants';
import type { Access, Store } from '#store/open';
import { spellingsOf } from '../dataset-names.ts';
import { forbidden } from './store.ts';

export type Stage = 'store' | 'parse' | 'chunk' | 'embed' | 'index';

export interface DatasetFile {
  readonly id: number;
  readonly datasetId: number;
  readonly filename: string;
  readonly type: string | null;
  /** Of the original that counts, else of the one that is being read. */
  readonly bytes: number;
  readonly pages: number | null;
  readonly passages: number;
  readonly tokens: number;
  /** Of its last job. */
  readonly state: Job['state'];
  readonly stage: Stage | null;
  readonly reason: string | null;
  readonly jobId: string | null;
  readonly sourceId: number | null;
  readonly createdAt: Date;
}

/** A file whose passages are found. */
export interface IngestedFile extends Pick<DatasetFile, 'filename' | 'passages' | 'tokens' | 'bytes' | 'createdAt'> {
  /** The full name. */
  readonly dataset: string;
  readonly classification: string;
  /** Who put it in. */
  readonly userId: number;
}

export interface Files {
  /** @throws Fault `not-found`, `forbidden` where the caller sees it and has too little right */
  one(reader: Reader, datasetId: number, id: number, right?: Right): Promise<DatasetFile>;
  /** @throws as `one` */
  named(reader: Reader, datasetId: number, filename: string, right?: Right, field?: string): Promise<DatasetFile>;
  /** By id, those behind `after`. */
  list(reader: Reader, datasetId: number, asked: { after: number; limit: number }): Promise<readonly DatasetFile[]>;
  /** Those of all datasets whose passages are found, by id, those behind `after`. */
  readable(reader: Reader, asked: { readonly after: number; readonly limit: number }): Promise<readonly OfferedFile[]>;
  /** Of all datasets, newest first. */
  ingested(reader: Reader, limit: number): Promise<readonly IngestedFile[]>;
  /** The original. @throws Fault `not-found` */
  original(reader: Reader, datasetId: number, id: number): Promise<{ readonly blob: string; readonly filename: string; readonly type: string | null }>;
}

const columns = sql`dataset_files.id, dataset_files.dataset_id as "datasetId", filename, dataset_files.type,
  case when dataset_files.generation > 0 then bytes else coalesce(next_bytes, bytes) end as bytes, pages, passages, tokens,
  coalesce(job.state, case when generation > 0 then 'done' else 'failed' end) as state,
  case when job.state in ('waiting', 'running', 'failed') then job.progress ->> 'stage' end as stage,
  case when job.id is null and generation = 0 then 'Its job is no longer known: put the file in once more.' when job.state in ('failed', 'waiting') then job.error end as reason,
  job_id as "jobId", source_id as "sourceId", dataset_files.created_at as "createdAt"`;

const tables = sql`dataset_files join datasets on datasets.id = dataset_files.dataset_id left join job on job.id = dataset_files.job_id`;

export function openFiles(store: Store): Files {
  const found = async <Row = DatasetFile>(what: RawBuilder<unknown>, where: RawBuilder<unknown>): Promise<readonly Row[]> => {
    const { rows } = await sql<Row>`select ${what} from ${tables} where ${where}`.execute(store.db);
    return rows;
  };
  const seen = async (reader: Reader, where: RawBuilder<unknown>, right: Right, missing: () => Fault, preferred = ''): Promise<DatasetFile> => {
    const [row] = await found<DatasetFile & { isAllowed: boolean }>(
      sql`${columns}, ${readableFiles(reader, right)} as "isAllowed"`,
      sql`${where} and ${readableFiles(reader)} order by filename = ${preferred} desc limit 1`,
    );
    if (!row) throw missing();
    const { isAllowed, ...file } = row;
    if (!isAllowed) throw forbidden(right);
    return file;
  };
  return {
    one: (reader, datasetId, id, right = 'read') =>
      seen(reader, sql`dataset_files.id = ${id} and dataset_files.dataset_id = ${datasetId}`, right, () => unknownThing('file')),
    named: (reader, datasetId, filename, right = 'read', field = 'filename') =>
      seen(
        reader,
        sql`dataset_files.dataset_id = ${datasetId} and filename = any(${[...spellingsOf(filename)]}::text[])`,
        right,
        () => new Fault('not-found', `There is no such file in the dataset: see ${field}.`, { field }),
        filename,
      ),
    list: (reader, datasetId, { after, limit }) =>
      found(
        columns,
        sql`dataset_files.dataset_id = ${datasetId} and dataset_files.id > ${after} and ${readableFiles(reader)} order by dataset_files.id limit ${limit}`,
      ),
    readable: (reader, { after, limit }) =>
      found<OfferedFile>(
        sql`dataset_files.id, datasets.id as "datasetId", filename, full_name as dataset, dataset_files.type, bytes`,
        sql`generation > 0 and dataset_files.id > ${after} and ${readableFiles(reader)} order by dataset_files.id limit ${limit}`,
      ),
    ingested: (reader, limit) =>
      found<IngestedFile>(
        sql`filename, passages, tokens, bytes, dataset_files.created_at as "createdAt", full_name as dataset, classification, coalesce(dataset_files.user_id, owner_id) as "userId"`,
        sql`generation > 0 and ${readableFiles(reader)} order by dataset_files.id desc limit ${limit}`,
      ),
    async original(reader, datasetId, id) {
      const [row] = await found<{ blob: string | null; filename: string; type: string | null }>(
        sql`coalesce(blob, next_blob) as blob, filename, dataset_files.type`,
        sql`dataset_files.id = ${id} and dataset_files.dataset_id = ${datasetId} and ${readableFiles(reader)}`,
      );
      if (!row || row.blob === null) throw unknownThing('file');
      return { ...row, blob: row.blob };
    },
  };
}

/** Whoever may have the dataset, and not this file of it. */
export const mayNotChange = (filename: string) => new Fault('forbidden', `You may not change ${filename}.`);

/** A job's work on a file: the new generation of its passages. */
export interface NewGeneration {
  readonly fileId: number;
  readonly generation: number;
}

export interface IncomingFile {
  readonly datasetId: number;
  readonly filename: string;
  /** Of the original; null where it is copied from another file. */
  readonly blob: string | null;
  readonly bytes: number;
  /** What the dataset follows, and has it from. */
  readonly sourceId?: number;
}

/**
 * Makes a file, or the one of this name ready for another content: until that is in the index the old one is found. To be called in a transaction.
 *
 * @throws Fault `not-found` where the dataset was deleted; `forbidden` for who may not change it, or that file of it; `conflict` where a source has a name that is taken
 * @returns the generation to be made, and the job that was at work on the file and is not to go on
 */
export async function expectFile(
  inside: Access,
  reader: Reader,
  { datasetId, filename, blob, bytes, sourceId }: IncomingFile,
): Promise<NewGeneration & { readonly formerJob: string | null }> {
  // whoever deletes the dataset comes before or after this
  const { rows: there } = await sql`select from datasets where id = ${datasetId} and deleted_at is null for share`.execute(inside.db);
  if (there.length === 0) throw unknownThing('dataset');
  const { rows } = await sql<{ id: number; generation: number; made: number; job: string | null }>`
    insert into dataset_files (dataset_id, filename, user_id, next_blob, next_bytes, source_id)
      values (${datasetId}, ${filename}, ${reader.userId}, ${blob}, ${bytes}, ${sourceId ?? null})
    on conflict (dataset_id, filename) where deleted_at is null do update
      set user_id = excluded.user_id, next_blob = excluded.next_blob, next_bytes = excluded.next_bytes, source_id = excluded.source_id, updated_at = now(),
        last_generation = dataset_files.last_generation + 1
      where excluded.source_id is null or excluded.source_id = dataset_files.source_id
    returning id, generation, last_generation as made, job_id as job`.execute(inside.db);
  if (!rows[0]) throw new Fault('conflict', 'The dataset has another file of this name.');
  const { id, made, job } = rows[0];
  const { rows: allowed } = await sql`
    select from dataset_files join datasets on datasets.id = dataset_id where dataset_files.id = ${id} and ${readableFiles(reader, 'edit')}`.execute(inside.db);
  if (allowed.length === 0) throw mayNotChange(filename);
  return { fileId: id, generation: made, formerJob: job };
}

/** Says which job works on the file. In the same transaction. */
export async function assignJob({ db }: Access, fileId: number, jobId: string): Promise<void> {
  await sql`update dataset_files set job_id = ${jobId} where id = ${fileId}`.execute(db);
}

import { sql } from 'kysely';
import type { Actor } from '#core/audit';
import type { Caller, Labels, Origin } from '#core/context';
import { Fault, statuses, type FaultCode } from '#core/fault';
import { isObject, textOf, type JsonObject } from '#core/json';
import type { Clock } from '#kit/async/clock';
import type { Blobs } from '#store/blobs';
import type { Job, Jobs } from '#store/jobs';
import type { Access, Store } from '#store/open';
import { jobOwner } from '../owner.ts';
import { assignJob, expectFile, type Stage } from './files.ts';
import { faultOfFile } from './names.ts';
import type { Removal } from './removal.ts';
import type { AffordTraining } from './search/types.ts';
import type { Dataset } from './store.ts';

/** The kind of the jobs that bring files into datasets. */
export const ingestionKind = 'ingestion';

/** What a file is made of: its bytes; a text that was given with its title; several texts; or another file, whose passages are taken over. */
export type Source =
  | { readonly form: 'file'; readonly blob: string }
  | { readonly form: 'text'; readonly blob: string; readonly title: string }
  | { readonly form: 'array'; readonly blob: string; readonly title: string }
  | { readonly form: 'copy'; readonly fileId: number; readonly blob: string | null };

/** What the job of a file carries. */
export interface IngestionPayload {
  /** Of the request that put it in. */
  readonly labels?: Origin | undefined;
  readonly userId: number;
  readonly keyId: number;
  readonly datasetId: number;
  /** The full name. */
  readonly dataset: string;
  readonly fileId: number;
  readonly filename: string;
  readonly generation: number;
  readonly source: Source;
}

/** How far a job is, as it is kept with it. */
export interface IngestionProgress {
  readonly stage: Stage;
  /** From 0 to 1; only grows. */
  readonly share: number;
  readonly startedAt: string;
  /** Of what ended it, for who waits for the answer. */
  readonly fault?: FaultCode;
  /** When it may be tried again, where that is known: where a quota is spent, when its period ends. */
  readonly retryAt?: string;
}

export interface IngestionDeps {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly blobs: Blobs;
  readonly fileBytes: () => number;
  readonly affords: AffordTraining;
  readonly removal: Pick<Removal, 'fileWithin'>;
  /** May the caller keep this original too? In the transaction that writes its row; absent: always. @throws Fault `too-large` */
  readonly room?: (inside: Access, caller: Caller, file: { readonly blob: string; readonly bytes: number }) => Promise<void>;
}

/** A file as it comes. */
export interface Incoming extends Pick<IngestionPayload, 'labels'> {
  readonly filename: string;
  readonly content: Uint8Array | Blob;
  readonly source: { readonly form: 'file' } | { readonly form: 'text' | 'array'; readonly title: string };
}

export interface Begun {
  readonly fileId: number;
  readonly jobId: string;
}

/** Brings files into datasets, each by a job of its own. */
export interface Ingestion {
  /** Keeps the original and queues its job, both or neither. @throws Fault `quota-spent`, `too-large`, `overloaded`, `unprocessable` for one of no bytes, `forbidden` */
  begin(caller: Caller, dataset: Dataset, incoming: Incoming): Promise<Begun>;
  /** The same for several files: all of them, or none. @throws the same, naming the file */
  beginAll(caller: Caller, dataset: Dataset, incoming: readonly Incoming[]): Promise<readonly Begun[]>;
  /** The same for files of other datasets: nothing is read and embedded again. */
  copyAll(caller: Caller, dataset: Dataset, from: readonly CopiedFile[]): Promise<readonly Begun[]>;
  /** The same for a content that is kept already and comes from a source, in a transaction. @returns also the job that is to be cancelled behind it */
  beginWithin(inside: Access, caller: Caller, dataset: Dataset, from: KeptFile): Promise<Begun & { readonly formerJob: string | null }>;
  /** Waits for the end of a job. @throws Fault as it failed */
  ended(jobId: string, signal?: AbortSignal): Promise<Job>;
  /** The same for at most this many seconds. @returns false where it goes on */
  endedWithin(seconds: number, jobId: string, signal: AbortSignal): Promise<boolean>;
  /** Rolls back an ingestion whose job failed, once its caller is told: it uses no storage, and the file's previous content stays in effect. */
  rollBack(begun: Begun): Promise<void>;
}

/** A file as it is copied: its id, and the name of the copy. */
export interface CopiedFile {
  readonly id: number;
  readonly filename: string;
  readonly bytes: number;
  readonly blob: string | null;
}

export interface KeptFile {
  readonly filename: string;
  readonly blob: string;
  readonly bytes: number;
  readonly sourceId: number;
}

interface Queued extends Pick<IngestionPayload, 'labels'> {
  readonly filename: string;
  readonly bytes: number;
  readonly source: Source;
  readonly sourceId?: number;
}

const tries = 5;
const shortestWait = 20;
const longestWait = 300;

export function openIngestion({ store, jobs, clock, blobs, fileBytes, affords, removal, room }: IngestionDeps): Ingestion {
  async function queueOne(
    inside: Access,
    caller: Caller,
    dataset: Dataset,
    { filename, bytes, source, sourceId, labels }: Queued,
  ): Promise<Begun & { formerJob: string | null }> {
    const { userId, keyId } = caller;
    if (source.blob !== null) await room?.(inside, caller, { blob: source.blob, bytes });
    const { fileId, generation, formerJob } = await expectFile(inside, caller, {
      datasetId: dataset.id,
      filename,
      blob: source.blob,
      bytes,
      ...(sourceId === undefined ? {} : { sourceId }),
    });
    if (formerJob !== null && (await goesOn(inside, { fileId, userId, keyId, source }))) return { fileId, jobId: formerJob, formerJob: null };
    const payload: Omit<IngestionPayload, 'labels'> = { userId, keyId, datasetId: dataset.id, dataset: dataset.fullName, fileId, filename, generation, source };
    const jobId = await jobs.add(
      ingestionKind,
      { ...payload, source: { ...source }, ...(labels ? { labels: labelsOf(labels) } : {}) },
      { inside, owner: jobOwner(userId), tries, here: source.form !== 'copy' },
    );
    await assignJob(inside, fileId, jobId);
    return { fileId, jobId, formerJob };
  }
  /** @param named what is wrong with a file, said of that file */
  async function queue(caller: Caller, dataset: Dataset, files: readonly Queued[], named = (error: unknown, _: string) => error): Promise<readonly Begun[]> {
    const begun = await store.transaction(async (inside) => {
      const done = [];
      for (const file of files)
        done.push(
          await queueOne(inside, caller, dataset, file).catch((error: unknown) => {
            throw named(error, file.filename);
          }),
        );
      return done;
    });
    for (const { formerJob } of begun) if (formerJob !== null) await jobs.cancel(formerJob);
    return begun.map(({ fileId, jobId }) => ({ fileId, jobId }));
  }
  /** @returns undefined where it goes on beyond the time */
  const ended = async (jobId: string, until: number, signal?: AbortSignal): Promise<Job | undefined> => {
    for (let wait = shortestWait; ; wait = Math.min(wait * 1.5, longestWait)) {
      const job = await jobs.find(jobId);
      if (!job) throw new Fault('not-found', 'There is no such job.');
      if (job.state === 'done') return job;
      if (job.state === 'failed') throw failureOf(job, clock.now());
      if (job.state === 'cancelled') throw new Fault('conflict', whyCancelled);
      if (clock.monotonic() >= until) return undefined;
      await clock.sleep(wait, signal);
    }
  };

  return {
    async begin(caller, dataset, incoming) {
      await affords({ caller, model: dataset.model });
      return (await queue(caller, dataset, [await kept({ blobs, fileBytes }, incoming)]))[0]!;
    },
    async beginAll(caller, dataset, incoming) {
      await affords({ caller, model: dataset.model });
      const files = [];
      for (const one of incoming)
        files.push(
          await kept({ blobs, fileBytes }, one).catch((error: unknown) => {
            throw faultOfFile(error, one.filename);
          }),
        );
      return queue(caller, dataset, files, faultOfFile);
    },
    copyAll: (caller, dataset, from) => queue(caller, dataset, from.map(copied), faultOfFile),
    beginWithin: (inside, caller, dataset, { filename, blob, bytes, sourceId }) =>
      queueOne(inside, caller, dataset, { filename, bytes, source: { form: 'file', blob }, sourceId }),
    ended: async (jobId, signal) => (await ended(jobId, Infinity, signal))!,
    endedWithin: async (seconds, jobId, signal) => (await ended(jobId, clock.monotonic() + seconds * 1000, signal)) !== undefined,
    rollBack: (begun) => store.transaction((inside) => rolledBack(inside, begun, removal)),
  };
}

/** Keeps the original. Where its row is not written, it goes within the hour. */
async function kept({ blobs, fileBytes }: Pick<IngestionDeps, 'blobs' | 'fileBytes'>, { filename, content, source, labels }: Incoming): Promise<Queued> {
  const size = content instanceof Blob ? content.size : content.length;
  if (size === 0) throw new Fault('unprocessable', 'The file is empty: it has no bytes.', { field: 'file' });
  const { id, size: bytes } = await blobs.put(content instanceof Blob ? content.stream() : content, fileBytes());
  return { filename, bytes, source: { ...source, blob: id }, labels };
}

const copied = ({ id: fileId, filename, bytes, blob }: CopiedFile): Queued => ({ filename, bytes, source: { form: 'copy', fileId, blob } });

/**
 * Is a job of the same key already ingesting the same content? Then it is kept, and no other is queued. Where its content is already that of the file, the file
 * has no next content.
 */
async function goesOn({ db }: Access, { fileId, userId, keyId, source }: Pick<IngestionPayload, 'fileId' | 'userId' | 'keyId' | 'source'>): Promise<boolean> {
  const isMade = sql`dataset_files.generation = (payload ->> 'generation')::bigint`;
  const { rows } = await sql`
    update dataset_files set next_blob = case when ${isMade} then null else next_blob end, next_bytes = case when ${isMade} then null else next_bytes end
    from job
    where dataset_files.id = ${fileId} and job.id = job_id and state in ('waiting', 'running') and not cancel_wanted and error is null
      and payload @> ${JSON.stringify({ userId, keyId })}::jsonb and payload -> 'source' = ${JSON.stringify(source)}::jsonb
    returning job.id`.execute(db);
  return rows.length > 0;
}

async function rolledBack(inside: Access, { fileId, jobId }: Begun, removal: IngestionDeps['removal']): Promise<void> {
  const { rows } = await sql<{ isEmpty: boolean }>`
    update dataset_files set next_blob = null, next_bytes = null, job_id = null
    where id = ${fileId} and job_id = ${jobId} and deleted_at is null and exists (select from job where id = ${jobId} and state in ('failed', 'cancelled'))
    returning generation = 0 and not narrowed as "isEmpty"`.execute(inside.db);
  if (rows[0]?.isEmpty) await removal.fileWithin(inside, fileId); // a file with grants of its own stays: they apply to the next file of this name
}

/** What is kept of a request with the job of its file. */
export const originOf = ({ address }: Pick<Actor, 'address'>, { app, tags }: Labels = {}): Origin => ({ app, tags, address: address ?? undefined });

const labelsOf = ({ app, tags, address }: Origin): JsonObject => ({
  ...(app === undefined ? {} : { app }),
  ...(tags ? { tags } : {}),
  ...(address === undefined ? {} : { address }),
});

/** Why a job was cancelled, as far as it is known: by its user, or by what became of its file. */
const whyCancelled = 'The job was cancelled, the file was deleted, or another content took its place.';

/** Why a job failed, as whoever waited for it is told. */
function failureOf({ error, progress }: Job, now: number): Fault {
  const { fault, retryAt } = progressOf(progress);
  return new Fault(fault ?? 'internal', error ?? 'The file could not be read.', retryAt ? { retryAfter: (Date.parse(retryAt) - now) / 1000 } : {});
}

/** What is kept of a job's progress. */
export function progressOf(progress: Job['progress']): Partial<IngestionProgress> {
  if (!isObject(progress)) return {};
  const { stage, share, startedAt, fault, retryAt } = progress;
  const code = textOf(fault);
  return {
    ...(isStage(stage) ? { stage } : {}),
    ...(typeof share === 'number' ? { share } : {}),
    ...(typeof startedAt === 'string' ? { startedAt } : {}),
    ...(Object.hasOwn(statuses, code) ? { fault: code as FaultCode } : {}),
    ...(typeof retryAt === 'string' ? { retryAt } : {}),
  };
}

const stages: readonly unknown[] = ['store', 'parse', 'chunk', 'embed', 'index'] satisfies readonly Stage[];
const isStage = (stage: unknown): stage is Stage => stages.includes(stage);

/** What a job carries, as it was written. */
export const payloadOf = (payload: Job['progress']): IngestionPayload => payload as unknown as IngestionPayload;

import { sql } from 'kysely';
import { isObject } from '#core/json';
import { unknownThing } from '#http/noun-route';
import { forgetGrants, type Reader } from '#store/grants';
import type { Jobs } from '#store/jobs';
import type { Access, Store } from '#store/open';
import type { PassageIndex } from './search/types.ts';
import type { Datasets } from './store.ts';

/** Takes datasets and files away: nobody sees them any more at once, and a job removes what was in them. */
export interface Removal {
  /** @throws Fault `not-found`, `forbidden` where one is somebody else's: then none is deleted */
  datasets(reader: Reader, ids: readonly number[]): Promise<void>;
  /** A file that the caller may edit. @throws Fault `not-found` where it was deleted meanwhile */
  file(reader: Reader, id: number): Promise<void>;
  /** The same in a transaction. @returns its job, to be cancelled behind it; undefined where it was deleted already */
  fileWithin(inside: Access, id: number): Promise<string | null | undefined>;
  /** The files of a source, which are deleted already. In a transaction. */
  filesOfSource(inside: Access, sourceId: number): Promise<void>;
}

export interface RemovalDeps {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly datasets: Datasets;
}

const kind = 'dataset-removal';
/** It is tried until it is done. */
const tries = 1_000_000;
const pieceRows = 100;
/** What is left over for whatever reason goes at night. */
const nightKind = 'dataset-night';
const nightHour = 3;
const vectorDays = 90;

const ask = (jobs: Pick<Jobs, 'add'>, inside: Access | undefined, what: 'dataset' | 'file' | 'source', id: number) =>
  jobs.add(kind, { [what]: id }, { unique: `${what}:${id}`, tries, ...(inside ? { inside } : {}) });

export function openRemoval({ store, jobs, datasets }: RemovalDeps): Removal {
  const fileWithin: Removal['fileWithin'] = async (inside, id) => {
    const { rows } = await sql<{ job: string | null }>`
      update dataset_files set deleted_at = now() where id = ${id} and deleted_at is null returning job_id as job`.execute(inside.db);
    if (rows[0]) await ask(jobs, inside, 'file', id);
    return rows[0]?.job;
  };
  return {
    fileWithin,
    filesOfSource: async (inside, sourceId) => void (await ask(jobs, inside, 'source', sourceId)),
    datasets: (reader, ids) =>
      datasets.remove(reader, ids, async (inside) => {
        for (const id of ids) await ask(jobs, inside, 'dataset', id);
      }),
    async file(_reader, id) {
      const former = await store.transaction((inside) => fileWithin(inside, id));
      if (former === undefined) throw unknownThing('file');
      if (former !== null) await jobs.cancel(former);
    },
  };
}

export interface PurgeDeps {
  readonly store: Store;
  readonly now: () => number;
  /** Forgets vectors that were not asked for in this many days. */
  readonly forgetVectors: (days: number) => Promise<void>;
  readonly jobs: Jobs;
  readonly index: Pick<PassageIndex, 'remove' | 'reconcile'>;
  readonly log: (problem: string, cause: unknown) => void;
}

/** Removes what was deleted, from now on, and what a former process has left of it. */
export function workOnDatasetRemovals({ store, jobs, index, now, forgetVectors, log }: PurgeDeps): void {
  const purging = { store, jobs, index };
  jobs.work(kind, async ({ payload, signal }) => {
    const { dataset, file, source } = isObject(payload) ? payload : {};
    if (typeof dataset === 'number') await purgeDataset(purging, dataset, signal);
    if (typeof file === 'number') await purgeFile(purging, file);
    if (typeof source === 'number') await purgeFilesOfSource(purging, source, signal);
  });
  const askAgain = async () => {
    const { rows } = await sql<{ what: 'dataset' | 'file'; id: number }>`
      select 'dataset' as what, id from datasets where deleted_at is not null
      union all select 'file', dataset_files.id from dataset_files join datasets on datasets.id = dataset_id
        where dataset_files.deleted_at is not null and datasets.deleted_at is null`.execute(store.db);
    for (const { what, id } of rows) await ask(jobs, undefined, what, id);
  };
  const tonight = () => {
    const at = new Date(now());
    at.setUTCHours(at.getUTCHours() < nightHour ? nightHour : nightHour + 24, 0, 0, 0);
    return jobs.add(nightKind, null, { unique: at.toISOString(), runAt: at });
  };
  jobs.work(nightKind, async ({ signal }) => {
    while ((await index.reconcile()) > 0) signal.throwIfAborted();
    await sql`delete from grants where team_id is not null and not exists (select from teams where teams.id = team_id)`.execute(store.db);
    await forgetVectors(vectorDays);
    await askAgain();
    await tonight();
  });
  Promise.all([askAgain(), tonight()]).catch((error: unknown) =>
    log('Deleted datasets could not be looked up: the next start removes what is left of them.', error),
  );
}

type Purging = Pick<PurgeDeps, 'store' | 'jobs' | 'index'>;

export async function purgeDatasetsOf(purging: Purging, userId: number, signal: AbortSignal): Promise<void> {
  const { rows } = await sql<{ id: number }>`
    update datasets set deleted_at = coalesce(deleted_at, now()) where owner_id = ${userId} returning id`.execute(purging.store.db);
  for (const { id } of rows) await purgeDataset(purging, id, signal);
}

async function purgeDataset(purging: Purging, id: number, signal: AbortSignal): Promise<void> {
  const { db } = purging.store;
  for (;;) {
    const { rows } = await sql<{ id: number }>`
      select dataset_files.id from dataset_files join datasets on datasets.id = dataset_id
      where dataset_id = ${id} and datasets.deleted_at is not null order by dataset_files.id limit ${pieceRows}`.execute(db);
    if (rows.length === 0) break;
    for (const file of rows) {
      signal.throwIfAborted();
      await sql`update dataset_files set deleted_at = coalesce(deleted_at, now()) where id = ${file.id}`.execute(db);
      await purgeFile(purging, file.id);
    }
  }
  await purging.store.transaction(async (inside) => {
    const gone = await sql`delete from datasets where id = ${id} and deleted_at is not null`.execute(inside.db);
    if ((gone.numAffectedRows ?? 0n) > 0n) await forgetGrants(inside, 'dataset', [id]);
  });
}

async function purgeFilesOfSource(purging: Purging, source: number, signal: AbortSignal): Promise<void> {
  for (;;) {
    const { rows } = await sql<{ id: number }>`
      select id from dataset_files where source_id = ${source} and deleted_at is not null order by id limit ${pieceRows}`.execute(purging.store.db);
    if (rows.length === 0) return;
    for (const { id } of rows) {
      signal.throwIfAborted();
      await purgeFile(purging, id);
    }
  }
}

async function purgeFile({ store, jobs, index }: Purging, id: number): Promise<void> {
  const { rows } = await sql<{ job: string | null }>`select job_id as job from dataset_files where id = ${id} and deleted_at is not null`.execute(store.db);
  if (!rows[0]) return;
  if (rows[0].job !== null) await jobs.cancel(rows[0].job);
  await index.remove({ fileId: id });
  await store.transaction(async (inside) => {
    await sql`delete from dataset_files where id = ${id} and deleted_at is not null`.execute(inside.db);
    await forgetGrants(inside, 'file', [id]);
  });
}

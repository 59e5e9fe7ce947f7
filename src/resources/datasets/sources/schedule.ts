import { sql } from 'kysely';
import { isObject } from '#core/json';
import type { Job, Jobs } from '#store/jobs';
import type { Access, Store } from '#store/open';
import { jobOwner } from '../../owner.ts';
import type { Source, Sources } from './store.ts';

/** The kind of the jobs that synchronise sources. */
export const syncKind = 'source';
/** The kind of those that wait for the time to do so. */
const dueKind = 'source-due';
const syncTries = 5;
/** It is tried until it is done. */
const dueTries = 1_000_000;

/** What the job of a source carries. */
export interface SyncPayload {
  readonly sourceId: number;
  /** The full name. */
  readonly dataset: string;
}

export const syncPayloadOf = (payload: Job['progress']): SyncPayload => payload as unknown as SyncPayload;

export interface Schedule {
  /** Queues a synchronisation, and waits for the next one where it is to be done every few hours. One that is waiting or under way is enough. In a transaction. */
  begin(inside: Access, source: Source): Promise<void>;
  /** Waits anew for the next one, as the source is now. In a transaction. */
  wait(inside: Access, id: number): Promise<void>;
}

export interface ScheduleDeps {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly sources: Pick<Sources, 'find' | 'lock'>;
}

export function openSchedule({ jobs, sources }: Pick<ScheduleDeps, 'jobs' | 'sources'>): Schedule {
  const wait: Schedule['wait'] = async (inside, id) => {
    const { rows } = await sql<{ at: Date | null; type: string }>`
      update dataset_source set next_sync_at = date_trunc('milliseconds', now() + make_interval(hours => every_hours)) where id = ${id}
      returning next_sync_at as at, type`.execute(inside.db);
    const { at, type } = rows[0] ?? {};
    if (!at) return;
    const due = { sourceId: id, at: at.toISOString() };
    await jobs.add(dueKind, due, { inside, runAt: at, unique: `${id} ${due.at}`, tries: dueTries, here: type === 'folder' });
  };
  return {
    wait,
    async begin(inside, { id, userId, place }) {
      const source = await sources.find(id, inside);
      if (!source) return;
      const { rows } = await sql<{ dataset: string }>`select full_name as dataset from datasets where id = ${source.datasetId}`.execute(inside.db);
      const payload = { sourceId: id, dataset: rows[0]!.dataset };
      const options = { inside, unique: `${id} ${source.version}`, tries: syncTries, here: place.type === 'folder' };
      const jobId = await jobs.add(syncKind, payload, { ...options, ...(userId === null ? {} : { owner: jobOwner(userId) }) });
      await sql`update dataset_source set job_id = ${jobId} where id = ${id}`.execute(inside.db);
      await wait(inside, id);
    },
  };
}

/** Begins synchronisations when their time has come, from now on. */
export function workOnSchedule({ store, jobs, sources }: ScheduleDeps, schedule: Schedule): void {
  jobs.work(dueKind, ({ payload }) =>
    store.transaction(async (inside) => {
      const { sourceId, at } = isObject(payload) ? payload : {};
      if (typeof sourceId !== 'number') return;
      await sources.lock(inside, sourceId);
      const source = await sources.find(sourceId, inside);
      if (source && source.nextSyncAt?.toISOString() === at) await schedule.begin(inside, source);
    }),
  );
}

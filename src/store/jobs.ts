import type { Handler, RunningJob, WorkOptions } from './job.ts';
import { sql } from 'kysely';
import type { Clock } from '#kit/async/clock';
import { randomText } from '#kit/crypto/ids';
import type { Json } from '#core/json';
import { silent, type StoreLog } from '#store/log';
import type { Access, Store } from '#store/open';
import { repeatUntilFewer } from '#store/pieces';
import type { Place } from '#store/job-places';
import { cancelTopic, wakeTopic, workOn, type JobWorker } from '#store/job-worker';

/*
 * Work that outlives a request. A job is a row; who takes it holds a lease on the row and renews it, so that the job of a killed process is taken again
 * when its lease is over. A job may therefore run twice: a handler does its work in steps that can be repeated. All times are the database's.
 * By hand: one table serves both databases, and a queue library needs `listen`, which the embedded one lacks.
 */
export interface Jobs {
  /**
   * @returns its id; with `unique`, the id of the job of that kind and key that is not over yet, if there is one
   * @param options `tries`: how often it is begun at most (5), deaths of workers counted; `inside`: a transaction it belongs to; `here`: it needs files of this place
   */
  add(kind: string, payload: Json, options?: AddOptions): Promise<string>;
  find(id: string): Promise<Job | undefined>;
  /** How many jobs of a kind and an owner are not over. `inside` a transaction, where it is the last thing to be done: it waits for others that ask so, and counts theirs. */
  pending(kind: string, owner: string, inside?: Access): Promise<number>;
  /** The waiting jobs of a kind and an owner, oldest first. */
  waiting(kind: string, owner: string): Promise<readonly Pick<RunningJob, 'id' | 'payload'>[]>;
  /** A waiting job never runs; a running one has its signal aborted and ends cancelled if its handler then throws. @returns false when it was over or is unknown */
  cancel(id: string): Promise<boolean>;
  /** A job that failed or was cancelled waits again, with all its tries and the progress it had. @returns false where it did not, or is unknown */
  retry(id: string): Promise<boolean>;
  /** Deletes all jobs of an owner. Those that run are stopped when they renew their leases. */
  forget(owner: string): Promise<void>;
  /** Takes jobs of a kind from now on. @returns what stops it, as `close` does */
  work(kind: string, handler: Handler, options?: WorkOptions): () => Promise<void>;
  /** The number of jobs that run in this process now. */
  running(): number;
  /** Takes no more, gives running jobs `graceSeconds` (0) to end, then aborts them, and gives back those that did not end. */
  close(graceSeconds?: number): Promise<void>;
}

export interface AddOptions {
  readonly runAt?: Date;
  readonly unique?: string;
  /** Whose it is: owners take turns. */
  readonly owner?: string;
  readonly tries?: number;
  readonly inside?: Access;
  /** Only processes of the same place take it; where the place has no name, all do. */
  readonly here?: boolean;
}

export interface JobsDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log?: StoreLog;
  /** The folder of files that this process has, where others on the same database have another. */
  readonly place?: Place | undefined;
}

export interface Job {
  readonly id: string;
  readonly kind: string;
  readonly state: 'waiting' | 'running' | 'done' | 'failed' | 'cancelled';
  readonly tries: number;
  readonly progress: Json;
  readonly result: Json;
  /** Why it failed, in words for its owner. */
  readonly error: string | null;
  readonly addedAt: Date;
  readonly endedAt: Date | null;
}

const forgottenAtOnce = 1000;

export function jobs({ store, clock, log = silent, place }: JobsDeps): Jobs {
  const workers = new Set<JobWorker>();
  return {
    add(kind, payload, { inside, ...options } = {}) {
      const at = options.here ? (place?.id ?? '') : '';
      const add = (within: Access) => addWithin(within, kind, payload, { ...options, at });
      return inside ? add(inside) : store.transaction(add);
    },

    async find(id) {
      const { rows } = await sql<Job>`
        select id, kind, state, tries, progress, result, error, added_at as "addedAt", ended_at as "endedAt" from job where id = ${id}`.execute(store.db);
      return rows[0];
    },

    async pending(kind, owner, inside) {
      const { db } = inside ?? store;
      if (inside) await sql`select pg_advisory_xact_lock(hashtextextended(${`${kind}/${owner}`}, 0))`.execute(db);
      const { rows } = await sql<{ count: number }>`
        select (select count(*) from job where kind = ${kind} and owner = ${owner} and state = 'waiting')
          + (select count(*) from job where kind = ${kind} and owner = ${owner} and state = 'running') as count`.execute(db);
      return Number(rows[0]!.count);
    },

    async waiting(kind, owner) {
      const { rows } = await sql<Pick<RunningJob, 'id' | 'payload'>>`
        select id, payload from job where kind = ${kind} and owner = ${owner} and state = 'waiting' order by run_at, id`.execute(store.db);
      return rows;
    },

    async cancel(id) {
      const { rows } = await sql<{ state: string }>`
        update job set cancel_wanted = true,
          ended_at = case when state = 'waiting' then now() end,
          state = case when state = 'waiting' then 'cancelled' else state end
        where id = ${id} and state in ('waiting', 'running') returning state`.execute(store.db);
      if (rows[0]?.state === 'running') await store.publish(cancelTopic, id);
      return rows.length > 0;
    },

    async retry(id) {
      const { rows } = await sql<{ kind: string }>`
        update job set state = 'waiting', tries = 0, run_at = now(), error = null, ended_at = null, cancel_wanted = false
        where id = ${id} and state in ('failed', 'cancelled') returning kind`.execute(store.db);
      if (rows[0]) await store.publish(wakeTopic, rows[0].kind);
      return rows.length > 0;
    },

    async forget(owner) {
      const some = sql`delete from job where id = any(array(select id from job where owner = ${owner} and owner <> '' limit ${forgottenAtOnce}))`;
      await repeatUntilFewer(some, store.db, forgottenAtOnce);
    },

    work(kind, handler, { concurrency = 1, mostEach = concurrency, leaseSeconds = 30, retrySeconds = 1 } = {}) {
      const worker = workOn({ kind, handler, concurrency, mostEach, leaseSeconds, retrySeconds, store, clock, log, place: place?.id ?? '' });
      workers.add(worker);
      return () => worker.stop(0).finally(() => workers.delete(worker));
    },

    running: () => [...workers].reduce((sum, worker) => sum + worker.running(), 0),

    async close(graceSeconds = 0) {
      await Promise.all([...workers].map((worker) => worker.stop(graceSeconds)));
      workers.clear();
    },
  };
}

async function addWithin(
  { db, publish }: Access,
  kind: string,
  payload: Json,
  { runAt, unique, owner = '', tries = 5, at }: AddOptions & { readonly at: string },
): Promise<string> {
  const id = `job_${randomText(22)}`;
  const key = unique ?? null;
  for (;;) {
    const added = await sql`
      insert into job (id, kind, payload, unique_key, owner, run_at, most_tries, place)
      values (${id}, ${kind}, ${JSON.stringify(payload)}::jsonb, ${key}, ${owner}, coalesce(${runAt ?? null}::timestamptz, now()), ${tries}, ${at})
      on conflict (kind, unique_key) where state in ('waiting', 'running') and unique_key is not null do nothing`.execute(db);
    if (added.numAffectedRows === 1n) {
      await publish(wakeTopic, kind);
      return id;
    }
    const { rows } = await sql<{ id: string }>`
      select id from job where kind = ${kind} and unique_key = ${key} and state in ('waiting', 'running')`.execute(db);
    if (rows[0]) return rows[0].id; // else it ended in between
  }
}

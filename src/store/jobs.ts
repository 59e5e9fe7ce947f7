import { sql } from 'kysely';
import { Cancelled } from '#kit/client-left';
import type { Clock } from '#kit/clock';
import { randomText } from '#kit/ids';
import { Fault, faultOf } from '#model/fault';
import type { Json } from '#model/json';
import { silent, type StoreLog } from '#store/log';
import type { Access, Database, Store } from '#store/open';
import { inPieces } from '#store/pieces';

/*
 * Work that outlives a request. A job is a row; who takes it holds a lease on the row and renews it, so that the job of a killed process is taken again
 * when its lease is over. A job may therefore run twice: a handler does its work in steps that can be repeated. All times are the database's.
 */
export interface Jobs {
  /**
   * @returns its id; with `unique`, the id of the job of that kind and key that is not over yet, if there is one
   * @param options `tries`: how often it is begun at most (5), deaths of workers counted; `inside`: a transaction it belongs to
   */
  add(kind: string, payload: Json, options?: AddOptions): Promise<string>;
  find(id: string): Promise<Job | undefined>;
  /** How many jobs of a kind and an owner are not over. `inside` a transaction, where it is the last thing to be done: it waits for others that ask so, and counts theirs. */
  pending(kind: string, owner: string, inside?: Access): Promise<number>;
  /** The jobs of a kind and an owner that nobody has taken, oldest first. */
  waiting(kind: string, owner: string): Promise<readonly Pick<RunningJob, 'id' | 'payload'>[]>;
  /** A waiting job never runs; a running one has its signal aborted and ends cancelled if its handler then throws. @returns false when it was over or is unknown */
  cancel(id: string): Promise<boolean>;
  /** Takes jobs of a kind from now on. @returns what stops it, as `close` does */
  work(kind: string, handler: Handler, options?: WorkOptions): () => Promise<void>;
  /** Takes no more, aborts what runs, and gives back what did not end. */
  close(): Promise<void>;
}

export interface AddOptions {
  readonly runAt?: Date;
  readonly unique?: string;
  /** Whose it is: owners take turns. */
  readonly owner?: string;
  readonly tries?: number;
  readonly inside?: Access;
}

export interface WorkOptions {
  /** How many at once in this process (1). */
  readonly concurrency?: number;
  /** How many of one owner at once in this process (all). */
  readonly mostEach?: number;
  /** A worker that says nothing for so long is taken for dead (30). */
  readonly leaseSeconds?: number;
  /** The wait before the second try (1); it doubles up to five minutes. */
  readonly retrySeconds?: number;
}

/** @returns the job's result. @throws a Fault that another try cannot mend ends the job at once, anything else is tried again */
export type Handler = (job: RunningJob) => Promise<Json | void>;

export interface RunningJob {
  readonly id: string;
  readonly payload: Json;
  /** 1 the first time. */
  readonly tries: number;
  /** How often it was taken: a try that an orderly stop interrupts is not counted in `tries`, and is here. */
  readonly taken: number;
  /** Aborted when the job is cancelled, its lease is lost, or the process stops. */
  readonly signal: AbortSignal;
  progress(value: Json): Promise<void>;
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

const pollMilliseconds = 5000;
const sorryMilliseconds = 1000;
const longestRetrySeconds = 300;
const purgeMilliseconds = 3_600_000;
const purgeRows = 1000;
const purgePieces = 100;
const wakeTopic = 'jobs';
const cancelTopic = 'jobs-cancel';

export function jobs({ store, clock, log = silent }: { store: Store; clock: Clock; log?: StoreLog }): Jobs {
  const stops = new Set<() => Promise<void>>();
  let purgeAt = -Infinity;
  let purging: Promise<void> | undefined;

  /** Goes on beside the taking of jobs. What one round leaves the next takes, soon. */
  function purge(): void {
    if (purging || clock.monotonic() < purgeAt) return;
    purging = inPieces(() => purgeSome(store.db), { size: purgeRows, most: purgePieces })
      .then((done) => void (purgeAt = clock.monotonic() + (done ? purgeMilliseconds : 0)))
      .catch((error: unknown) => {
        purgeAt = clock.monotonic() + sorryMilliseconds;
        log.warn({ err: error }, 'jobs that ended long ago cannot be deleted');
      })
      .finally(() => (purging = undefined));
  }

  return {
    add(kind, payload, { inside, ...options } = {}) {
      const add = (within: Access) => addWithin(within, kind, payload, options);
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

    work(kind, handler, { concurrency = 1, mostEach = concurrency, leaseSeconds = 30, retrySeconds = 1 } = {}) {
      const stop = workOn({ kind, handler, concurrency, mostEach, leaseSeconds, retrySeconds, store, clock, log, purge });
      stops.add(stop);
      return () => stop().finally(() => stops.delete(stop));
    },

    async close() {
      await Promise.all([...stops].map((stop) => stop()));
      stops.clear();
      await purging;
    },
  };
}

async function addWithin({ db, publish }: Access, kind: string, payload: Json, { runAt, unique, owner = '', tries = 5 }: AddOptions): Promise<string> {
  const id = `job_${randomText(22)}`;
  const key = unique ?? null;
  for (;;) {
    const added = await sql`
      insert into job (id, kind, payload, unique_key, owner, run_at, most_tries)
      values (${id}, ${kind}, ${JSON.stringify(payload)}::jsonb, ${key}, ${owner}, coalesce(${runAt ?? null}::timestamptz, now()), ${tries})
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

interface Working extends Required<WorkOptions> {
  readonly kind: string;
  readonly handler: Handler;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: StoreLog;
  readonly purge: () => void;
}

interface Taken {
  readonly id: string;
  readonly payload: Json;
  readonly owner: string;
  readonly tries: number;
  readonly taken: number;
  readonly most_tries: number;
  /** Another one each time a job is taken: what a former holder still writes touches nothing. */
  readonly holder: string;
}

/** Why a running job's signal was aborted. */
type Stop = 'cancelled' | 'lost' | 'closing';

interface Run {
  readonly id: string;
  readonly owner: string;
  stop(why: Stop): void;
  readonly ended: Promise<void>;
}

function workOn(working: Working): () => Promise<void> {
  const { kind, concurrency, mostEach, leaseSeconds, store, clock, log } = working;
  const running = new Set<Run>(); // a job may be here twice: once with a lost lease
  const closing = new AbortController();
  let wake = new AbortController();
  const rouse = () => wake.abort();

  const endSubscriptions = [
    store.subscribe(wakeTopic, (change) => (change.type === 'reset' || change.payload === kind) && rouse()),
    store.subscribe(cancelTopic, (change) => {
      for (const one of running) if (change.type === 'change' && change.payload === one.id) one.stop('cancelled');
    }),
  ];

  async function look(): Promise<void> {
    while (!closing.signal.aborted) {
      wake = new AbortController();
      let pause = pollMilliseconds;
      try {
        await rescue(store.db, kind);
        working.purge();
        const free = concurrency - running.size;
        const taken = free > 0 && !closing.signal.aborted ? await take(free) : [];
        for (const job of taken) begin(job);
        if (free > 0) pause = Math.min(pause, await millisecondsToNext(store.db, kind, leaseSeconds));
      } catch (error) {
        log.warn({ err: error, kind }, 'jobs cannot be taken');
        pause = sorryMilliseconds;
      }
      await clock.sleep(pause, AbortSignal.any([wake.signal, closing.signal])).catch(() => {});
    }
  }

  function begin(job: Taken): void {
    const started = run(working, job);
    running.add(started);
    void started.ended.finally(() => {
      running.delete(started);
      rouse();
    });
  }

  /** Owners take turns: the next place goes to whoever has fewest, and of those to whoever has waited longest. */
  async function take(count: number): Promise<Taken[]> {
    const holder = randomText(16);
    const { rows } = await sql<Omit<Taken, 'holder'>>`
      with recursive owners as (
        (select owner from job where kind = ${kind} and state = 'waiting' order by owner limit 1)
        union all
        select (select owner from job where kind = ${kind} and state = 'waiting' and owner > owners.owner order by owner limit 1) from owners where owner is not null
      ), first as (
        select one.*, one.place + (select count(*) from job where kind = ${kind} and state = 'running' and owner = owners.owner) as turn
        from owners cross join lateral (
          select id, run_at, row_number() over (order by run_at, id) as place
          from (
            select id, run_at from job where kind = ${kind} and state = 'waiting' and owner = owners.owner and run_at <= now()
            order by run_at, id limit greatest(0, least(${count}, ${mostEach} - coalesce((${JSON.stringify(ownersOf(running))}::jsonb ->> owners.owner)::int, 0)))
          ) as waiting
        ) as one
        where owners.owner is not null
        order by turn, run_at, id limit ${count}
      ), next as (
        select id from job where id in (select id from first) and state = 'waiting' for update skip locked
      )
      update job set state = 'running', tries = tries + 1, taken = taken + 1, holder = ${holder}, lease_until = now() + make_interval(secs => ${leaseSeconds}), error = null
      from next where job.id = next.id
      returning job.id, payload, owner, tries, taken, most_tries`.execute(store.db);
    return rows.map((row) => ({ ...row, holder }));
  }

  const looked = look();
  return async () => {
    closing.abort();
    for (const end of endSubscriptions) end();
    await looked;
    for (const one of running) one.stop('closing');
    await Promise.all([...running].map((one) => one.ended));
  };
}

/** Runs one job to its end, whatever that is, renewing its lease meanwhile. */
function run({ kind, handler, leaseSeconds, retrySeconds, store, clock, log }: Working, job: Taken): Run {
  const mine = sql`id = ${job.id} and holder = ${job.holder} and state = 'running'`;
  const aborting = new AbortController();
  let why: Stop | undefined;
  const stop = (reason: Stop) => {
    why ??= reason;
    aborting.abort(reason === 'cancelled' ? new Cancelled() : new Fault('overloaded', 'The job was interrupted.'));
  };

  let renewed = clock.monotonic();
  let hasEnded = false;
  let cancelTimer = () => {};
  const renewLater = () => {
    if (!hasEnded) cancelTimer = clock.after((leaseSeconds * 1000) / 3, () => void renew().then(renewLater));
  };

  async function renew(progress?: Json): Promise<void> {
    const asked = clock.monotonic();
    try {
      const { rows } = await sql<{ cancel_wanted: boolean }>`
        update job set lease_until = now() + make_interval(secs => ${leaseSeconds}), progress = coalesce(${progress === undefined ? null : JSON.stringify(progress)}::jsonb, progress)
        where ${mine} returning cancel_wanted`.execute(store.db);
      if (!rows[0]) stop('lost');
      else if (rows[0].cancel_wanted) stop('cancelled');
      renewed = asked;
    } catch (error) {
      if (clock.monotonic() - renewed > leaseSeconds * 1000) stop('lost');
      if (progress !== undefined) throw error;
    }
  }

  async function end(): Promise<void> {
    try {
      const result = await handler({ id: job.id, payload: job.payload, tries: job.tries, taken: job.taken, signal: aborting.signal, progress: renew });
      await settle(sql`state = 'done', result = ${JSON.stringify(result ?? null)}::jsonb, ended_at = now()`);
    } catch (error) {
      const fault = faultOf(error);
      if (why === 'lost') return;
      if (why === 'cancelled') await settle(sql`state = 'cancelled', ended_at = now()`);
      else if (why === 'closing') await settle(sql`state = 'waiting', tries = tries - 1, run_at = now()`);
      else if (isFinal(fault) || job.tries >= job.most_tries) {
        log.warn({ err: error, job: job.id, kind }, 'a job failed');
        await settle(sql`state = 'failed', error = ${fault.message}, ended_at = now()`);
      } else {
        log.info({ err: error, job: job.id, kind, tries: job.tries }, 'a job is tried again');
        const seconds = Math.min(retrySeconds * 2 ** (job.tries - 1), longestRetrySeconds) * (0.75 + Math.random() / 2);
        await settle(sql`state = 'waiting', error = ${fault.message}, run_at = now() + make_interval(secs => ${seconds})`);
      }
    }
  }

  /** Only while the lease is ours; a database that is away is asked again until it would be over. */
  async function settle(change: ReturnType<typeof sql>): Promise<void> {
    for (;;) {
      try {
        await sql`update job set ${change}, holder = null, lease_until = null where ${mine}`.execute(store.db);
        return;
      } catch (error) {
        if (clock.monotonic() - renewed > leaseSeconds * 1000)
          return log.error({ err: error, job: job.id }, 'the end of a job was not written: it will run again');
        await clock.sleep(Math.min(1000, leaseSeconds * 250));
      }
    }
  }

  renewLater();
  const ended = end().finally(() => {
    hasEnded = true;
    cancelTimer();
  });
  return { id: job.id, owner: job.owner, stop, ended };
}

/** How many jobs each owner has here. */
function ownersOf(running: Iterable<Run>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { owner } of running) counts[owner] = (counts[owner] ?? 0) + 1;
  return counts;
}

async function purgeSome(db: Database): Promise<number> {
  const gone = await sql`
    delete from job where id = any(array(select id from job where ended_at < now() - interval '30 days' limit ${purgeRows} for update skip locked))`.execute(
    db,
  );
  return Number(gone.numAffectedRows ?? 0n);
}

/** A refusal that is the job's own mistake. */
function isFinal({ code, status }: Fault): boolean {
  return status < 500 && code !== 'rate-limited' && code !== 'conflict' && code !== 'slow-client';
}

/** The jobs whose worker has died. */
async function rescue(db: Database, kind: string): Promise<void> {
  await sql`
    update job set holder = null, lease_until = null,
      state = case when cancel_wanted then 'cancelled' when tries >= most_tries then 'failed' else 'waiting' end,
      ended_at = case when cancel_wanted or tries >= most_tries then now() end,
      error = case when cancel_wanted then null else 'The process that worked on it ended.' end
    where id in (select id from job where kind = ${kind} and state = 'running' and lease_until < now() for update skip locked)`.execute(db);
}

async function millisecondsToNext(db: Database, kind: string, leaseSeconds: number): Promise<number> {
  const { rows } = await sql<{ seconds: number }>`
    select extract(epoch from least(
      (select min(case when run_at > now() then run_at else now() + interval '200 ms' end) from job where kind = ${kind} and state = 'waiting' and run_at > now() - interval '1 second'),
      (select min(lease_until) from job where kind = ${kind} and state = 'running'),
      now() + make_interval(secs => ${leaseSeconds})) - now())::float8 as seconds`.execute(db);
  return Math.max(10, Math.ceil(rows[0]!.seconds * 1000) + 5);
}

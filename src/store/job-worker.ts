import { sql } from 'kysely';
import { Cancelled } from '#kit/async/client-left';
import type { Clock } from '#kit/async/clock';
import { randomText } from '#kit/crypto/ids';
import { Fault, faultOf } from '#core/fault';
import type { Json } from '#core/json';
import { Pauses, Postponed } from '#store/job-pauses';
import type { Handler, WorkOptions } from './job.ts';
import type { StoreLog } from '#store/log';
import type { Database, Store } from '#store/open';

export const wakeTopic = 'jobs';
export const cancelTopic = 'jobs-cancel';

const pollMilliseconds = 5000;
const sorryMilliseconds = 1000;
const longestRetrySeconds = 300;

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
  /** It was cancelled while somebody had it who has died since. */
  readonly cancel_wanted: boolean;
  /** Another one each time a job is taken: what a former holder still writes touches nothing. */
  readonly holder: string;
}

/** Why a running job's signal was aborted. */
type Stop = 'cancelled' | 'lost' | 'closing';

interface Run {
  readonly id: string;
  readonly owner: string;
  readonly hasBegun: boolean;
  stop(why: Stop): void;
  /** @returns the seconds for which it was postponed, if it was */
  readonly ended: Promise<number | undefined>;
}

/** Takes jobs of a kind and runs them. @returns what stops it */
export function workOn(working: Working): () => Promise<void> {
  const { kind, concurrency, mostEach, leaseSeconds, store, clock, log } = working;
  const running = new Set<Run>(); // a job may be here twice: once with a lost lease
  const closing = new AbortController();
  let wake = new AbortController();
  const rouse = () => wake.abort();
  const pauses = new Pauses(clock, rouse);

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
    const { owner } = job;
    const started = run(working, job, () => pauses.began(owner));
    running.add(started);
    void started.ended.then((postponed) => {
      running.delete(started);
      if (postponed === undefined) pauses.ended(owner, ![...running].some((one) => one.owner === owner));
      else pauses.postpone(owner, postponed);
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
            order by run_at, id limit greatest(0, least(${count}, ${mostEach} - coalesce((${JSON.stringify(pauses.taken(running, mostEach))}::jsonb ->> owners.owner)::int, 0)))
          ) as waiting
        ) as one
        where owners.owner is not null
        order by turn, run_at, id limit ${count}
      ), next as (
        select id from job where id in (select id from first) and state = 'waiting' for update skip locked
      )
      update job set state = 'running', tries = tries + 1, taken = taken + 1, holder = ${holder}, lease_until = now() + make_interval(secs => ${leaseSeconds}), error = null
      from next where job.id = next.id
      returning job.id, payload, owner, tries, taken, most_tries, cancel_wanted`.execute(store.db);
    return rows.map((row) => ({ ...row, holder }));
  }

  const looked = look();
  return async () => {
    closing.abort();
    pauses.close();
    for (const end of endSubscriptions) end();
    await looked;
    for (const one of running) one.stop('closing');
    await Promise.all([...running].map((one) => one.ended));
  };
}

/** Runs one job to its end, whatever that is, renewing its lease meanwhile. */
function run({ kind, handler, leaseSeconds, retrySeconds, store, clock, log }: Working, job: Taken, began: () => void): Run {
  const mine = sql`id = ${job.id} and holder = ${job.holder} and state = 'running'`;
  const aborting = new AbortController();
  let why: Stop | undefined;
  const stop = (reason: Stop) => {
    why ??= reason;
    aborting.abort(reason === 'cancelled' ? new Cancelled() : new Fault('overloaded', 'The job was interrupted.'));
  };

  if (job.cancel_wanted) stop('cancelled');

  let renewed = clock.monotonic();
  let hasEnded = false;
  let hasBegun = false;
  const begun = () => {
    if (hasBegun) return;
    hasBegun = true;
    began();
  };
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

  async function end(): Promise<number | undefined> {
    try {
      const result = await handler({ id: job.id, payload: job.payload, tries: job.tries, taken: job.taken, signal: aborting.signal, progress: renew, begun });
      await settle(sql`state = 'done', result = ${JSON.stringify(result ?? null)}::jsonb, ended_at = now()`);
    } catch (error) {
      const fault = faultOf(error);
      if (why === 'lost') return undefined;
      if (why === 'cancelled') await settle(sql`state = 'cancelled', ended_at = now()`);
      else if (why === 'closing') await settle(sql`state = 'waiting', tries = tries - 1, run_at = now()`);
      else if (error instanceof Postponed) {
        await settle(sql`state = 'waiting', tries = tries - 1`);
        return error.seconds;
      } else if (isFinal(fault) || job.tries >= job.most_tries) {
        log.warn({ err: error, job: job.id, kind }, 'a job failed');
        await settle(sql`state = 'failed', error = ${fault.message}, ended_at = now()`);
      } else {
        log.info({ err: error, job: job.id, kind, tries: job.tries }, 'a job is tried again');
        const seconds = Math.min(retrySeconds * 2 ** (job.tries - 1), longestRetrySeconds) * (0.75 + Math.random() / 2);
        await settle(sql`state = 'waiting', error = ${fault.message}, run_at = now() + make_interval(secs => ${seconds})`);
      }
    }
    return undefined;
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
  return {
    id: job.id,
    owner: job.owner,
    get hasBegun() {
      return hasBegun;
    },
    stop,
    ended,
  };
}

/** A refusal that is the job's own mistake. */
function isFinal({ code, status }: Fault): boolean {
  return status < 500 && code !== 'rate-limited' && code !== 'conflict' && code !== 'slow-client';
}

/** The jobs whose worker has died. One that is cancelled is handed to another all the same: what it has begun is to be ended. */
async function rescue(db: Database, kind: string): Promise<void> {
  await sql`
    update job set holder = null, lease_until = null,
      state = case when tries < most_tries then 'waiting' when cancel_wanted then 'cancelled' else 'failed' end,
      ended_at = case when tries >= most_tries then now() end,
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

import { sql } from 'kysely';
import { randomText } from '#kit/crypto/ids';
import { Pauses } from '#store/job-pauses';
import type { Clock } from '#kit/async/clock';
import type { WorkOptions } from './job.ts';
import { watchFor } from '#store/job-watch';
import { JobRun, type JobRunDeps, type TakenJob } from './job-run.ts';
import type { Database } from '#store/open';

export const wakeTopic = 'jobs';
export const cancelTopic = 'jobs-cancel';

/** What is due later is for the watch to see. */
const soonMilliseconds = 5000;
const retryMilliseconds = 1000;

interface Working extends Required<WorkOptions>, JobRunDeps {
  /** Its id; empty: this process has no files that others lack. */
  readonly place: string;
}

export interface JobWorker {
  readonly running: () => number;
  /** Takes no more, gives running jobs `graceSeconds` to end, then aborts them and gives them back. */
  readonly stop: (graceSeconds: number) => Promise<void>;
}

/** Takes jobs of a kind and runs them. */
export function workOn(working: Working): JobWorker {
  const { kind, concurrency, mostEach, leaseSeconds, store, clock, log, place } = working;
  const running = new Set<JobRun>(); // a job may be here twice: once with a lost lease
  let roused = Promise.withResolvers<void>();
  let [isClosing, isAway] = [false, false]; // of a database that is away is said once that it is
  let rescuedFrom = 0;
  const rouse = () => roused.resolve();
  /** Nobody could renew a lease while the database was away: those who work on get the time to. */
  const spare = () => void (rescuedFrom = clock.monotonic() + leaseSeconds * 1000);
  const pauses = new Pauses(clock, rouse);
  const endSubscriptions = subscriptions(working, running, { rouse, spare });

  async function work(): Promise<void> {
    for (let cancel = () => {}; ;) {
      await roused.promise;
      cancel();
      if (isClosing) return;
      roused = Promise.withResolvers();
      const pause = await look();
      if (pause < soonMilliseconds) cancel = clock.after(pause, rouse);
    }
  }

  /** Takes what there is. @returns the milliseconds until there may be more */
  async function look(): Promise<number> {
    try {
      if (clock.monotonic() >= rescuedFrom) await rescue(store.db, kind);
      const free = concurrency - running.size;
      const taken = free > 0 && !isClosing ? await take(working, free, pauses.taken(running, mostEach)) : [];
      for (const job of taken) begin(job);
      const pause = free > 0 ? await millisecondsToNext(store.db, kind, place) : Infinity;
      isAway = false;
      return pause;
    } catch (error) {
      if (!isAway) log.warn({ err: error, kind }, 'jobs cannot be taken: it is tried again every second');
      isAway = true;
      spare();
      return retryMilliseconds;
    }
  }

  function begin(job: TakenJob): void {
    const { owner } = job;
    const started = new JobRun(working, job, () => pauses.began(owner));
    running.add(started);
    void started.ended.then((postponed) => {
      running.delete(started);
      if (postponed === undefined) pauses.ended(owner, ![...running].some((one) => one.owner === owner));
      else pauses.postpone(owner, postponed);
      rouse();
    });
  }

  const worked = work();
  const endWatch = watchFor({ kind, place, leaseSeconds, rouse }, working);
  return {
    running: () => running.size,
    async stop(graceSeconds) {
      isClosing = true;
      rouse();
      await Promise.all([worked, endWatch()]);
      await within(graceSeconds, allEnded(running), clock);
      pauses.close();
      for (const end of endSubscriptions) end();
      for (const one of running) one.stop('closing');
      await allEnded(running);
    },
  };
}

/**
 * Owners take turns: the next place goes to whoever has fewest, and of those to whoever has waited longest.
 * @param taken how many of the places of an owner here are taken
 */
async function take({ kind, place, mostEach, leaseSeconds, store }: Working, count: number, taken: Record<string, number>): Promise<TakenJob[]> {
  const holder = randomText(16);
  const { rows } = await sql<Omit<TakenJob, 'holder'>>`
    with recursive owners as (
      (select owner from job where kind = ${kind} and state = 'waiting' order by owner limit 1)
      union all
      select (select owner from job where kind = ${kind} and state = 'waiting' and owner > owners.owner order by owner limit 1) from owners where owner is not null
    ), first as (
      select one.*, one.place + (select count(*) from job where kind = ${kind} and state = 'running' and owner = owners.owner) as turn
      from owners cross join lateral (
        select id, run_at, row_number() over (order by run_at, id) as place
        from (
          select id, run_at from job where kind = ${kind} and state = 'waiting' and owner = owners.owner and run_at <= now() and place in ('', ${place})
          order by run_at, id limit greatest(0, least(${count}, ${mostEach} - coalesce((${JSON.stringify(taken)}::jsonb ->> owners.owner)::int, 0)))
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

/** Wakes the worker for new jobs of its kind, and stops those that are cancelled. @returns what ends that */
function subscriptions(
  { store, kind }: Working,
  running: ReadonlySet<JobRun>,
  { rouse, spare }: { readonly rouse: () => void; readonly spare: () => void },
): readonly (() => void)[] {
  return [
    store.subscribe(wakeTopic, (change) => {
      if (change.type === 'reset') spare();
      if (change.type === 'reset' || change.payload === kind) rouse();
    }),
    store.subscribe(cancelTopic, (change) => {
      for (const one of running) if (change.type === 'change' && change.payload === one.id) one.stop('cancelled');
    }),
  ];
}

const allEnded = (running: ReadonlySet<JobRun>) => Promise.all([...running].map((one) => one.ended));

/** Waits for something, for `seconds` at most. */
async function within(seconds: number, awaited: Promise<unknown>, clock: Clock): Promise<void> {
  if (seconds === 0) return;
  const over = new AbortController();
  await Promise.race([awaited, clock.sleep(seconds * 1000, over.signal).catch(() => {})]);
  over.abort();
}

/** The jobs whose worker has died. A cancelled one is handed to another worker all the same, which ends what was begun. */
async function rescue(db: Database, kind: string): Promise<void> {
  await sql`
    update job set holder = null, lease_until = null,
      state = case when tries < most_tries then 'waiting' when cancel_wanted then 'cancelled' else 'failed' end,
      ended_at = case when tries >= most_tries then now() end,
      error = case when cancel_wanted then null else 'The process that worked on it ended.' end
    where id in (select id from job where kind = ${kind} and state = 'running' and lease_until < now() for update skip locked)`.execute(db);
}

/** A job whose time has just come, and that another process takes or an owner's limit holds back, is looked at again soon. */
async function millisecondsToNext(db: Database, kind: string, place: string): Promise<number> {
  const { rows } = await sql<{ seconds: number | null }>`
    select extract(epoch from min(case when run_at > now() then run_at else now() + interval '200 ms' end) - now())::float8 as seconds from job
    where kind = ${kind} and state = 'waiting' and run_at > now() - interval '1 second' and place in ('', ${place})`.execute(db);
  const [{ seconds }] = rows as [{ seconds: number | null }];
  return seconds === null ? Infinity : Math.max(10, Math.ceil(seconds * 1000) + 5);
}

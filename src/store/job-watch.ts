import { sql } from 'kysely';
import { JobUpkeep, type JobUpkeepDeps } from '#store/job-upkeep';
import type { Store } from '#store/open';

const pollMilliseconds = 5000;
const retryMilliseconds = 1000;

export interface Watched {
  readonly kind: string;
  /** The id of its place; empty where it has no files that others lack. */
  readonly place: string;
  readonly leaseSeconds: number;
  readonly rouse: () => void;
}

/** One for each database on which this process works. */
const watches = new WeakMap<Store, JobWatch>();

/** Rouses a worker from now on. @returns what ends that; it resolves when, with its last worker, the watch has ended */
export function watchFor(worker: Watched, deps: JobUpkeepDeps): () => Promise<void> {
  const watch = watches.get(deps.store) ?? new JobWatch(deps);
  watches.set(deps.store, watch);
  return watch.add(worker);
}

/**
 * Rouses workers when there are jobs that no change announces: those whose time has come, those whose worker has died, and those that were added while the
 * change feed was lost. Two statements in five seconds serve all kinds, so that a process without work costs next to nothing.
 */
class JobWatch {
  readonly #deps: JobUpkeepDeps;
  readonly #workers = new Set<Watched>();
  readonly #upkeep: JobUpkeep;
  #wake = new AbortController();
  #looking = Promise.resolve(0);
  #isWatching = false;
  #isAway = false;

  constructor(deps: JobUpkeepDeps) {
    this.#deps = deps;
    this.#upkeep = new JobUpkeep(deps);
  }

  add(worker: Watched): () => Promise<void> {
    this.#workers.add(worker);
    this.#wake.abort();
    if (!this.#isWatching) void this.#watch();
    return async () => {
      this.#workers.delete(worker);
      if (this.#workers.size > 0) return;
      this.#wake.abort();
      await this.#looking;
      await this.#upkeep.done;
    };
  }

  async #watch(): Promise<void> {
    const { clock, store } = this.#deps;
    this.#isWatching = true;
    while (this.#workers.size > 0) {
      this.#wake = new AbortController();
      this.#looking = this.#look();
      await clock.sleep(await this.#looking, this.#wake.signal).catch(() => {});
    }
    watches.delete(store); // who works again gets a new one
  }

  /** @returns the milliseconds until the next look */
  async #look(): Promise<number> {
    const workers = [...this.#workers];
    const pause = Math.min(pollMilliseconds, ...workers.map(({ leaseSeconds }) => leaseSeconds * 1000));
    try {
      await this.#upkeep.look(workers);
      for (const { milliseconds, ...due } of await dueJobs(this.#deps.store, workers)) if (milliseconds < pause) this.#rouseIn(milliseconds, due);
      this.#isAway = false;
      return pause;
    } catch (error) {
      if (!this.#isAway) this.#deps.log.warn({ err: error }, 'jobs cannot be looked for: it is tried again every second');
      this.#isAway = true;
      return retryMilliseconds;
    }
  }

  #rouseIn(milliseconds: number, { kind, place }: Pick<Watched, 'kind' | 'place'>): void {
    const rouse = () => {
      for (const worker of this.#workers) if (worker.kind === kind && worker.place === place) worker.rouse();
    };
    if (milliseconds <= 0) rouse();
    else this.#deps.clock.after(milliseconds, rouse);
  }
}

interface DueJob extends Pick<Watched, 'kind' | 'place'> {
  readonly milliseconds: number;
}

/** When the next job of each worker is to be looked at, if it has one: its time comes, or the lease of the process that works on it ends. */
async function dueJobs({ db }: Store, workers: readonly Watched[]): Promise<readonly DueJob[]> {
  const [kinds, places] = [workers.map(({ kind }) => kind), workers.map(({ place }) => place)];
  const { rows } = await sql<DueJob & { readonly seconds: number | null }>`
    select kind, place, extract(epoch from least(
      (select min(run_at) from job where job.kind = worker.kind and state = 'waiting' and job.place in ('', worker.place)),
      (select min(lease_until) from job where job.kind = worker.kind and state = 'running')) - now())::float8 as seconds
    from (select distinct * from unnest(${kinds}::text[], ${places}::text[]) as one (kind, place)) as worker`.execute(db);
  return rows.flatMap(({ kind, place, seconds }) => (seconds === null ? [] : [{ kind, place, milliseconds: seconds > 0 ? Math.ceil(seconds * 1000) + 5 : 0 }]));
}

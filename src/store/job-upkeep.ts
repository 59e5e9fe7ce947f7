import { sql } from 'kysely';
import type { Clock } from '#kit/async/clock';
import { endHomeless, seenAt } from '#store/job-places';
import type { StoreLog } from '#store/log';
import type { Store } from '#store/open';
import { inPieces, rowsChanged } from '#store/pieces';

const retryMilliseconds = 1000;
const purgeMilliseconds = 3_600_000;
const purgeRows = 1000;
const purgePieces = 100;

export interface JobUpkeepDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: StoreLog;
}

/** What a process does from time to time for all jobs: it says where it works, ends jobs that nobody can do any more, and deletes those that ended long ago. */
export class JobUpkeep {
  /** Resolves when nothing is being deleted. */
  done: Promise<void> | undefined;
  readonly #deps: JobUpkeepDeps;
  readonly #seen: (place: string) => Promise<void>;
  #purgeAt = -Infinity;

  constructor(deps: JobUpkeepDeps) {
    this.#deps = deps;
    this.#seen = seenAt(deps);
  }

  async look(workers: readonly { readonly kind: string; readonly place: string }[]): Promise<void> {
    for (const place of new Set(workers.map((worker) => worker.place))) if (place) await this.#seen(place);
    const kinds = new Set(workers.map(({ kind }) => kind));
    await endHomeless(this.#deps.store.db, [...kinds]);
    this.#purge();
  }

  /** Goes on beside the taking of jobs. What one round leaves the next takes, soon. */
  #purge(): void {
    const { store, clock, log } = this.#deps;
    if (this.done || clock.monotonic() < this.#purgeAt) return;
    this.done = inPieces(() => rowsChanged(oldJobs, store.db), { size: purgeRows, most: purgePieces })
      .then((done) => void (this.#purgeAt = clock.monotonic() + (done ? purgeMilliseconds : 0)))
      .catch((error: unknown) => {
        this.#purgeAt = clock.monotonic() + retryMilliseconds;
        log.warn({ err: error }, 'jobs that ended long ago cannot be deleted');
      })
      .finally(() => (this.done = undefined));
  }
}

const oldJobs = sql`
  delete from job where id = any(array(select id from job where ended_at < now() - interval '30 days' limit ${purgeRows} for update skip locked))`;

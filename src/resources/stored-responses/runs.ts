import { Fault } from '#core/fault';
import { Postponed } from '#store/job-pauses';
import type { Jobs } from '#store/jobs';
import type { Store } from '#store/open';
import { jobOwner } from '../owner.ts';
import type { Entry } from './entry-table.ts';
import type { StoredResponses } from './store.ts';

/** Responses that are worked on in the background: each is a job, which outlives the process. */
export interface Runs<Body> {
  /**
   * Keeps the entry and queues its run, both or neither.
   *
   * @param make the entry, from the id of its job
   * @throws Fault `rate-limited` where the user has as many as may be
   */
  begin(make: (job: string) => Entry<Body>, keyId: number): Promise<void>;
  /** Ends a run, wherever it runs. */
  cancel(job: string): Promise<void>;
  /** The runs of a user that have not been taken up. */
  waiting(userId: number): Promise<readonly Waiting[]>;
  /** Takes runs from now on. A run whose handler gives seconds could not begin for a limit of its user's: it waits so long at least, in its place. */
  work(handler: (run: Running) => Promise<number | undefined>): void;
}

export interface Waiting {
  readonly job: string;
  /** Of the response. */
  readonly id: string;
  /** Of the key that it was asked with. */
  readonly keyId: number;
}

export interface Running {
  readonly userId: number;
  readonly id: string;
  /** 1 the first time. */
  readonly tries: number;
  /** How often it was taken up: 1 the first time. Those that an orderly stop interrupted are not counted in `tries`. */
  readonly taken: number;
  /** Aborted when the run is cancelled, or the process stops. */
  readonly signal: AbortSignal;
  /** The limits of its user let it in. */
  begun(): void;
}

const kind = 'response';
const concurrency = 64;
const leaseSeconds = 10;
const retrySeconds = 10;
/** Of one user, in one process: others find a place at once while one has a thousand runs. */
const mostEach = 48;
/** The handler says when it is enough: a response whose job has failed by itself would never end. */
const mostTries = 1_000_000;

export interface RunsDeps<Body> {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly responses: StoredResponses<Body>;
  /** What a user may have at once. */
  readonly most: () => number;
}

export function openRuns<Body>({ store, jobs, responses, most }: RunsDeps<Body>): Runs<Body> {
  return {
    async begin(make, keyId) {
      const { userId, id } = make('');
      const owner = jobOwner(userId);
      if ((await jobs.pending(kind, owner)) >= most()) throw tooMany(most());
      await store.transaction(async (inside) => {
        const job = await jobs.add(kind, { userId, id, keyId }, { inside, owner, tries: mostTries });
        await responses.keep(make(job), inside);
        if ((await jobs.pending(kind, owner, inside)) > most()) throw tooMany(most());
      });
    },
    async cancel(job) {
      await jobs.cancel(job);
    },
    async waiting(userId) {
      const found = await jobs.waiting(kind, jobOwner(userId));
      return found.map(({ id: job, payload }) => ({ job, ...(payload as Omit<Waiting, 'job'>) }));
    },
    work(handler) {
      jobs.work(
        kind,
        async ({ payload, tries, taken, signal, begun }) => {
          const { userId, id } = payload as { readonly userId: number; readonly id: string };
          const seconds = await handler({ userId, id, tries, taken, signal, begun });
          if (seconds !== undefined) throw new Postponed(seconds);
        },
        { concurrency, mostEach, leaseSeconds },
      );
    },
  };
}

const tooMany = (most: number) =>
  new Fault('rate-limited', `${most} background responses of this user are waiting or running: ask again when some have ended.`, { retryAfter: retrySeconds });

import { Fault } from '#core/fault';
import type { BackgroundResponses, WaitingResponse } from '#core/stored-responses';
import { Postponed } from '#store/job-pauses';
import type { Jobs } from '#store/jobs';
import type { Store } from '#store/open';
import { jobOwner } from '../owner.ts';
import type { ResponseStore } from './store.ts';

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
  readonly responses: ResponseStore<Body>;
  /** What a user may have at once. */
  readonly most: () => number;
}

export function openRuns<Body>({ store, jobs, responses, most }: RunsDeps<Body>): BackgroundResponses<Body> {
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
      return found.map(({ id: job, payload }) => ({ job, ...(payload as Omit<WaitingResponse, 'job'>) }));
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

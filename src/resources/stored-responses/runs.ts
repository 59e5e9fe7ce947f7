import type { Jobs } from '#store/jobs';
import type { Store } from '#store/open';
import type { Entry, StoredResponses } from './store.ts';

/** Responses that are worked on in the background: each is a job, which outlives the process. */
export interface Runs<Body> {
  /** Keeps the entry and queues its run, both or neither. @param make the entry, from the id of its job */
  begin(make: (job: string) => Entry<Body>): Promise<void>;
  /** Ends a run, wherever it runs. */
  cancel(job: string): Promise<void>;
  /** Takes runs from now on. */
  work(handler: (run: Running) => Promise<void>): void;
}

export interface Running {
  readonly userId: number;
  readonly id: string;
  /** How often it was taken up: 1 the first time. */
  readonly taken: number;
  /** Aborted when the run is cancelled, or the process stops. */
  readonly signal: AbortSignal;
}

const kind = 'response';
const concurrency = 64;
const leaseSeconds = 10;

export function openRuns<Body>(store: Store, jobs: Jobs, responses: StoredResponses<Body>): Runs<Body> {
  return {
    async begin(make) {
      await store.transaction(async (inside) => {
        const { userId, id } = make('');
        const job = await jobs.add(kind, { userId, id }, { inside });
        await responses.keep(make(job), inside);
      });
    },
    async cancel(job) {
      await jobs.cancel(job);
    },
    work(handler) {
      jobs.work(
        kind,
        async ({ payload, taken, signal }) => {
          const { userId, id } = payload as { readonly userId: number; readonly id: string };
          await handler({ userId, id, taken, signal });
        },
        { concurrency, leaseSeconds },
      );
    },
  };
}

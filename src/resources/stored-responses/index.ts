import type { BackgroundResponses, Conversations } from '#core/stored-responses';
import { jobs } from '#store/jobs';
import { openConversations } from './conversations.ts';
import { openRuns } from './runs.ts';
import { openStoredResponses, type StoredDeps, type ResponseStore } from './store.ts';
import { repeated } from '#kit/async/repeated';

export interface Keeping<Body> {
  readonly responses: ResponseStore<Body>;
  readonly conversations: Conversations<Body>;
  readonly runs: BackgroundResponses<Body>;
  readonly log: (problem: string, cause: unknown) => void;
  /** The number of background runs that this process works on now. */
  running(): number;
  /** Gives the runs `graceSeconds` to end, then interrupts them; they are taken up again where this can be done. */
  close(graceSeconds: number): Promise<void>;
}

const purgeMilliseconds = 600_000;
/** Where one round was not enough. */
const soonMilliseconds = 1000;

/** Responses, conversations and runs of one store, with what is done from time to time: old ones are deleted. */
export function openKeeping<Body>(deps: StoredDeps & Pick<Keeping<Body>, 'log'> & { readonly mostRuns: () => number }): Keeping<Body> {
  const { store, clock, log } = deps;
  const responses = openStoredResponses<Body>(deps);
  const working = jobs({ store, clock });
  const stopPurging = repeated({
    clock,
    milliseconds: purgeMilliseconds,
    work: async () => ((await responses.purge()) ? purgeMilliseconds : soonMilliseconds),
    failed: (cause) => log('Old responses could not be deleted.', cause),
  });
  return {
    responses,
    conversations: openConversations(deps, responses),
    runs: openRuns({ store, jobs: working, responses, most: deps.mostRuns }),
    log,
    running: () => working.running(),
    async close(graceSeconds) {
      stopPurging();
      await working.close(graceSeconds);
    },
  };
}

import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';

export interface Patience {
  readonly clock: Clock;
  /** Of the job: aborted when its lease is over. */
  readonly signal: AbortSignal;
}

/** Longer than a lease that is not renewed: the signal says when it is over. */
const mostMilliseconds = 20_000;
const pauseMilliseconds = 250;

/** Asks again while the database is away, as long as the lease of the run holds. @throws what the last try threw */
export async function patient<Result>(ask: () => Promise<Result>, { clock, signal }: Patience): Promise<Result> {
  const until = clock.monotonic() + mostMilliseconds;
  for (;;)
    try {
      return await ask();
    } catch (error) {
      if (!isAway(error) || signal.aborted || clock.monotonic() >= until) throw error;
      await clock.sleep(pauseMilliseconds, signal).catch(() => {});
    }
}

const isAway = (error: unknown): boolean => error instanceof Fault && error.code === 'overloaded';

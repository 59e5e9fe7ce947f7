import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';

export interface Patience {
  readonly clock: Clock;
  /** Aborted when asking is of no use any more. */
  readonly signal: AbortSignal;
  /** Longest time of all tries; absent: 20 seconds. */
  readonly milliseconds?: number;
}

const mostMilliseconds = 20_000;
const pauseMilliseconds = 250;

/** Asks again while the database is away: for work that holds a lease, as long as that lasts. @throws what the last try threw */
export async function patient<Result>(ask: () => Promise<Result>, { clock, signal, milliseconds = mostMilliseconds }: Patience): Promise<Result> {
  const until = clock.monotonic() + milliseconds;
  for (;;)
    try {
      return await ask();
    } catch (error) {
      if (!isAway(error) || signal.aborted || clock.monotonic() >= until) throw error;
      await clock.sleep(pauseMilliseconds, signal).catch(() => {});
    }
}

/** Says a fault of the store that the database is away, or too busy? */
export const isAway = (error: unknown): boolean => error instanceof Fault && error.code === 'overloaded';

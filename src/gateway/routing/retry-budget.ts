import type { Clock } from '#kit/async/clock';

/** Limits the retries sent to a struggling provider: a share of its requests of the last ten seconds, with a fixed minimum. */
export interface RetryBudget {
  /** Call once for a request, and not for its retries: they would add to the budget that they are taken from. */
  sent(provider: string): void;
  has(provider: string): boolean;
  /** @returns false when the budget is spent */
  take(provider: string): boolean;
}

const windowMilliseconds = 10_000;
const floor = 10;

interface Count {
  since: number;
  sent: number;
  taken: number;
  sentBefore: number;
  takenBefore: number;
}

/** @param share of the requests, 0 to 1; 1 disables the budget */
export function openRetryBudget(share: () => number, clock: Clock): RetryBudget {
  const counts = new Map<string, Count>();
  const countOf = (provider: string): Count => {
    const now = clock.monotonic();
    let count = counts.get(provider);
    if (!count) counts.set(provider, (count = { since: now, sent: 0, taken: 0, sentBefore: 0, takenBefore: 0 }));
    else if (now - count.since >= windowMilliseconds) {
      const stale = now - count.since >= 2 * windowMilliseconds;
      Object.assign(count, { since: now, sent: 0, taken: 0, sentBefore: stale ? 0 : count.sent, takenBefore: stale ? 0 : count.taken });
    }
    return count;
  };
  const has = (provider: string) => {
    const { sent, taken, sentBefore, takenBefore } = countOf(provider);
    return share() >= 1 || taken + takenBefore < Math.max(floor, (sent + sentBefore) * share());
  };
  return {
    sent: (provider) => void countOf(provider).sent++,
    has,
    take(provider) {
      if (!has(provider)) return false;
      countOf(provider).taken++;
      return true;
    },
  };
}

/** What a user may spend. A member left out is no limit of that kind, 0 allows nothing. */
export interface Plan {
  /** Plan tokens a calendar month, UTC. */
  readonly monthlyTokens?: number;
  readonly monthlyTrainTokens?: number;
  readonly monthlyUsd?: number;
  readonly requestsPerMinute?: number;
  readonly concurrentStreams?: number;
}

/** Spent so far in one month. */
export interface Spent {
  readonly planTokens: number;
  readonly costUsd: number;
}

/** The month of an instant as `2026-11`, UTC: the period of every balance. */
export function monthOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString().slice(0, 7);
}

/** Seconds until the first of the next month, UTC. */
export function secondsToNextMonth(milliseconds: number): number {
  const date = new Date(milliseconds);
  return Math.ceil((Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) - milliseconds) / 1000);
}

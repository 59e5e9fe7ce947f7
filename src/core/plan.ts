/** What a user may spend. A member left out is no limit of that kind, 0 allows nothing. */
export interface Plan {
  /** Plan tokens a calendar month, UTC. */
  readonly monthlyTokens?: number;
  readonly monthlyTrainTokens?: number;
  readonly monthlyUsd?: number;
  readonly requestsPerMinute?: number;
  readonly concurrentStreams?: number;
  /** The list of regions that its users' calls never leave. No limit of spending: the resolving of a model heeds it. */
  readonly residency?: string;
}

/** Is it what limits are kept as? What a database holds may be anything, and what is no limits must not count as none. */
export function areLimits(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The month of an instant as `2026-11`, UTC: the period of every balance. */
export function monthOf(milliseconds: number): string {
  if (milliseconds < month.from || milliseconds >= month.to) {
    const date = new Date(milliseconds);
    const [year, number] = [date.getUTCFullYear(), date.getUTCMonth()];
    month = { from: Date.UTC(year, number), to: Date.UTC(year, number + 1), text: date.toISOString().slice(0, 7) };
  }
  return month.text;
}

/** The last month asked for: nearly always the next one too, and every call asks. */
let month = { from: 0, to: 0, text: '' };

/** Seconds until the first of the next month, UTC. */
export function secondsToNextMonth(milliseconds: number): number {
  monthOf(milliseconds);
  return Math.ceil((month.to - milliseconds) / 1000);
}

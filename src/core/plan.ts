/** The limits of a user. An absent member means no limit of that kind; 0 allows nothing. */
export interface Plan {
  /** Plan tokens per calendar month, UTC. */
  readonly monthlyTokens?: number;
  readonly monthlyTrainTokens?: number;
  readonly monthlyUsd?: number;
  readonly requestsPerMinute?: number;
  readonly concurrentStreams?: number;
  /** The list of regions that its users' calls never leave. Not a spending limit: model resolution applies it. */
  readonly residency?: string;
}

/** Whether a stored value has the form of limits. A database may contain anything, and a malformed value must not count as "no limits". */
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

/** The month of the last call: nearly always that of the next one too, and every call needs it. */
let month = { from: 0, to: 0, text: '' };

/** Seconds until the first of the next month, UTC. */
export function secondsToNextMonth(milliseconds: number): number {
  monthOf(milliseconds);
  return Math.ceil((month.to - milliseconds) / 1000);
}

export interface ModelLimits {
  readonly monthlyTokens?: number;
  readonly monthlyUsd?: number;
  readonly requestsPerMinute?: number;
}

/** The limits of a user, a team or an API key. An absent member means no limit of that kind; 0 allows nothing. */
export interface Plan {
  /** Plan tokens of inference per calendar month, UTC. */
  readonly monthlyTokens?: number;
  readonly monthlyTrainTokens?: number;
  /** Plan tokens of inference per calendar day, UTC. */
  readonly dailyTokens?: number;
  readonly monthlyUsd?: number;
  readonly dailyUsd?: number;
  readonly requestsPerMinute?: number;
  /** Plan tokens of inference in any 60 seconds. */
  readonly tokensPerMinute?: number;
  readonly concurrentStreams?: number;
  /** Limits of single models, by their names or aliases. */
  readonly modelLimits?: Readonly<Record<string, ModelLimits>>;
  /** The names of the only models that there are. Not a spending limit: model resolution applies it. */
  readonly models?: readonly string[];
  /** The list of regions that its users' calls never leave. Not a spending limit: model resolution applies it. */
  readonly residency?: string;
  /** Bytes of the originals of a user's files. Not a spending limit: what stores files applies it. */
  readonly storageBytes?: number;
}

/** A team as a refusal names it. */
export interface LimitedTeam {
  readonly name: string;
  readonly plan: string;
  /** The team's own limits, which override those of the plan; undefined where it has none. */
  readonly limits: Plan | undefined;
}

/** Whether a stored value has the form of limits. A database may contain anything, and a malformed value must not count as "no limits". */
export const areLimits = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);

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

/** The day of an instant as `2026-11-21`, UTC. */
export function dayOf(milliseconds: number): string {
  if (milliseconds < day.from || milliseconds >= day.from + dayMilliseconds) {
    const from = Math.floor(milliseconds / dayMilliseconds) * dayMilliseconds;
    day = { from, text: new Date(from).toISOString().slice(0, 10) };
  }
  return day.text;
}

const dayMilliseconds = 86_400_000;
/** The day of the last call that a daily limit applied to. */
let day = { from: 0, text: '1970-01-01' };

/** Seconds until the next midnight, UTC. */
export const secondsToNextDay = (milliseconds: number): number => Math.ceil((dayMilliseconds - (milliseconds % dayMilliseconds)) / 1000);

/** Seconds until the first of the next month, UTC. */
export function secondsToNextMonth(milliseconds: number): number {
  monthOf(milliseconds);
  return Math.ceil((month.to - milliseconds) / 1000);
}

import type { Balance, Charge } from './account.ts';
import type { Attempt, Tags } from './context.ts';

/** How a call may end. */
export const ends = [
  'completed',
  'length',
  'tool',
  'refused',
  'client-left',
  'upstream-cut',
  'upstream-failed',
  'timed-out',
  'quota-ended',
  'gateway-died',
  'cancelled',
] as const;
export type End = (typeof ends)[number];

/** The interfaces whose requests are booked. */
export const bookedFaces = ['chatcompat', 'gencompat', 'messages', 'native', 'mcp'] as const;
export type BookedFace = (typeof bookedFaces)[number];

/** A usage row: the cost and the outcome of one step of a request. */
export interface UsageRow {
  readonly requestId: string;
  readonly step: number;
  /** The time of admission, milliseconds since 1970. */
  readonly at: number;
  readonly userId: number;
  /** Teams whose plans were charged as well. */
  readonly teamIds: readonly number[];
  readonly keyId: number;
  readonly app: string;
  readonly face: string;
  /** Absent where the caller gave none. */
  readonly tags?: Tags | undefined;
  /** As the client wrote it; `servedModel` is what answered. */
  readonly model: string;
  readonly servedModel: string;
  /** The configured model's name, where the client called it by another one. */
  readonly route?: string | undefined;
  /** The limited accounts that it was admitted by, and whose leases it settles; absent: none. */
  readonly charges?: readonly Charge[] | undefined;
  readonly provider: string;
  readonly region: string;
  readonly attempts: readonly Attempt[];
  /** HTTP status. */
  readonly status: number;
  readonly end: End;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cachedTokens: number;
  /** Tokens written to the provider's cache with a lifetime of some minutes, and of an hour. */
  readonly cacheWriteTokens: number;
  readonly cacheWrite1hTokens: number;
  readonly thoughtTokens: number;
  /** Who counted the tokens; `cached`: the answer came from the cache, without a provider. */
  readonly provenance: 'provider' | 'estimated' | 'partial' | 'cached';
  readonly planTokens: number;
  /** Which balance the plan tokens were taken from. */
  readonly balance: Balance;
  /** US dollars; null where the model has no price. */
  readonly costUsd: number | null;
  /** Milliseconds: waited for admission, until the first event that speaks, in all. */
  readonly queueMs: number;
  readonly firstTokenMs: number | null;
  readonly totalMs: number;
}

/** Members that a settled row omits when empty, as most are. */
type Omitted =
  | 'teamIds'
  | 'region'
  | 'cachedTokens'
  | 'cacheWriteTokens'
  | 'cacheWrite1hTokens'
  | 'thoughtTokens'
  | 'balance'
  | 'costUsd'
  | 'queueMs'
  | 'firstTokenMs';

/** A row as it is in the journal and in shipments: empty members are omitted, and the database fills them in (`usage_rows`). */
export type SettledRow = Omit<UsageRow, Omitted> & Partial<Pick<UsageRow, Omitted>>;

import type { Account, AccountKind } from './account.ts';

/**
 * A holder's report on an account, part of every message: the amount it returns and the permits it has used. If an answer is lost, the holder cannot know
 * whether its message took effect. So messages are numbered, and each reports everything since the last acknowledged one: the effects of the unacknowledged
 * messages are undone before this one counts. All amounts are in the account's unit.
 */
export interface LeaseReturn {
  readonly account: Account;
  /** Greater than the numbers of all earlier messages of this holder. */
  readonly turn: number;
  /** The last message about this account that was acknowledged, or a lower number before the first. */
  readonly heard: number;
  /** The amount returned since then. */
  readonly amount: number;
  /** Requests and tokens of a minute only: what of earlier grants was used since then, in order of use, with its age in seconds. */
  readonly used?: readonly { readonly count: number; readonly ageSeconds: number }[];
}

/** A holder's request for more of an account. */
export interface LeaseRequest extends LeaseReturn {
  readonly limit: number;
  /** The minimum: what the first waiting call needs. */
  readonly least: number;
  /** The sum of what all waiting calls want. */
  readonly waiting: number;
  /** The same with a reserve for future calls. */
  readonly wish: number;
  /** The part of these amounts that is spent already: it covers what was settled beyond the grants. */
  readonly debt?: number;
  /** The holder has had no grant of the account yet: its limit may be new, and what was used before it not booked yet. */
  readonly isFirst?: true;
}

export interface LeaseGrant {
  /** 0, or at least the minimum. */
  readonly granted: number;
  /** The amount booked for good, as known to the grantor. */
  readonly spent: number;
  /** The amount neither spent nor leased, after this grant. */
  readonly left: number;
}

/** Accounts without a period: a lease of them is a permit to start. */
export type PermitKind = 'requests' | 'streams';

/** Which permits of a silent holder an account belongs to: tokens of a minute end with the requests of a minute. */
export function permitKind(kind: AccountKind): PermitKind | undefined {
  if (kind === 'tokens') return 'requests';
  return kind === 'requests' || kind === 'streams' ? kind : undefined;
}

/**
 * The permits of a silent holder expire: it may be gone for good, and nothing else would ever return them. A holder uses no permit later than
 * `useMilliseconds` after its last contact. So its used requests count for one more minute, and a stream that it started has ended after the maximum duration
 * of a stream. A margin is added.
 */
export const permits = { useMilliseconds: 30_000, requestsSilentSeconds: 100, streamsSilentSeconds: 60 } as const;

/** Whether the source knows that its holder is alive. */
export interface Contact {
  /** Monotonic milliseconds until which permits may be used. */
  readonly goodUntil: number;
  /** Whether the source itself has revoked the lapsed permits. If not, it may have, and the holder reports them once more. */
  readonly isSourcesWord: boolean;
  /** Calls back on each contact with the source, with the kinds of permits that have lapsed in between: the holder no longer has those. */
  onReached(listen: (lapsed: readonly PermitKind[]) => void): void;
}

/** A source of leases: the database, or the parent process of a worker. */
export interface LeaseSource {
  /**
   * One grant for each request, in order.
   * @throws Fault `overloaded` while the source is unreachable; `conflict` when the holder was closed: its journal then belongs to another holder
   */
  lease(asks: readonly LeaseRequest[]): Promise<readonly LeaseGrant[]>;
  /** @throws as `lease` does; whether the return took effect is then unknown */
  giveBack(returns: readonly LeaseReturn[]): Promise<void>;
  /** Absent if the source never revokes leases. */
  readonly contact?: Contact;
  /** Calls back when another holder needs an account that is empty: this holder should return what is free of it. */
  onRecall(listen: (account: Account) => void): void;
}

/** The divisor by which holders share the remainder; near its end they take no more than they need. */
const share = 8;

/** The grant for a request, given the remainder. Every grantor uses this rule. */
export function grantOf({ least, waiting, wish }: LeaseRequest, left: number, holders: number): number {
  if (left < least) return 0;
  if (left < share * holders * least) return Math.min(left, Math.max(least, waiting));
  return Math.min(left, Math.max(least, waiting, Math.min(wish, left / share)));
}

import type { Account } from './account.ts';

/**
 * What a holder says of an account with every message: what it does not need, and which permits it has used. An answer may get lost, whether its message
 * did what it says or not. So messages are numbered, and each says everything since the last one whose answer came: what later ones did is undone before
 * this one counts. All amounts in the account's unit.
 */
export interface LeaseReturn {
  readonly account: Account;
  /** Greater than those of all earlier messages of this holder. */
  readonly turn: number;
  /** The last message about this account whose answer came, or any before the first. */
  readonly heard: number;
  /** Given back since then. */
  readonly amount: number;
  /** Requests only: permits of earlier grants that were used since then, in the order of their use, with their ages in seconds. */
  readonly used?: readonly { readonly count: number; readonly ageSeconds: number }[];
}

/** A holder's wish for more of an account. */
export interface LeaseRequest extends LeaseReturn {
  /** What the account may spend in all. */
  readonly limit: number;
  /** What the first call that waits needs to go on. */
  readonly least: number;
  /** What all calls that wait would like. */
  readonly waiting: number;
  /** The same with a stock for calls to come. */
  readonly wish: number;
  /** The part of these that pays for what was settled beyond what was granted: it is spent already. */
  readonly debt?: number;
}

export interface LeaseGrant {
  /** 0, or at least what was needed. */
  readonly granted: number;
  /** What is booked for good, as far as it is known where the grant was made. */
  readonly spent: number;
  /** What is neither spent nor leased, after this grant. */
  readonly left: number;
}

/** Accounts without a period: what is leased of them is a permit to begin. */
export type PermitKind = 'requests' | 'streams';

/**
 * The permits of a holder that is not heard of end by themselves: it may be gone for good, and nobody would ever get them back. It uses none later than
 * `useMilliseconds` after it was heard of last; so what it has used counts for a minute more, and a stream that it began has ended after the time a stream
 * may take. A margin comes on top.
 */
export const permits = { useMilliseconds: 30_000, requestsSilentSeconds: 100, streamsSilentSeconds: 60 } as const;

/** Whether the source knows that its holder lives. */
export interface Contact {
  /** Monotonic milliseconds until which permits may be used. */
  readonly goodUntil: number;
  /** Has the source itself taken back what has lapsed? Else it may have, and is told once more. */
  readonly isSourcesWord: boolean;
  /** Calls back each time the source was reached, with the kinds of permits that have lapsed meanwhile: those of before are this holder's no more. */
  onReached(listen: (lapsed: readonly PermitKind[]) => void): void;
}

/** Where leases come from: the database, or the parent process of a worker. */
export interface LeaseSource {
  /**
   * One grant for each ask, in order.
   *
   * @throws Fault `overloaded` while the source is away; `conflict` when the holder was closed: its journal belongs to somebody else now
   */
  lease(asks: readonly LeaseRequest[]): Promise<readonly LeaseGrant[]>;
  /** @throws as `lease` does; whether it was taken is then not known */
  giveBack(returns: readonly LeaseReturn[]): Promise<void>;
  /** Absent where nobody else ends what is held. */
  readonly contact?: Contact;
  /** Calls back when another holder stands before an empty account: what is free of it should be given back. */
  onRecall(listen: (account: Account) => void): void;
}

/** Holders share what is left by this part, and near the edge take no more than they need. */
const share = 8;

/** What an ask is granted of what is left. The one rule, wherever a grant is made. */
export function grantOf({ least, waiting, wish }: LeaseRequest, left: number, holders: number): number {
  if (left < least) return 0;
  if (left < share * holders * least) return Math.min(left, Math.max(least, waiting));
  return Math.min(left, Math.max(least, waiting, Math.min(wish, left / share)));
}

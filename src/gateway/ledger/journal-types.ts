import type { Fault } from '#model/fault';
import type { Model } from '#model/target';
import type { UsageRow } from '#model/usage-row';

/** A call that was let in: enough to book it, should this process die before it has ended. */
export interface Began {
  readonly requestId: string;
  readonly step: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly userId: number;
  readonly teamIds: readonly number[];
  readonly keyId: number;
  readonly app: string;
  readonly face: string;
  readonly model: string;
  readonly balance: UsageRow['balance'];
  /** About as many as the prompt has. */
  readonly promptTokens: number;
  /** Plan tokens for one model token. */
  readonly rate: Model['rate'];
  /** US dollars for a million tokens. */
  readonly price?: Model['price'];
}

/** What the ledger writes down before it happens, so that no death of the process loses it. */
export interface Journal {
  began(began: Began): void;
  /** So many output tokens have been said so far. */
  spoke(requestId: string, step: number, outputTokens: number): void;
  settled(row: UsageRow): void;
  /** Why nothing new can be written down: what cannot be booked must not be spent. */
  readonly trouble: Fault | undefined;
}

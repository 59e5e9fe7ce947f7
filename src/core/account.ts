/** The owner of a limit. */
export type Owner = `user:${number}` | `team:${number}`;

/** Inference and training have separate balances of plan tokens. */
export type Balance = 'inference' | 'train';

/** Plan tokens of inference and of training, US dollars, requests of the last minute, concurrent streams. */
export type AccountKind = Balance | 'usd' | 'requests' | 'streams';

/** One limit of one owner. `month` as `2026-11` for monthly limits, empty for requests and streams. */
export interface Account {
  readonly owner: Owner;
  readonly kind: AccountKind;
  readonly month: string;
}

/** The account as a lookup key. */
export function accountName({ owner, kind, month }: Account): string {
  return `${owner} ${kind} ${month}`;
}

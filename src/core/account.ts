/** Whose limit it is. */
export type Owner = `user:${number}` | `team:${number}`;

/** Plan tokens are counted apart for asking models and for training. */
export type Balance = 'inference' | 'train';

/** Plan tokens of inference and of training, US dollars, requests of the last minute, streams that run now. */
export type AccountKind = Balance | 'usd' | 'requests' | 'streams';

/** One limit of one owner. `month` as `2026-11` for what is counted by the month, empty for requests and streams. */
export interface Account {
  readonly owner: Owner;
  readonly kind: AccountKind;
  readonly month: string;
}

/** The account as one text, to be looked up by. */
export function accountName({ owner, kind, month }: Account): string {
  return `${owner} ${kind} ${month}`;
}

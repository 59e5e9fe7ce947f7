import { accountName, type Account, type Balance, type Book } from '#core/account';
import { monthOf } from '#core/plan';
import type { SettledRow } from '#core/usage-row';

/** So much was settled of an account. */
export interface Booked {
  readonly account: Account;
  readonly amount: number;
}

/** What the rows of a journal have settled of leases, by account. Places only grow, so that a row counts once however often it is read. */
export class Bookings {
  readonly #sums = new Map<string, { readonly account: Account; amount: number }>();
  #to = 0;

  /** @param to the place behind the row */
  book({ charges = [], planTokens, costUsd = 0, at }: SettledRow, to: number): void {
    if (to <= this.#to) return;
    this.#to = to;
    const month = monthOf(at);
    for (const charge of charges) {
      const kind = charge.slice(0, charge.indexOf(' ')) as Balance | 'usd';
      this.#add({ owner: charge.slice(kind.length + 1) as Book, kind, month }, kind === 'usd' ? (costUsd ?? 0) : planTokens);
    }
  }

  /** What was booked since this was last called. */
  take(): readonly Booked[] {
    const taken = [...this.#sums.values()];
    this.#sums.clear();
    return taken;
  }

  #add(account: Account, amount: number): void {
    const name = accountName(account);
    const sum = this.#sums.get(name);
    if (sum) sum.amount += amount;
    else this.#sums.set(name, { account, amount });
  }
}

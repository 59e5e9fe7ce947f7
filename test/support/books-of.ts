import { sql } from 'kysely';
import { randomText } from '#kit/crypto/ids';
import type { Book } from '#core/account';
import type { UsageRow } from '#core/usage-row';
import { openLogs, type Logs } from '#resources/usage/logs';
import { openShipping, type Shipping } from '#resources/usage/ship';
import { openSums, type Sums } from '#resources/usage/sums';
import type { Store } from '#store/open';

/** Dates back the creation of each month's partition, which the test has just made. */
export async function asOld({ db }: Pick<Store, 'db'>): Promise<void> {
  const { rows } = await sql<{
    name: string;
  }>`select inhrelid::regclass::text as name from pg_inherits where inhparent = any('{usage,usage_hour,usage_overall,spent}'::regclass[])`.execute(db);
  for (const { name } of rows) await sql.raw(`comment on table ${name} is null`).execute(db);
}

/** What an owner spent in a month. */
export interface Booked {
  readonly inference: number;
  readonly train: number;
  readonly usd: number;
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** All functions on the usage tables of a store. */
export interface Books extends Shipping, Logs, Sums {
  /** What an owner has spent in a month such as `2026-11`. */
  spentOf(owner: Book, month: string): Promise<Booked>;
  /** Books rows as the journal of an unknown holder would. */
  record(rows: readonly UsageRow[]): Promise<readonly number[]>;
}

export function booksOf(store: Store): Books {
  const shipping = openShipping(store);
  return {
    ...shipping,
    ...openLogs(store),
    ...openSums(store),
    async spentOf(owner, month) {
      const { rows } = await sql<Booked>`
        select inference, train, usd::double precision, requests, input_tokens as "inputTokens", output_tokens as "outputTokens"
        from spent where owner = ${owner} and month = ${month}`.execute(store.db);
      return rows[0] ?? { inference: 0, train: 0, usd: 0, requests: 0, inputTokens: 0, outputTokens: 0 };
    },
    record: (rows) => shipping.ship({ holder: 'nobody', journal: `nobody/${randomText(16)}`, from: 0, to: 1, rows: Buffer.from(JSON.stringify(rows)) }),
  };
}

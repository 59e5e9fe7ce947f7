import { sql } from 'kysely';
import type { Owner } from '#model/account';
import type { Spent } from '#model/plan';
import type { UsageRow } from '#model/usage-row';
import type { Store } from '#store/open';
import { openLogs, type Logs } from './logs.ts';
import { openShipping, type Shipping } from './ship.ts';
import { openSums, type Sums } from './sums.ts';

/** What has been booked for an owner in a month. */
export interface Booked {
  readonly inference: number;
  readonly train: number;
  readonly usd: number;
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The books on disk: a row for each step of a request, and what they add up to. */
export interface Usage extends Shipping, Logs, Sums {
  /** What an owner has spent in a month such as `2026-11`. */
  spentOf(owner: Owner, month: string): Promise<Booked>;
  /** Plan tokens and US dollars booked for a user in a month such as `2026-11`. */
  spent(userId: number, month: string): Promise<Spent>;
  /** Adds rows and their sums in one transaction. A row that is there already changes nothing, so a batch may be sent again. */
  record(rows: readonly UsageRow[]): Promise<void>;
}

export function openUsage(store: Store): Usage {
  const shipping = openShipping(store);
  const spentOf: Usage['spentOf'] = async (owner, month) => {
    const { rows } = await sql<Booked>`
      select inference, train, usd::double precision, requests, input_tokens as "inputTokens", output_tokens as "outputTokens"
      from spent where owner = ${owner} and month = ${month}`.execute(store.db);
    return rows[0] ?? { inference: 0, train: 0, usd: 0, requests: 0, inputTokens: 0, outputTokens: 0 };
  };
  return {
    ...shipping,
    ...openLogs(store),
    ...openSums(store),
    spentOf,
    async spent(userId, month) {
      const { inference, usd } = await spentOf(`user:${userId}`, month);
      return { planTokens: inference, costUsd: usd };
    },
    record: (rows) => shipping.book(JSON.stringify(rows.map(storable))),
  };
}

/** Text that a stranger wrote, as the database takes it: the sign for unreadable in place of NUL and half characters. */
function storable(row: UsageRow): UsageRow {
  const clean = (text: string) => text.replaceAll('\0', '\ufffd').toWellFormed();
  return { ...row, app: clean(row.app), model: clean(row.model), servedModel: clean(row.servedModel) };
}

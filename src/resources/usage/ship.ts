import { sql } from 'kysely';
import { Fault } from '#core/fault';
import type { UsageSink } from '#core/usage-sink';
import { SqlError } from '#store/sql-error';
import type { Database, Store } from '#store/open';
import { withMonths } from './months.ts';

export type Shipping = Pick<UsageSink, 'ship' | 'position'>;

interface Shipped {
  /** The stored position of the journal, if nothing was stored. */
  readonly stands: number | null;
  readonly collisions: readonly number[] | null;
}

export function openShipping(store: Store): Shipping {
  const booked = <Result>(rows: Uint8Array, work: () => Promise<Result>) =>
    withMonths(store, () => monthsIn(store.db, rows), work).catch((error: unknown) => {
      throw refusedRows(error);
    });
  return {
    async ship({ holder, journal, from, to, rows }) {
      const answer = await booked(rows, () =>
        sql<Shipped>`select stands, collisions from usage_shipped(${holder}, ${journal}, ${from}, ${to}, ${json(rows)})`.execute(store.db),
      );
      const { stands, collisions } = answer.rows[0]!;
      if (stands !== null && stands < to) throw new Fault('conflict', `The journal ${journal} has been shipped up to byte ${stands}, not ${from}.`);
      return collisions ?? [];
    },
    async position(journal) {
      const { rows } = await sql<{ byte: number }>`select byte from journal_position where journal = ${journal}`.execute(store.db);
      return rows[0]?.byte ?? 0;
    },
  };
}

async function monthsIn(db: Database, rows: Uint8Array): Promise<string[]> {
  const answer = await sql<{ month: string | null }>`
    select distinct to_char(to_timestamp(at / 1000) at time zone 'UTC', 'YYYY-MM') as month
    from json_to_recordset(${json(rows)}) as row(at double precision)`.execute(db);
  return answer.rows.map(({ month }) => month ?? '');
}

/** Bytes, since a text would be encoded again on its way. */
const json = (rows: Uint8Array) => sql`convert_from(${rows}::bytea, 'UTF8')::json`;

/** Errors that the row itself causes (out of range, wrong type, missing value, violated constraint): a retry cannot succeed. */
function refusedRows(error: unknown): unknown {
  if (!(error instanceof SqlError) || !/^(22|23)/.test(error.code)) return error;
  return new Fault('invalid', 'The database refuses a usage row.', { cause: error, ...(error.column ? { field: error.column } : {}) });
}

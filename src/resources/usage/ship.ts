import { sql } from 'kysely';
import { Fault } from '#core/fault';
import { SqlError } from '#store/sql-error';
import type { Database, Store } from '#store/open';
import { withMonths } from './months.ts';

/** A piece of a journal on its way into the database. */
export interface Shipment {
  /** Whose leases the rows were spent from. */
  readonly holder: string;
  /** `<holder>/<writer>` */
  readonly journal: string;
  /** The bytes of the journal that are shipped with this, from where the position must stand. */
  readonly from: number;
  readonly to: number;
  /** JSON: an array of UsageRow. */
  readonly rows: string;
}

export interface Shipping {
  /**
   * Books rows, their sums, what the holder has settled and the journal's position, all or nothing; what was shipped before does nothing.
   *
   * @returns which of the rows, by their places from 0, were left out because another one is booked under their request and step
   * @throws Fault `conflict` when the position stands elsewhere, `invalid` for rows that the database cannot take, `overloaded`
   */
  ship(shipment: Shipment): Promise<readonly number[]>;
  /** How far a journal has been shipped, in bytes; 0 for one that is unknown. */
  position(journal: string): Promise<number>;
}

interface Shipped {
  /** Where the journal's position stands, if nothing was done. */
  readonly stands: number | null;
  readonly collisions: readonly number[] | null;
}

export function openShipping(store: Store): Shipping {
  const booked = <Result>(rows: string, work: () => Promise<Result>) =>
    withMonths(store, () => monthsIn(store.db, rows), work).catch((error: unknown) => {
      throw refusedRows(error);
    });
  return {
    async ship({ holder, journal, from, to, rows }) {
      const answer = await booked(rows, () =>
        sql<Shipped>`select stands, collisions from usage_shipped(${holder}, ${journal}, ${from}, ${to}, ${rows}::json)`.execute(store.db),
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

async function monthsIn(db: Database, rows: string): Promise<string[]> {
  const answer = await sql<{ month: string | null }>`
    select distinct to_char(to_timestamp(at / 1000) at time zone 'UTC', 'YYYY-MM') as month
    from json_to_recordset(${rows}::json) as row(at double precision)`.execute(db);
  return answer.rows.map(({ month }) => month ?? '');
}

/** Data out of range, of another type, missing or against a rule is a mistake of the row; the same row will never be taken. */
function refusedRows(error: unknown): unknown {
  if (!(error instanceof SqlError) || !/^(22|23)/.test(error.code)) return error;
  return new Fault('invalid', 'The database refuses a usage row.', { cause: error, ...(error.column ? { field: error.column } : {}) });
}

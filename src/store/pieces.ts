import { sql, type RawBuilder } from 'kysely';
import type { Database } from '#store/driver';

/** Of what one statement deletes: what is sealed lies in pieces of 2 KB, each a row of its own to the database. */
const pieceBytes = 16 * 2 ** 20;

export interface Pieces {
  /** Rows that a full piece has at least. */
  readonly size: number;
  /** How many at most. */
  readonly most: number;
}

/**
 * Repeats a statement that takes away a piece of what is there until nothing is left: none of them takes long, and others get in between.
 * @param piece answers how many rows went
 * @returns false where there is more: it is for the next round, which should come soon
 */
export async function inPieces(piece: () => Promise<number>, { size, most }: Pieces): Promise<boolean> {
  for (let pieces = 0; pieces < most; pieces++) if ((await piece()) < size) return true;
  return false;
}

/** Repeats a statement until it changes fewer than `least` rows; each run is short, so that others can run in between. */
export async function repeatUntilFewer(statement: RawBuilder<unknown>, db: Database, least: number): Promise<void> {
  await inPieces(() => rowsChanged(statement, db), { size: least, most: Infinity });
}

/** How many rows a statement took away, or changed. */
export async function rowsChanged(statement: RawBuilder<unknown>, db: Database): Promise<number> {
  const { numAffectedRows = 0n } = await statement.execute(db);
  return Number(numAffectedRows);
}

/** The first rows, by their `place` (ctid), whose `bytes` one statement may delete: one at least. */
export const firstOf = (rows: RawBuilder<unknown>) => sql`
  select place from (select place, sum(bytes) over (order by place) - bytes as before from (${rows}) as candidate) as piece where before < ${pieceBytes}`;

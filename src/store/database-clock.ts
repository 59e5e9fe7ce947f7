import { sql } from 'kysely';
import type { Database } from './driver.ts';

/** The time by the database's clock, milliseconds since 1970: the one clock that all machines share. @throws Fault `overloaded` while it is away */
export async function databaseNow(db: Database): Promise<number> {
  const { rows } = await sql<{ at: Date }>`select clock_timestamp() as at`.execute(db);
  return rows[0]!.at.getTime();
}

/** This many seconds from now, by the database's clock. */
export const secondsAhead = (seconds: number) => sql`now() + make_interval(secs => ${seconds}::double precision)`;

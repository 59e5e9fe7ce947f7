import { sql } from 'kysely';
import type { Clock } from '#kit/async/clock';
import type { Database } from '#store/driver';
import { livePlaces } from '#store/job-places';

/** What a database says of itself. */
export interface Examined {
  /** `15.14` */
  readonly version: string;
  readonly hasVector: boolean;
  /** A replica, or one that was told to take no changes. */
  readonly isReadOnly: boolean;
  /** Connections that are open, and how many there may be. */
  readonly connections: number;
  readonly mostConnections: number;
  /** Machines at work that each keep originals of files in a folder of their own. */
  readonly places: readonly string[];
  /** Of the round trip. */
  readonly milliseconds: number;
  /** By how many milliseconds its clock is ahead of ours. */
  readonly aheadMilliseconds: number;
}

/** Is the extension `vector` of `pg_available_extensions` 0.8 or later? Earlier ones drop what a filter rejects without looking further. */
export const isNewVector = sql<boolean>`
  array[split_part(coalesce(installed_version, default_version), '.', 1), split_part(coalesce(installed_version, default_version), '.', 2)]::int[] >= '{0,8}'`;

/** @throws Fault `overloaded` while it is away */
export async function examine(db: Database, clock: Clock): Promise<Examined> {
  await sql`select 1`.execute(db); // the connection is made before the time is taken
  const [asked, startedAt] = [clock.now(), clock.monotonic()];
  const { rows } = await sql<Omit<Examined, 'milliseconds' | 'aheadMilliseconds' | 'places'> & { at: Date }>`
    select clock_timestamp() as at, split_part(current_setting('server_version'), ' ', 1) as version,
      exists (select from pg_available_extensions where name = 'vector' and ${isNewVector}) as "hasVector",
      pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as "isReadOnly",
      (select count(*) from pg_stat_activity where backend_type = 'client backend')::int8 as connections,
      current_setting('max_connections')::int8 as "mostConnections"`.execute(db);
  const milliseconds = clock.monotonic() - startedAt;
  const { at, ...found } = rows[0]!;
  return { ...found, places: await livePlaces(db), milliseconds, aheadMilliseconds: at.getTime() - asked - milliseconds / 2 };
}

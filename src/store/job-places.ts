import { hostname } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import type { Clock } from '#kit/async/clock';
import { randomText } from '#kit/crypto/ids';
import { writtenOnce } from '#store/files';
import type { Database } from '#store/driver';
import type { Store } from '#store/open';

/** A folder of files that not all processes on a database have. */
export interface Place {
  readonly id: string;
}

/** The name of a folder, in a file within it: a folder that several machines share is one place. */
export const placeOf = async (folder: string): Promise<Place> => ({ id: (await writtenOnce(join(folder, 'place'), () => `${randomText(22)}\n`)).trim() });

const everyMilliseconds = 30_000;
const liveSeconds = 120;
const goneSeconds = 86_400;

/** @returns what says, twice a minute at most, that there are processes at a place */
export function seenAt({ store, clock }: { readonly store: Store; readonly clock: Clock }): (place: string) => Promise<void> {
  const nextAt = new Map<string, number>();
  return async (id) => {
    const at = clock.monotonic();
    if (at < (nextAt.get(id) ?? -Infinity)) return;
    await sql`
      insert into job_place (id, machine) values (${id}, ${hostname()}) on conflict (id) do update set seen_at = now(), machine = excluded.machine`.execute(
      store.db,
    );
    nextAt.set(id, at + everyMilliseconds);
  };
}

/** Ends jobs that wait for a place where nobody has worked for a day. */
export async function endHomeless(db: Database, kinds: readonly string[]): Promise<void> {
  await sql`
    update job set state = 'failed', ended_at = now(), error = 'The file is kept on a machine that has not been running for a day.'
    where id in (
      select id from job where kind = any(${kinds}::text[]) and state = 'waiting' and place <> '' and run_at < now()
        and exists (select from job_place where job_place.id = job.place and seen_at < now() - make_interval(secs => ${goneSeconds}))
      limit 1000 for update skip locked)`.execute(db);
}

/** The machines at work that each have a folder of files of their own. A database that no server has opened yet has none. */
export async function livePlaces(db: Database): Promise<readonly string[]> {
  const { rows: tables } = await sql<{ made: boolean }>`select to_regclass('job_place') is not null as made`.execute(db);
  if (!tables[0]!.made) return [];
  const { rows } = await sql<{ machine: string }>`
    select machine from job_place where seen_at > now() - make_interval(secs => ${liveSeconds}) order by machine limit 100`.execute(db);
  return rows.map(({ machine }) => machine);
}

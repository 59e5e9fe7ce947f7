import { sql, type RawBuilder } from 'kysely';
import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import type { Blobs } from '#store/blobs';
import type { StoreLog } from '#store/log';
import type { Access, Store } from '#store/open';
import { repeated } from '#kit/async/repeated';

/** A column whose values are ids of blobs. */
export interface BlobColumn {
  readonly table: string;
  readonly blob: string;
  /** Columns of the same row: the size, and the id of the user who keeps it. */
  readonly bytes: string;
  readonly user: string;
  /** A time that says that the row is gone already: what it names takes no room. */
  readonly gone?: string;
}

/** A file that is to be kept for a user. */
export interface KeptFile {
  readonly userId: number;
  /** SHA-256. */
  readonly blob: string;
  readonly bytes: number;
  /** Of all files of the user, each content once; undefined: no limit. */
  readonly most: number | undefined;
}

/** To be called in the transaction that writes the row, which names the blob. Waits for others of the same user. @throws Fault `too-large` */
export async function requireRoom({ db }: Access, columns: readonly BlobColumn[], { userId, blob, bytes, most }: KeptFile): Promise<void> {
  if (most === undefined) return;
  await sql`select pg_advisory_xact_lock(hashtextextended(${`room/${userId}`}, 0))`.execute(db);
  const used = await usedRoom({ db }, columns, userId, blob);
  if (used + bytes > most)
    throw new Fault('too-large', `The plan has room for ${most} bytes of files: ${used} are taken, and the file has ${bytes}.`, { field: 'file' });
}

/** What the plan of a user has room for, and what is taken of it, in bytes. */
export interface Room {
  readonly most: number;
  readonly used: number;
}

/** Bytes of the files that are kept for a user, each content once. @param but the blob that is not counted */
export async function usedRoom({ db }: Pick<Access, 'db'>, columns: readonly BlobColumn[], userId: number, but = ''): Promise<number> {
  const named = columns.map(
    (column) => sql`select ${sql.ref(column.blob)} as blob, ${sql.ref(column.bytes)} as bytes from ${sql.table(column.table)}
      where ${sql.ref(column.user)} = ${userId} and ${sql.ref(column.blob)} is not null${column.gone === undefined ? sql`` : sql` and ${sql.ref(column.gone)} is null`}`,
  );
  const { rows } = await sql<{ used: number }>`
    select coalesce(sum(bytes), 0)::float8 as used from (select max(bytes) as bytes from (${joined(named)}) as named where blob <> ${but} group by blob) as kept`.execute(
    db,
  );
  return Number(rows[0]!.used);
}

const joined = (parts: readonly RawBuilder<unknown>[]) => sql.join([...parts], sql` union all `);

/** Milliseconds: a blob is put before the row that names it is written, so a young one may be named soon. */
const age = 30 * 60_000;
const every = 10 * 60_000;
const first = 60_000;

export interface SweepDeps {
  readonly blobs: Blobs;
  readonly store: Store;
  readonly columns: readonly BlobColumn[];
  readonly clock: Clock;
  readonly log: StoreLog;
}

/** Removes, again and again, blobs that no row names: those of rows that were deleted, and those whose process died before it wrote a row. @returns what ends it */
export const sweepBlobs = ({ blobs, store, columns, clock, log }: SweepDeps): (() => void) =>
  repeated({
    clock,
    milliseconds: every,
    first,
    async work() {
      const gone = await blobs.sweep(age, (ids) => namedIn(store, columns, ids));
      if (gone > 0) log.info({ gone }, 'files that nothing names are removed');
    },
    failed: (cause) => log.warn({ err: cause }, 'files that nothing names cannot be removed'),
  });

async function namedIn({ db }: Access, columns: readonly BlobColumn[], ids: readonly string[]): Promise<ReadonlySet<string>> {
  if (columns.length === 0) return new Set(ids);
  const named = columns.map(
    ({ table, blob }) => sql`select ${sql.ref(blob)} as blob from ${sql.table(table)} where ${sql.ref(blob)} = any(${[...ids]}::text[])`,
  );
  const { rows } = await sql<{ blob: string }>`${joined(named)}`.execute(db);
  return new Set(rows.map(({ blob }) => blob));
}

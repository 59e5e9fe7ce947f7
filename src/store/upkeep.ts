import { statfs } from 'node:fs/promises';
import { sql } from 'kysely';
import type { Clock } from '#kit/async/clock';
import { Fault } from '#core/fault';
import type { Database } from '#store/driver';
import type { StoreLog } from '#store/log';
import { repeated } from '#kit/async/repeated';

/*
 * What a PostgreSQL server does by itself in the background and the embedded one never does: checkpoints (without them the journal of the database grows
 * without bound and a restart replays all of it), vacuum and statistics. It also stops writing before the disk is full: a write that finds no room
 * ends the database's thread, while reads need none.
 */
const lookMilliseconds = 1000;
const checkpointMilliseconds = 5 * 60_000;
const checkpointBytes = 48 * 2 ** 20;
const vacuumMilliseconds = 10 * 60_000;
/** Two segments of the database's journal and a little. */
const minimumFreeBytes = 12 * 2 ** 20;

interface Upkeep {
  readonly db: Database;
  /** With a deadline for what takes long. */
  readonly patientDb: Database;
  readonly folder: string;
  readonly clock: Clock;
  readonly log: StoreLog;
}

/** @returns what ends it */
export function upkeep({ db, patientDb, folder, clock, log }: Upkeep): () => void {
  let checkpointed = clock.monotonic();
  let vacuumed = clock.monotonic();
  let isFull = false;

  async function look(): Promise<void> {
    await watchRoom();
    if (isFull) return;
    const now = clock.monotonic();
    const written = await writtenSinceCheckpoint(db);
    if (written > checkpointBytes || (written > 0 && now - checkpointed > checkpointMilliseconds)) {
      await sql`checkpoint`.execute(patientDb);
      checkpointed = clock.monotonic();
    }
    if (now - vacuumed > vacuumMilliseconds) {
      vacuumed = now;
      await vacuumWhatNeedsIt(patientDb);
    }
  }

  function failed(cause: unknown): void {
    const isTold = cause instanceof Fault && cause.code === 'overloaded';
    if (!isTold) log.warn({ err: cause }, 'the upkeep of the embedded database failed');
  }

  /** A setting of the database's one session, so it is said anew each time: the thread may be another one. */
  async function watchRoom(): Promise<void> {
    const { bavail, bsize } = await statfs(folder);
    const isFullNow = bavail * bsize < minimumFreeBytes;
    if (isFullNow || isFull) await sql.raw(`set default_transaction_read_only = ${isFullNow ? 'on' : 'off'}`).execute(db);
    if (isFullNow !== isFull) log.warn({ free: bavail * bsize }, isFullNow ? 'the disk is full: the database only reads' : 'the disk has room again');
    isFull = isFullNow; // only now that it was said: else it would be said again
  }

  return repeated({ clock, milliseconds: lookMilliseconds, work: look, failed });
}

async function writtenSinceCheckpoint(db: Database): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`select (pg_current_wal_insert_lsn() - redo_lsn)::int8 as bytes from pg_control_checkpoint()`.execute(db);
  // an idle database still writes the record of the checkpoint itself
  return rows[0]!.bytes < 512 ? 0 : rows[0]!.bytes;
}

/** The tables in which a fifth has changed, by the rule of PostgreSQL's own autovacuum, and those that come of age; one at a time, so that others get in between. */
async function vacuumWhatNeedsIt(db: Database): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select c.oid::regclass::text as name
    from pg_class c left join pg_stat_all_tables s on s.relid = c.oid
    where c.relkind in ('r', 'm') and c.relpersistence = 'p'
      and (greatest(s.n_dead_tup, s.n_mod_since_analyze, s.n_ins_since_vacuum) > 50 + 0.2 * greatest(c.reltuples, 0) or age(c.relfrozenxid) > 50000000)
    order by c.relpages`.execute(db);
  for (const { name } of rows) await sql.raw(`vacuum (analyze) ${name}`).execute(db);
}

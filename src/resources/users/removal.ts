import { sql } from 'kysely';
import { isObject } from '#core/json';
import type { Jobs } from '#store/jobs';
import type { Access, Store } from '#store/open';
import { firstOf, rowsChanged } from '#store/pieces';
import { jobOwner } from '../owner.ts';

/** A table whose rows belong to users (`user_id`), of which one user may have very many. */
export interface OwnedTable {
  readonly table: string;
  /** The column that says how large a row is, where rows are large. */
  readonly bytes?: string;
}

/** A table of things that users share. */
export interface SharedTable {
  /** As `grants` names it. */
  readonly kind: string;
  readonly table: string;
  /** The column by which `grants` knows a thing; `id`, if it is left out. */
  readonly number?: string;
  /** `owner_id`, if it is left out. */
  readonly owner?: string;
}

export interface RemovalDeps {
  readonly store: Store;
  readonly jobs: Jobs;
  readonly owned: readonly OwnedTable[];
  readonly shared: readonly SharedTable[];
  /** Takes away what else a user had, piece by piece; may be repeated. */
  readonly also?: (userId: number, signal: AbortSignal) => Promise<void>;
  readonly log: (problem: string, cause: unknown) => void;
}

const kind = 'user-removal';
/** It is tried until it is done. */
const tries = 1_000_000;
const pieceRows = 500;

/** Has a user who was deleted taken away, with all that is left. */
export async function askForRemoval(jobs: Pick<Jobs, 'add'>, userId: number, inside?: Access): Promise<void> {
  await jobs.add(kind, { userId }, { unique: String(userId), tries, ...(inside ? { inside } : {}) });
}

/** What a user shared is nobody else's any more. To be called in a transaction. */
export async function unshare({ db }: Access, shared: readonly SharedTable[], userId: number): Promise<void> {
  for (const { kind: thing, table, number = 'id', owner = 'owner_id' } of shared)
    await sql`
      delete from grants where kind = ${thing} and thing_id in (select ${sql.ref(number)} from ${sql.table(table)} where ${sql.ref(owner)} = ${userId})`.execute(
      db,
    );
}

/** Takes away, piece by piece, users who were deleted: one statement for half a million rows would never end. What a former process has not finished is gone on with. */
export function workOnRemovals({ store, jobs, owned, shared, also, log }: RemovalDeps): void {
  jobs.work(kind, async ({ payload, signal }) => {
    const userId = isObject(payload) ? Number(payload['userId']) : 0;
    await store.transaction((inside) => unshare(inside, shared, userId)); // once more: grants that were being set meanwhile
    for (const one of owned) {
      do signal.throwIfAborted();
      while ((await takeAway(store, one, userId)) > 0);
    }
    await also?.(userId, signal);
    await jobs.forget(jobOwner(userId));
    await sql`delete from users where id = ${userId} and removed_at is not null`.execute(store.db);
  });
  const askAgain = async () => {
    const { rows } = await sql<{ id: number }>`select id from users where removed_at is not null`.execute(store.db);
    for (const { id } of rows) await askForRemoval(jobs, id);
  };
  askAgain().catch((error: unknown) => log('Deleted users could not be looked up: the next start removes what is left of them.', error));
}

/** @returns how many rows went */
function takeAway({ db }: Store, { table, bytes }: OwnedTable, userId: number): Promise<number> {
  const size = bytes === undefined ? sql`0` : sql.ref(bytes);
  const rows = sql`select ctid as place, ${size} as bytes from ${sql.table(table)} where user_id = ${userId} limit ${pieceRows}`;
  return rowsChanged(sql`delete from ${sql.table(table)} where ctid = any(array(${firstOf(rows)}))`, db);
}

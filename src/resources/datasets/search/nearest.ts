import { sql, type RawBuilder } from 'kysely';
import type { Database, Store } from '#store/open';
import type { Place } from './postings.ts';
import type { Scope } from './scope.ts';
import { tableName, type VectorTable } from './vector-tables.ts';
import type { VectorRanker } from './vector-ranker.ts';

/** Passages of the scope up to which all vectors are compared at once; beyond it pgvector's index answers approximately. */
const mostExact = 20_000;
/** Candidates that the approximate index looks at: recall at 50 is measured in bench/README.md. */
const candidates = 120;

export interface Asked {
  readonly table: VectorTable;
  /** Of length 1. */
  readonly vector: Float32Array;
  readonly limit: number;
  readonly signal: AbortSignal;
}

/**
 * The passages of the scope whose vectors are nearest to the question's, best first: found by pgvector on a server that has it, otherwise by a thread of our
 * own. The embedded database has pgvector, too, but compares ten times more slowly and answers nobody meanwhile: it does so where the vectors are too many for the thread
 * to keep.
 */
export async function nearest(store: Store, ranker: VectorRanker, scope: Scope, asked: Asked): Promise<readonly Place[]> {
  const size = scope.languages.reduce((sum, { passages }) => sum + passages, 0);
  const inside = asked.table.kind === 'vector' && (store.kind === 'server' || !ranker.hasRoomFor(asked.table, size));
  return inside ? byDatabase(store, scope, size, asked) : byThread(store, ranker, scope, asked);
}

/** Asks the index for large scopes. It gives up after 20,000 rows (`hnsw.max_scan_tuples`): where these held too few of the scope, which others' passages surround, all of it is compared. */
async function byDatabase({ db }: Store, { editions }: Scope, size: number, { table, vector, limit }: Asked): Promise<readonly Place[]> {
  const question = sql`${`[${vector.join(',')}]`}`;
  const inScope = sql`edition_id in (select id from (${editions}) as scope)`;
  if (size > mostExact) {
    const found = await byIndex(db, inScope, { table, question, limit });
    if (found.length === limit) return found;
  }
  // a sum cannot be read off the index
  return located(
    db,
    sql`
    select passage_id from ${tableName(table)} where ${inScope} order by (vector <#> ${question}::vector) + 0, passage_id limit ${limit}`,
  );
}

interface AskedOfIndex extends Pick<Asked, 'table' | 'limit'> {
  readonly question: RawBuilder<unknown>;
}

async function byIndex(db: Database, inScope: RawBuilder<unknown>, { table, question, limit }: AskedOfIndex): Promise<readonly Place[]> {
  const half = sql`halfvec(${sql.lit(table.dimensions)})`;
  const distance = table.half ? sql`vector::${half} <#> ${question}::${half}` : sql`vector <#> ${question}::vector`;
  // The settings hold for this statement alone, and are made before the index is asked. A condition with `is true` is never turned into a join: whatever the
  // server believes about the size of the scope, the rows come from the index in their order.
  return located(
    db,
    sql`
    select passage_id from ${tableName(table)}
    where (select set_config('hnsw.ef_search', ${String(candidates)}, true) || set_config('hnsw.iterative_scan', 'strict_order', true)) <> ''
      and (${inScope}) is true
    order by ${distance} limit ${limit}`,
  );
}

/** The thread is given the generations that the permission let through; what it finds is held against the permission once more where the passages are read. */
async function byThread({ db }: Store, ranker: VectorRanker, { editions }: Scope, { table, vector, limit, signal }: Asked): Promise<readonly Place[]> {
  const { rows } = await sql<{ id: number; passages: number }>`select id, passages from (${editions}) as scope where passages > 0 order by id`.execute(db);
  const ids = (await ranker.rank({ table, vector, limit, signal, editions: rows })).map(({ id }) => id);
  return located(db, sql`select passage_id from unnest(${ids}::bigint[]) as found (passage_id)`);
}

/** @param found a statement with the ids of passages, `passage_id`, in their order */
async function located(db: Database, found: RawBuilder<unknown>): Promise<readonly Place[]> {
  const { rows } = await sql<Place>`
    select edition_id as edition, ordinal from (select passage_id, row_number() over () as at from (${found}) as nearest) as found
    join passages on passages.id = passage_id order by at`.execute(db);
  return rows;
}

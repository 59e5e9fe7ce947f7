import { sql } from 'kysely';
import type { Store } from '#store/open';
import type { Scope } from './scope.ts';
import { tableName, type VectorTable } from './vector-tables.ts';
import type { Near } from './vector-messages.ts';
import type { VectorRanker } from './vector-ranker.ts';

/** Passages of the scope up to which all vectors are compared; beyond it pgvector's index answers approximately. */
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
 * The passages of the scope whose vectors are nearest to the question's, best first: found by pgvector on a server that has it, otherwise by a thread of our own. The
 * embedded database has pgvector, too, but compares ten times more slowly and answers nobody meanwhile: it does so where the vectors are too many for the thread to keep.
 */
export async function nearest(store: Store, ranker: VectorRanker, scope: Scope, asked: Asked): Promise<readonly Near[]> {
  const size = scope.languages.reduce((sum, { passages }) => sum + passages, 0);
  const inside = asked.table.kind === 'vector' && (store.kind === 'server' || !ranker.hasRoomFor(asked.table, size));
  return inside ? byDatabase(store, scope, size, asked) : byThread(store, ranker, scope, asked);
}

async function byDatabase(store: Store, { editions }: Scope, size: number, { table, vector, limit }: Asked): Promise<readonly Near[]> {
  const question = `[${vector.join(',')}]`;
  const select = (distance: ReturnType<typeof sql>) => sql<Near>`
    select passage_id as id, -(${distance})::float8 as cosine from ${tableName(table)}
    where edition_id in (select id from (${editions}) as scope) order by ${distance}, passage_id limit ${limit}`;
  // a sum cannot be read off the index
  const exact = select(sql`(vector <#> ${question}::vector) + 0`);
  if (size <= mostExact) return (await exact.execute(store.db)).rows;
  return store.transaction(async ({ db }) => {
    await sql`select set_config('hnsw.ef_search', ${String(candidates)}, true), set_config('hnsw.iterative_scan', 'strict_order', true)`.execute(db);
    const near = table.half
      ? sql`vector::halfvec(${sql.lit(table.dimensions)}) <#> ${question}::halfvec(${sql.lit(table.dimensions)})`
      : sql`vector <#> ${question}::vector`;
    const { rows } = await sql<Near>`
      select id, cosine from (
        select passage_id as id, edition_id, -(vector <#> ${question}::vector)::float8 as cosine from ${tableName(table)}
        where edition_id in (select id from (${editions}) as scope) order by ${near} limit ${limit}
      ) as found order by cosine desc, id`.execute(db);
    return rows;
  });
}

/** The thread is given the generations that the permission let through; what it finds is held against the permission once more where the passages are read. */
async function byThread({ db }: Store, ranker: VectorRanker, { editions }: Scope, { table, vector, limit, signal }: Asked): Promise<readonly Near[]> {
  const { rows } = await sql<{ id: number; passages: number }>`select id, passages from (${editions}) as scope where passages > 0 order by id`.execute(db);
  return ranker.rank({ table, vector, limit, signal, editions: rows });
}

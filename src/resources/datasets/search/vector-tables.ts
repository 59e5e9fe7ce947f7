import { sql, type RawBuilder } from 'kysely';
import { Fault } from '#core/fault';
import { isNewVector } from '#store/examine';
import type { Database, Store } from '#store/open';
import type { VectorModel } from './types.ts';
import { mostDimensions } from './vector-memory.ts';

export interface VectorTable extends VectorModel {
  readonly id: number;
  readonly kind: 'vector' | 'bytes';
  /** Is its index one of numbers of 16 bits, in which half as much is read? */
  readonly half: boolean;
}

export interface VectorTables {
  /**
   * @param inside the database, in a transaction that is under way: the embedded one answers nobody else meanwhile
   * @returns undefined where nothing has been embedded with this model yet
   */
  find(vectors: VectorModel, inside?: Database): Promise<VectorTable | undefined>;
  /** Makes it where there is none. @throws Fault `unprocessable` where the vectors are too long */
  make(vectors: VectorModel): Promise<VectorTable>;
  all(): Promise<readonly VectorTable[]>;
}

/** pgvector indexes no more dimensions, of 32 and of 16 bits. */
const mostIndexed = { whole: 2000, half: 4000 };
/** Two vectors of this many dimensions fit in a page of the table. PostgreSQL would put what has more than 500 elsewhere, where each is looked up: in ten times the time. */
const mostInPlace = 960;
const makeSeconds = 60;
const lockKey = 7_239_014_553; // any number that is ours; taken until the end of the transaction

export const tableName = ({ id }: VectorTable): RawBuilder<unknown> => sql.table(`vectors_${id}`);

export function openVectorTables(store: Pick<Store, 'db' | 'long' | 'kind'>): VectorTables {
  const found = new Map<string, VectorTable>();
  const keyOf = ({ model, dimensions }: VectorModel) => `${dimensions} ${model}`;
  const all = async (db: Database = store.db) => {
    const { rows } = await sql<VectorTable>`select id, model, dimensions, kind, half from vector_tables order by id`.execute(db);
    for (const row of rows) found.set(keyOf(row), row);
    return rows;
  };
  const find = async (vectors: VectorModel, inside?: Database) => {
    if (!found.has(keyOf(vectors))) await all(inside);
    return found.get(keyOf(vectors));
  };
  return {
    find,
    all: () => all(),
    async make(vectors) {
      const { model, dimensions } = vectors;
      if (dimensions > mostDimensions)
        throw new Fault('unprocessable', `${model} makes vectors of ${dimensions} dimensions; datasets have at most ${mostDimensions}.`);
      const before = await find(vectors);
      if (before) return before;
      const db = store.long(makeSeconds).db;
      const hasVectors = await hasPgvector(db);
      const half = hasVectors && store.kind === 'server';
      await db.transaction().execute(async (tx) => {
        await sql`select pg_advisory_xact_lock(${sql.lit(lockKey)})`.execute(tx);
        const { rows } = await sql<VectorTable>`
          insert into vector_tables (model, dimensions, kind, half) values (${vectors.model}, ${vectors.dimensions}, ${hasVectors ? 'vector' : 'bytes'}, ${half})
          on conflict (model, dimensions) do nothing returning id, model, dimensions, kind, half`.execute(tx);
        if (rows[0]) await create(tx, rows[0], store.kind);
      });
      return (await find(vectors))!;
    },
  };
}

async function create(db: Database, table: VectorTable, kind: Store['kind']): Promise<void> {
  const name = `vectors_${table.id}`;
  const type = table.kind === 'vector' ? `vector(${table.dimensions})` : 'bytea';
  const statements = [
    `create table ${name} (passage_id bigint primary key, edition_id bigint not null, vector ${type} not null)`,
    ...(table.dimensions <= mostInPlace ? [`alter table ${name} alter column vector set storage plain`] : []),
    `create index ${name}_edition on ${name} (edition_id, passage_id)`,
    // the embedded database would be held for seconds by each piece that goes into the index: it compares all vectors instead
    ...(kind === 'server' && table.kind === 'vector' && table.dimensions <= mostIndexed[table.half ? 'half' : 'whole']
      ? [
          `create index ${name}_nearest on ${name} using hnsw (${table.half ? `(vector::halfvec(${table.dimensions})) halfvec_ip_ops` : 'vector vector_ip_ops'})`,
        ]
      : []),
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}

/** Has the database pgvector, of a version that counts, or may it be switched on? */
async function hasPgvector(db: Database): Promise<boolean> {
  const { rows } = await sql<{ installed: boolean }>`
    select installed_version is not null as installed from pg_available_extensions
    where name = 'vector' and ${isNewVector}`.execute(db);
  if (!rows[0]) return false;
  if (rows[0].installed) return true;
  try {
    await sql`create extension if not exists vector`.execute(db);
    return true;
  } catch {
    return false; // the role may not
  }
}

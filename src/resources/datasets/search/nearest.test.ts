import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Store } from '#store/open';
import { embedded } from '../../../../test/support/databases.ts';
import { nearest } from './nearest.ts';
import { openPassageIndex } from './passage-index.ts';
import { keyOf } from './postings.ts';
import { scopeOf, type Scope } from './scope.ts';
import { callerOf, migrations, newDataset, newFile, newUser } from '../../../../test/support/datasets.ts';
import type { Chunk } from './types.ts';
import { openVectorRanker } from './vector-ranker.ts';
import { openVectorTables } from './vector-tables.ts';
import { unit } from './vectors.ts';

const vectors = { model: 'words', dimensions: 16 };
/** The n-th is the n-th nearest to the first axis, by steps that numbers of 16 bits tell apart. */
function vectorAt(at: number): Float32Array {
  const cosine = 1 - 0.0015 * at;
  return Float32Array.from({ length: 16 }, (_, axis) => (axis === 0 ? cosine : axis === 1 ? Math.sqrt(1 - cosine * cosine) : 0));
}

const chunksFrom = (first: number): Chunk[] =>
  Array.from({ length: 200 }, (_, ordinal) => ({
    ordinal,
    start: 0,
    end: 1,
    page: null,
    context: '',
    quote: 'x',
    text: `heron ${first + ordinal}`,
    tokens: 1,
  }));

// the embedded database has pgvector, too: here it stands for a server that has it
describe('the index of pgvector', () => {
  test('gives as many of the nearest as are asked for, best first, and only those that the caller may read, whatever the server believes about the scope', async () => {
    const opened = await embedded.open({ migrations });
    const store: Store = Object.assign(Object.create(opened) as Store, { kind: 'server' });
    const tables = openVectorTables(store);
    const table = await tables.make(vectors);
    const index = openPassageIndex(store, tables);
    const [own, other] = [await newUser(store), await newUser(store)];
    const numbers = new Map<string, number>();
    for (const [at, owner] of [other, own, own].entries()) {
      const { id: datasetId } = await newDataset(store, owner, vectors);
      const fileId = await newFile(store, datasetId);
      const chunks = chunksFrom(200 * at);
      const of = chunks.map(({ ordinal }) => vectorAt(200 * at + ordinal));
      await store.transaction(async (inside) => {
        await index.add(inside, { datasetId, fileId, generation: 1, language: 'en', chunks, vectors: { ...vectors, of } });
        await index.flip(inside, { fileId, generation: 1 });
      });
      const { rows } = await sql<{ id: number }>`select id from editions where file_id = ${fileId}`.execute(store.db);
      for (const { ordinal } of chunks) numbers.set(keyOf({ edition: rows[0]!.id, ordinal }), 200 * at + ordinal);
    }
    await sql`set enable_seqscan = off`.execute(store.db); // six hundred are sooner compared than found
    await sql`set enable_sort = off`.execute(store.db);
    const ranker = openVectorRanker({ store, cacheBytes: () => 0 });
    const scope = await scopeOf(store.db, { caller: callerOf(own), datasets: 'all' });
    const large: Scope = { ...scope, languages: scope.languages.map((one) => ({ ...one, passages: 50_000 })) };
    const ask = async (of: Scope, limit: number) =>
      (await nearest(store, ranker, of, { table, vector: unit(vectorAt(0))!, limit, signal: new AbortController().signal })).map((one) =>
        numbers.get(keyOf(one))!,
      );

    // the nearest 200 are another user's: without its settings the index would look at 40 and give none
    expect(await ask(large, 100)).toEqual(Array.from({ length: 100 }, (_, at) => 200 + at));
    expect(await ask(scope, 100)).toEqual(await ask(large, 100));
    expect((await ask(large, 400)).every((number) => number >= 200)).toBe(true);

    // the index gives up after this many rows, 20,000 unless it is told: here all that it has looked at is another user's
    await sql`set hnsw.max_scan_tuples = 1`.execute(store.db);
    expect(await ask(large, 100)).toEqual(Array.from({ length: 100 }, (_, at) => 200 + at));

    const { rows } = await sql<{ set: string }>`select current_setting('hnsw.ef_search') as set`.execute(store.db);
    expect(rows).toEqual([{ set: '40' }]); // they hold for that statement alone
  });
});

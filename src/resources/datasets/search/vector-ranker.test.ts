import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { onBothDatabases } from '../../../../test/support/databases.ts';
import { openVectorRanker } from './vector-ranker.ts';
import { bytesOf } from './vectors.ts';

const dimensions = 2048;
/** This many vectors are 4 MB. */
const ofLoad = 512;

onBothDatabases('the thread that compares vectors', ({ open }) => {
  test.each([
    ['keeps none', 0],
    ['keeps some', 2 ** 21],
    ['keeps all', 2 ** 28],
  ])('reads long and short generations a piece at a time, one piece for all questions, and %s', { timeout: 120_000 }, async (_, cacheBytes) => {
    const store = await open();
    await sql`create table vectors_7 (passage_id bigint primary key, edition_id bigint not null, vector bytea not null)`.execute(store.db);
    // the first is empty, and the second ends with a piece
    const sizes = [0, ofLoad, 3, ofLoad + 7, 2, 1];
    const cosines = new Map<number, number>();
    let id = 0;
    for (const [edition, size] of sizes.entries())
      for (let from = 0; from < size; from += 256) {
        const rows = Array.from({ length: Math.min(256, size - from) }, () => ({ id: ++id, cosine: ((id * 7919) % 4001) / 4001 }));
        for (const one of rows) cosines.set(one.id, one.cosine);
        const vectorOf = (cosine: number) =>
          bytesOf(Float32Array.from({ length: dimensions }, (_one, at) => (at === 0 ? cosine : at === 1 ? Math.sqrt(1 - cosine * cosine) : 0)));
        await sql`
          insert into vectors_7 (passage_id, edition_id, vector) select id, ${edition + 1}, decode(vector, 'hex')
          from unnest(${rows.map((one) => one.id)}::bigint[], ${rows.map(({ cosine }) => vectorOf(cosine).toString('hex'))}::text[]) as one (id, vector)`.execute(
          store.db,
        );
      }
    let [now, most, reads] = [0, 0, 0];
    const db = store.db.withPlugin({
      transformQuery({ node }) {
        most = Math.max(most, ++now);
        reads++;
        return node;
      },
      async transformResult({ result }) {
        now--;
        return result;
      },
    });
    const ranker = openVectorRanker({ store: { db }, cacheBytes: () => cacheBytes });
    onTestFinished(() => ranker.close());
    const editions = sizes.map((passages, at) => ({ id: at + 1, passages }));
    const ask = (of = editions) =>
      ranker.rank({
        table: { id: 7, kind: 'bytes', half: false, model: 'm', dimensions },
        vector: Float32Array.from({ length: dimensions }, (_one, at) => (at === 0 ? 1 : 0)),
        limit: 50,
        editions: of,
        signal: new AbortController().signal,
      });
    const best = [...cosines].toSorted(([a, one], [b, other]) => other - one || a - b).slice(0, 50).map(([, cosine]) => cosine); // prettier-ignore
    const all = await Promise.all([ask(), ask(), ask()]);
    for (const found of all) {
      expect(found.map(({ cosine }) => Math.round(cosine * 4001))).toEqual(best.map((cosine) => Math.round(cosine * 4001)));
      expect(new Set(found.map((one) => one.id)).size).toBe(50);
    }
    expect([most, reads >= 3]).toEqual([1, true]);
    const before = reads;
    expect(await ask()).toEqual(all[0]);
    expect(reads > before).toBe(cacheBytes < 2 ** 28);
    expect((await ask([editions[0]!, editions[2]!])).length).toBe(3);
  });
});

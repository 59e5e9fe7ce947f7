/** Latencies of the search by synthetic passages. */
import { join } from 'node:path';
import { sql } from 'kysely';
import { systemClock } from '#kit/async/clock';
import { openStore, type Store } from '#store/open';
import { openPassageIndex, openVectorRanker, openVectorTables, type Chunk } from '#resources/datasets/search/index';
import { lexicalRanks, usualLimits } from '#resources/datasets/search/lexical';
import { keyOf, type Place } from '#resources/datasets/search/postings';
import { nearest } from '#resources/datasets/search/nearest';
import { scopeOf } from '#resources/datasets/search/scope';
import { unit } from '#resources/datasets/search/vectors';
import { callerOf, migrations, newDataset, newFile, newUser } from '../../test/support/datasets.ts';
import { cpuTime } from '../processes.ts';
import { add, dimensions, model, searchIn } from './asking.ts';

/** Numbers from 0 to 1, the same for a seed (mulberry32). Two questions and two passages must not be the same by chance: what has equal ranks is found in any order. */
function randomBy(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Words as often as in a language: the n-th has a share of 1 / n. */
function wordsBy(random: () => number): () => string {
  const most = 30_000;
  return () => `word${Math.floor(most ** random())}x`;
}

/** Directions that vary together, as those of a language do: 24 of them, and a little noise. Vectors of independent numbers are all equally far apart. */
function vectorsBy(random: () => number): () => Float32Array {
  const axes = Array.from({ length: 24 }, () => Float32Array.from({ length: dimensions }, () => random() - 0.5));
  return () => {
    const made = Float32Array.from({ length: dimensions }, () => (random() - 0.5) / 4);
    for (const axis of axes) {
      const share = random() + random() + random() - 1.5;
      for (let at = 0; at < dimensions; at++) made[at]! += share * axis[at]!;
    }
    return made;
  };
}

const keysOf = (places: readonly Place[]) => new Set(places.map(keyOf));

/** The part of the nearest 50 that the index of pgvector finds, too. */
async function recall(store: Store, user: number, vector: () => Float32Array): Promise<number> {
  const scope = await scopeOf(store.db, { caller: callerOf(user), datasets: 'all' });
  const table = (await openVectorTables(store).find({ model, dimensions }))!;
  const ranker = openVectorRanker({ store, cacheBytes: () => 0 });
  const one = { ...scope, languages: [] }; // as if there were few: all are compared
  let found = 0;
  for (let round = 0; round < 20; round++) {
    const asked = { table, vector: unit(vector())!, limit: 50, signal: new AbortController().signal };
    const exact = keysOf(await nearest(store, ranker, one, asked));
    found += keysOf(await nearest(store, ranker, scope, asked)).intersection(exact).size;
  }
  return found / 1000;
}

/** How much of the best 50 by words is found where common words choose no passages. */
async function lexicalRecall(store: Store, user: number, question: () => string): Promise<number> {
  const scope = await scopeOf(store.db, { caller: callerOf(user), datasets: 'all' });
  let [found, all] = [0, 0];
  for (let round = 0; round < 40; round++) {
    const asked = question();
    const exact = keysOf(await lexicalRanks(store.db, scope, asked, 50, { ...usualLimits, rows: Infinity, passages: Infinity, feedback: 0 }));
    found += keysOf(await lexicalRanks(store.db, scope, asked, 50, { ...usualLimits, rows: 0 })).intersection(exact).size;
    all += exact.size;
  }
  return found / all;
}

/** Milliseconds of computing, of this process with its threads and of a database server. */
function computed(databasePid: number) {
  const [own, server] = [process.cpuUsage(), cpuTime(databasePid)];
  return { own: (own.user + own.system) / 1000, server: (server.user + server.system) / 1000 };
}

export async function latency(
  name: string,
  {
    folder,
    count,
    databaseUrl,
    databasePid = 0,
  }: { readonly folder: string; readonly count: number; readonly databaseUrl?: string; readonly databasePid?: number },
): Promise<void> {
  const random = randomBy(17);
  const word = wordsBy(random);
  const textOf = (length: number) => Array.from({ length }, word).join(' ');
  const vector = vectorsBy(random);
  const store = await openStore({
    folder: join(folder, name.replaceAll(/\W/g, '-')),
    migrations,
    clock: systemClock,
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
  });
  await openPassageIndex(store).prepare({ model, dimensions });
  const user = await newUser(store);
  const dataset = await newDataset(store, user, { model, dimensions });
  const started = performance.now();
  const size = 200;
  const piece = 64; // as ingestion does
  for (let done = 0; done < count; done += size) {
    const chunks = Array.from({ length: size }, (_, ordinal): Chunk => {
      const text = textOf(60);
      return { ordinal, start: ordinal * 1000, end: ordinal * 1000 + text.length, page: ordinal, context: '', quote: text, text, tokens: 120 };
    });
    const file = { datasetId: dataset.id, fileId: await newFile(store, dataset.id) };
    for (let at = 0; at < size; at += piece) {
      const some = chunks.slice(at, at + piece);
      await add(store, { ...file, chunks: some, of: some.map(vector) });
    }
    if (done % 20_000 === 0) console.error(`${name}: ${done} passages`);
  }
  const filling = (performance.now() - started) / 1000;
  await sql`vacuum (analyze)`.execute(store.long(600).db);
  const ask = searchIn(store, async ({ texts }) => texts.map(vector));
  const times: number[] = [];
  let before = computed(databasePid);
  for (let round = 0; round < 110; round++) {
    if (round === 10) before = computed(databasePid); // the first ones read the vectors
    const question = textOf(8);
    const since = performance.now();
    await ask(callerOf(user), question, { datasets: [dataset.name] });
    if (round >= 10) times.push(performance.now() - since);
  }
  const after = computed(databasePid);
  const each = (of: keyof typeof after) => ((after[of] - before[of]) / times.length).toFixed(1);
  times.sort((a, b) => a - b);
  console.log(
    `${name}, ${count} passages: p50 ${times[50]!.toFixed(1)} ms, p95 ${times[95]!.toFixed(1)} ms, CPU ${each('own')} ms and of the server ${each('server')} ms a question, filled in ${filling.toFixed(0)} s`,
  );
  console.log(
    `${name}: recall at 50 by words ${(await lexicalRecall(store, user, () => textOf(8))).toFixed(3)}, by vectors ${(await recall(store, user, vector)).toFixed(3)}`,
  );
  await store.close();
}

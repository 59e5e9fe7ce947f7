/** Latencies of the search by synthetic passages. */
import { join } from 'node:path';
import { systemClock } from '#kit/async/clock';
import { openStore } from '#store/open';
import { openPassageIndex, type Chunk } from '#resources/datasets/search/index';
import { callerOf, migrations, newDataset, newFile, newUser } from '#resources/datasets/search/testing';
import { add, dimensions, model, searchIn } from './asking.ts';

/** Words as often as in a language: the n-th has a share of 1 / n. */
function wordsBy(random: () => number): () => string {
  const most = 30_000;
  return () => `word${Math.floor(most ** random())}x`;
}

export async function latency(
  name: string,
  { folder, count, databaseUrl }: { readonly folder: string; readonly count: number; readonly databaseUrl?: string },
): Promise<void> {
  let seed = 17;
  const random = () => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
  const word = wordsBy(random);
  const textOf = (length: number) => Array.from({ length }, word).join(' ');
  const vector = () => Float32Array.from({ length: dimensions }, () => random() - 0.5);
  const store = await openStore({
    folder: join(folder, name.replaceAll(' ', '-')),
    migrations,
    clock: systemClock,
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
  });
  await openPassageIndex(store).prepare({ model, dimensions });
  const user = await newUser(store);
  const dataset = await newDataset(store, user, { model, dimensions });
  const started = performance.now();
  const size = 200;
  for (let done = 0; done < count; done += size) {
    const chunks = Array.from({ length: size }, (_, ordinal): Chunk => {
      const text = textOf(60);
      return { ordinal, start: ordinal * 1000, end: ordinal * 1000 + text.length, page: ordinal, context: '', quote: text, text, tokens: 120 };
    });
    await add(store, { datasetId: dataset.id, fileId: await newFile(store, dataset.id), chunks, of: chunks.map(vector) });
    if (done % 20_000 === 0) console.error(`${name}: ${done} passages`);
  }
  const filling = (performance.now() - started) / 1000;
  await store.vacuum();
  const ask = searchIn(store, async ({ texts }) => texts.map(vector));
  const times: number[] = [];
  for (let round = 0; round < 110; round++) {
    const question = textOf(8);
    const since = performance.now();
    await ask(callerOf(user), question, { datasets: [dataset.name] });
    if (round >= 10) times.push(performance.now() - since); // the first ones read the vectors
  }
  times.sort((a, b) => a - b);
  console.log(`${name}, ${count} passages: p50 ${times[50]!.toFixed(1)} ms, p95 ${times[95]!.toFixed(1)} ms, filled in ${filling.toFixed(0)} s`);
  await store.close();
}

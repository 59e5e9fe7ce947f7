/**
 * `npm run bench:retrieval`: how good and how fast the search in datasets is. Cranfield (1,400 abstracts, 225 questions with judgements, in `data/`) on an embedded
 * database gives nDCG@10, MRR and recall@50 of each channel and fused; synthetic passages give latencies, on PostgreSQL without pgvector and embedded.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { systemClock } from '#kit/async/clock';
import { openTokens } from '#kit/tokens/index';
import { embedder, embeddingWeight } from '#providers/built-in/embed';
import { openSentences } from '#providers/built-in/sentence/sentence';
import { floatsOf } from '#core/embed';
import type { Passage } from '#core/passages';
import { openStore, type Store } from '#store/open';
import { chunked, openPassageIndex, openSearch, openVectorRanker, type Chunk, type EmbedText } from '#resources/datasets/search/index';
import { asking, callerOf, document, migrations, newDataset, newFile, newUser } from '#resources/datasets/search/testing';
import { postgresPrograms, startPostgres } from './postgres.ts';

const model = 'built-in-embedding';
const dimensions = 512;

const { values } = parseArgs({
  options: {
    passages: { type: 'string', default: '100000' },
    embedded: { type: 'string', default: '10000' },
    lexical: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});

const folder = mkdtempSync(join(tmpdir(), 'dragoman-retrieval-'));

/** What a search needs beside the database. */
function searchIn(store: Store, embed: EmbedText) {
  const failed = (error: unknown) => {
    throw error;
  };
  const ranker = openVectorRanker({ store, cacheBytes: () => 268_435_456 });
  return asking(openSearch({ store, ranker, embed, isEnglishOnly: () => false, weightOf: () => embeddingWeight, rerank: async () => undefined, failed }));
}

async function cranfield(): Promise<void> {
  const read = (name: string) => gunzipSync(readFileSync(new URL(`data/${name}.gz`, import.meta.url))).toString();
  const documents = read('cran.all.1400')
    .split(/^\.I \d+\r?\n/m)
    .slice(1);
  const questions = read('cran.qry')
    .split(/^\.I \d+\r?\n/m)
    .slice(1)
    .map((text) => spaced(text.replace(/^\.W/m, '')));
  const relevant = questions.map(() => new Set<string>());
  for (const line of read('cranqrel').trim().split('\n')) {
    const [question, id] = line.trim().split(/\s+/); // whatever the grade: -1 is the paper that the question was made from
    relevant[Number(question) - 1]!.add(id!);
  }
  const store = await openStore({ folder: join(folder, 'cranfield'), migrations, clock: systemClock });
  const index = openPassageIndex(store);
  const user = await newUser(store);
  const dataset = await newDataset(store, user, values.lexical ? undefined : { model, dimensions });
  await index.prepare({ model, dimensions });
  const embed = await builtInVectors();
  for (const [at, one] of documents.entries()) {
    const [, title = '', text = ''] = /\.T\r?\n([\s\S]*?)\.A\r?\n[\s\S]*?\.W\r?\n([\s\S]*)/.exec(one) ?? [];
    const { chunks } = await chunked(document(spaced(text) || spaced(title)), { title: spaced(title) });
    const of = values.lexical ? undefined : await embed({ model, texts: chunks.map((chunk) => chunk.text), purpose: 'document', ...nobody });
    const fileId = await newFile(store, dataset.id, String(at + 1));
    await add(store, { datasetId: dataset.id, fileId, chunks, ...(of ? { of } : {}) });
    if (at % 200 === 199) console.error(`${at + 1} abstracts`);
  }
  const ask = searchIn(store, embed);
  const found: (readonly Passage[])[] = [];
  for (const question of questions) found.push((await ask(callerOf(user), question, { limit: 100, explain: true })).passages);
  for (const channel of ['lexical', 'vector', 'fused'] as const) {
    const ranked = found.map((passages) => [
      ...new Set(
        passages
          .filter(({ ranks }) => ranks[channel] !== null)
          .toSorted((a, b) => a.ranks[channel]! - b.ranks[channel]!)
          .map(({ filename }) => filename),
      ),
    ]);
    if (ranked.some((names) => names.length > 0)) console.log(`Cranfield ${channel}: ${measures(ranked, relevant)}`);
  }
  await store.close();
}

const spaced = (text: string) => text.replaceAll(/\s+/g, ' ').trim();
const nobody = { caller: callerOf(0), requestId: 'bench', signal: new AbortController().signal };

function measures(ranked: readonly (readonly string[])[], relevant: readonly ReadonlySet<string>[]): string {
  const gain = (at: number) => 1 / Math.log2(at + 2);
  const mean = (of: (names: readonly string[], wanted: ReadonlySet<string>) => number) =>
    (ranked.reduce((sum, names, at) => sum + of(names, relevant[at]!), 0) / ranked.length).toFixed(3);
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  const ndcg = mean((names, wanted) => {
    const best = sum(Array.from({ length: Math.min(10, wanted.size) }, (_, at) => gain(at)));
    return best === 0 ? 0 : sum(names.slice(0, 10).map((name, at) => (wanted.has(name) ? gain(at) : 0))) / best;
  });
  const mrr = mean((names, wanted) => 1 / (names.findIndex((name) => wanted.has(name)) + 1 || Infinity));
  const recall = mean((names, wanted) => names.slice(0, 50).filter((name) => wanted.has(name)).length / Math.max(1, wanted.size));
  return `nDCG@10 ${ndcg}, MRR ${mrr}, recall@50 ${recall}`;
}

async function builtInVectors(): Promise<EmbedText> {
  const make = embedder({ sentences: openSentences(), tokens: openTokens });
  return async ({ texts, caller, signal }) => {
    const { answer } = await make({ model, inputs: texts, encoding: 'float' }, { caller, signal, strict: false });
    return 'vectors' in answer ? answer.vectors.map((vector) => Float32Array.from(floatsOf(vector))) : [];
  };
}

async function add(
  store: Store,
  { of, ...file }: { datasetId: number; fileId: number; chunks: readonly Chunk[]; of?: readonly Float32Array[] },
): Promise<void> {
  const index = openPassageIndex(store);
  const vectors = of && { model, dimensions, of };
  await store.transaction(async (inside) => {
    await index.add(inside, { ...file, generation: 1, language: 'en', ...(vectors ? { vectors } : {}) });
    await index.flip(inside, { fileId: file.fileId, generation: 1 });
  });
}

async function latencies(): Promise<void> {
  const programs = postgresPrograms();
  if (programs) {
    const server = await startPostgres(programs, folder);
    await latency('PostgreSQL without pgvector', Number(values.passages), { databaseUrl: await server.database() });
    await server.stop();
  } else console.log('PostgreSQL is not installed here: it is not measured.');
  await latency('embedded', Number(values.embedded), {});
}

/** Words as often as in a language: the n-th has a share of 1 / n. */
function wordsBy(random: () => number): () => string {
  const most = 30_000;
  return () => `word${Math.floor(most ** random())}x`;
}

async function latency(name: string, count: number, place: { readonly databaseUrl?: string }): Promise<void> {
  let seed = 17;
  const random = () => (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
  const word = wordsBy(random);
  const textOf = (length: number) => Array.from({ length }, word).join(' ');
  const vector = () => Float32Array.from({ length: dimensions }, () => random() - 0.5);
  const store = await openStore({ folder: join(folder, name.slice(0, 8)), migrations, clock: systemClock, ...place });
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

try {
  if (values.only !== 'latency') await cranfield();
  if (values.only !== 'cranfield') await latencies();
  console.log(
    `load average ${loadavg()
      .map((load) => load.toFixed(1))
      .join(' ')}`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);

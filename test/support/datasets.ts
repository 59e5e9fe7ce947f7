import { sql } from 'kysely';
import type { Caller } from '#core/context';
import type { DocumentText } from '#core/document';
import type { PassageSearch, SearchPassages } from '#core/passages';
import type { Store } from '#store/open';
import { chunked } from '#resources/datasets/search/chunker';
import type { EmbedText, PassageIndex } from '#resources/datasets/search/types';

const folder = (noun: string) => new URL(`../../src/resources/${noun}/`, import.meta.url);

/** The folders of the migrations that the search needs. */
export const migrations = ['users', 'teams', 'datasets', 'datasets/search'].map(folder);

async function idOf(store: Pick<Store, 'db'>, statement: ReturnType<typeof sql>): Promise<number> {
  const { rows } = await statement.execute(store.db);
  return (rows[0] as { id: number }).id;
}

let count = 0;

export const newUser = (store: Store): Promise<number> =>
  idOf(store, sql`insert into users (email, plan) values (${`user-${process.pid}-${++count}@a.test`}, 'unlimited') returning id`);

export const callerOf = (userId: number, teamIds: readonly number[] = []): Caller => ({
  userId,
  email: `user-${userId}@a.test`,
  role: 'user',
  plan: 'unlimited',
  teamIds,
  keyId: 1,
  keyName: 'test',
});

export interface TestDataset {
  readonly id: number;
  readonly name: string;
}

export async function newDataset(store: Store, owner: number, vectors?: { readonly model: string; readonly dimensions: number }): Promise<TestDataset> {
  const name = `dataset_${++count}`;
  const id = await idOf(
    store,
    sql`insert into datasets (owner_id, name, full_name, embedding_model, embedding_dimensions)
      values (${owner}, ${name}, ${name}, ${vectors?.model ?? 'built-in-embedding'}, ${vectors?.dimensions ?? null}) returning id`,
  );
  return { id, name };
}

export const newFile = (store: Pick<Store, 'db'>, datasetId: number, filename = `file-${++count}.md`): Promise<number> =>
  idOf(store, sql`insert into dataset_files (dataset_id, filename) values (${datasetId}, ${filename}) returning id`);

export const document = (text: string, more: Partial<DocumentText> = {}): DocumentText => ({ type: 'text/markdown', text, places: [], ...more });

/** A vector that has a direction for each of the words. */
export function vectorOf(text: string, words: readonly string[]): Float32Array {
  const lower = text.toLowerCase();
  return Float32Array.from(words, (word) => 0.01 + lower.split(word).length - 1);
}

export interface Filing {
  readonly datasetId: number;
  readonly fileId: number;
  readonly generation?: number;
  readonly text: string;
  readonly model?: string;
  readonly embed?: (text: string) => Float32Array;
}

/** Puts a text into a file and makes it count. */
export async function filed(store: Store, index: PassageIndex, { datasetId, fileId, generation = 1, text, model, embed }: Filing): Promise<number> {
  const { chunks, language } = await chunked(document(text));
  const of = embed && chunks.map((chunk) => embed(chunk.text));
  const vectors = of && model !== undefined ? { model, dimensions: of[0]!.length, of } : undefined;
  if (vectors) await index.prepare(vectors);
  await store.transaction(async (inside) => {
    await index.add(inside, { datasetId, fileId, generation, language, chunks, ...(vectors ? { vectors } : {}) });
    await index.flip(inside, { fileId, generation });
  });
  return chunks.length;
}

export const embedBy =
  (models: Readonly<Record<string, (text: string) => Float32Array>>): EmbedText =>
  async ({ model, texts }) => {
    const embed = models[model];
    if (!embed) throw new Error(`There is no model ${model}.`);
    return texts.map(embed);
  };

/** Asks with what matters to a test. */
export const asking =
  (search: SearchPassages) =>
  (caller: Caller, question: string, more: Partial<PassageSearch> = {}) =>
    search({ caller, question, datasets: 'all', limit: 25, requestId: 'test', signal: new AbortController().signal, ...more });

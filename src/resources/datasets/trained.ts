import { sql } from 'kysely';
import type { Store } from '#store/open';
import type { EmbeddingCache, PassageIndex } from './search/types.ts';
import type { Dataset } from './store.ts';

/** The vectors of what was just put into a dataset, as the answer gives them back. */
export interface Trained {
  /** Are they few enough for an answer: at most 1,000 vectors, and 2 million numbers? */
  fit(dataset: Pick<Dataset, 'id'>, fileId: number): Promise<boolean>;
  /** One for each passage, in order; none where the dataset's model is gone. */
  vectors(dataset: Pick<Dataset, 'id'>, fileId: number): Promise<readonly Float32Array[]>;
  /** The same for each of the texts. */
  vectorsOfEach(dataset: Pick<Dataset, 'id'>, fileId: number, texts: readonly string[]): Promise<readonly (readonly (readonly number[])[])[]>;
}

export interface TrainedDeps {
  readonly store: Store;
  readonly index: Pick<PassageIndex, 'texts'>;
  readonly cache: Pick<EmbeddingCache, 'find'>;
}

const pieceTexts = 256;
const mostVectors = 1000;
const mostNumbers = 2_000_000;

export function openTrained({ store, index, cache }: TrainedDeps): Trained {
  /** With where each passage begins in the text of the file, in code points. */
  async function found(datasetId: number, fileId: number): Promise<readonly { readonly start: number; readonly vector: Float32Array }[]> {
    const { rows } = await sql<{ model: string; dimensions: number | null; generation: number }>`
      select embedding_model as model, embedding_dimensions as dimensions, generation
      from dataset_files join datasets on datasets.id = dataset_id where dataset_files.id = ${fileId} and dataset_id = ${datasetId}`.execute(store.db);
    const [file] = rows;
    if (!file || file.dimensions === null) return [];
    const { model, dimensions, generation } = file;
    const all: { start: number; vector: Float32Array }[] = [];
    for (let from = 0; ; from += pieceTexts) {
      const texts = await index.texts({ fileId, generation }, from, pieceTexts);
      const vectors = await cache.find({ model, dimensions }, texts.map(({ text }) => text)); // prettier-ignore
      const starts = await startsOf(store, fileId, generation, from);
      for (const [at, { ordinal }] of texts.entries()) {
        const vector = vectors[at];
        if (vector) all.push({ start: starts.get(ordinal) ?? 0, vector });
      }
      if (texts.length < pieceTexts) return all;
    }
  }
  return {
    async fit({ id }, fileId) {
      const { rows } = await sql<{ passages: number; dimensions: number | null }>`
        select passages, embedding_dimensions as dimensions
        from dataset_files join datasets on datasets.id = dataset_id where dataset_files.id = ${fileId} and dataset_id = ${id}`.execute(store.db);
      const { passages, dimensions } = rows[0] ?? { passages: 0, dimensions: null };
      return passages <= mostVectors && passages * (dimensions ?? 0) <= mostNumbers;
    },
    vectors: async ({ id }, fileId) => (await found(id, fileId)).map(({ vector }) => vector),
    async vectorsOfEach({ id }, fileId, texts) {
      const all = await found(id, fileId);
      const groups = texts.map((): (readonly number[])[] => []);
      let at = 0;
      let end = 0;
      for (const [place, text] of texts.entries()) {
        end += Array.from(text).length + 2; // an empty line between two
        for (; at < all.length && all[at]!.start < end; at++) groups[place]!.push(Array.from(all[at]!.vector));
      }
      return groups;
    },
  };
}

async function startsOf({ db }: Store, fileId: number, generation: number, from: number): Promise<ReadonlyMap<number, number>> {
  const { rows } = await sql<{ ordinal: number; start: number }>`
    select ordinal, start from passages join editions on editions.id = edition_id
    where file_id = ${fileId} and generation = ${generation} and ordinal >= ${from} order by ordinal limit ${pieceTexts}`.execute(db);
  return new Map(rows.map(({ ordinal, start }) => [ordinal, start]));
}

import { sql } from 'kysely';
import { Fault } from '#core/fault';
import type { Store } from '#store/open';
import type { PassageIndex } from './search/types.ts';
import type { Dataset } from './store.ts';
import { batch, vectorsFor, type TextsToEmbed, type VectorWork } from './training-work.ts';

/** The vectors of what was just put into a dataset, as the answer gives them back. */
export interface Trained {
  /** Are they few enough for an answer: at most 1,000 vectors, and 2 million numbers? */
  fit(dataset: Pick<Dataset, 'id'>, fileId: number): Promise<boolean>;
  /** One for each passage, in order, also where the index has none: of a text that the model cannot read well. None where the dataset's model is gone, or cannot be asked now. */
  vectors(asked: AskedVectors): Promise<readonly Float32Array[]>;
  /** The same for each of the texts. */
  vectorsOfEach(asked: AskedVectors, texts: readonly string[]): Promise<readonly (readonly (readonly number[])[])[]>;
}

/** Of which file, and who pays for those that have to be made. */
interface AskedVectors extends Pick<TextsToEmbed, 'caller' | 'signal' | 'app' | 'tags' | 'address'> {
  readonly dataset: Pick<Dataset, 'id'>;
  readonly fileId: number;
}

export interface TrainedDeps extends VectorWork {
  readonly store: Store;
  readonly index: Pick<PassageIndex, 'texts'>;
}

const mostVectors = 1000;
const mostNumbers = 2_000_000;

export function openTrained({ store, index, ...work }: TrainedDeps): Trained {
  /** With where each passage begins in the text of the file, in code points. */
  async function found({
    dataset: { id: datasetId },
    fileId,
    ...asking
  }: AskedVectors): Promise<readonly { readonly start: number; readonly vector: Float32Array }[]> {
    const { rows } = await sql<{ model: string; dimensions: number | null; generation: number }>`
      select embedding_model as model, embedding_dimensions as dimensions, generation
      from dataset_files join datasets on datasets.id = dataset_id where dataset_files.id = ${fileId} and dataset_id = ${datasetId}`.execute(store.db);
    const [file] = rows;
    if (!file) return [];
    const { model, generation } = file;
    let { dimensions } = file;
    const all: { start: number; vector: Float32Array }[] = [];
    for (let from = 0; ; from += batch) {
      const texts = await index.texts({ fileId, generation }, from, batch);
      if (texts.length === 0) return all;
      const made = await vectorsFor(work, { ...asking, model, dimensions, texts: texts.map(({ text }) => text) });
      ({ dimensions } = made);
      const starts = await startsOf(store, fileId, generation, from);
      for (const [at, { ordinal }] of texts.entries()) all.push({ start: starts.get(ordinal) ?? 0, vector: made.of[at]! });
      if (texts.length < batch) return all;
    }
  }
  /** The file is there all the same. */
  const orNone = (error: unknown): [] => {
    if (error instanceof Fault) return [];
    throw error;
  };
  return {
    async fit({ id }, fileId) {
      const { rows } = await sql<{ passages: number; dimensions: number | null }>`
        select passages, embedding_dimensions as dimensions
        from dataset_files join datasets on datasets.id = dataset_id where dataset_files.id = ${fileId} and dataset_id = ${id}`.execute(store.db);
      const { passages, dimensions } = rows[0] ?? { passages: 0, dimensions: null };
      return passages <= mostVectors && passages * (dimensions ?? 0) <= mostNumbers;
    },
    vectors: async (asked) => (await found(asked).catch(orNone)).map(({ vector }) => vector),
    async vectorsOfEach(asked, texts) {
      const all = await found(asked).catch(orNone);
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
    where file_id = ${fileId} and generation = ${generation} and ordinal >= ${from} order by ordinal limit ${batch}`.execute(db);
  return new Map(rows.map(({ ordinal, start }) => [ordinal, start]));
}

import { openTokens } from '#kit/tokens/index';
import { embedder, embeddingWeight } from '#providers/built-in/embed';
import { openSentences } from '#providers/built-in/sentence/sentence';
import { floatsOf } from '#core/embed';
import type { Passage, Ranks } from '#core/passages';
import type { Store } from '#store/open';
import { openPassageIndex, openSearch, openVectorRanker, type Chunk, type EmbedText } from '#resources/datasets/search/index';
import { asking, callerOf } from '../../test/support/datasets.ts';
import { measures, type Ranked } from './measures.ts';

export const model = 'built-in-embedding';
export const dimensions = 512;

/** What a search needs beside the database. */
export function searchIn(store: Store, embed: EmbedText, isEnglishOnly = false) {
  const failed = (error: unknown) => {
    throw error;
  };
  const ranker = openVectorRanker({ store, cacheBytes: () => 268_435_456 });
  return asking(
    openSearch({ store, ranker, embed, isEnglishOnly: () => isEnglishOnly, weightOf: () => embeddingWeight, rerank: async () => undefined, failed }),
  );
}

export async function builtInVectors(): Promise<EmbedText> {
  const make = embedder({ sentences: openSentences(), tokens: openTokens });
  return async ({ texts, caller, signal }) => {
    const { answer } = await make({ model, inputs: texts, encoding: 'float' }, { caller, signal, strict: false });
    return 'vectors' in answer ? answer.vectors.map((vector) => Float32Array.from(floatsOf(vector))) : [];
  };
}

/** The vectors of texts, one for each. */
export const vectorsOf = (embed: EmbedText, chunks: readonly Chunk[]) =>
  embed({ model, texts: chunks.map(({ text }) => text), purpose: 'document', caller: callerOf(0), requestId: 'bench', signal: new AbortController().signal });

export interface Added {
  readonly datasetId: number;
  readonly fileId: number;
  readonly language?: string;
  readonly chunks: readonly Chunk[];
  readonly of?: readonly Float32Array[] | undefined;
}

export async function add(store: Store, { of, language = 'en', ...file }: Added): Promise<void> {
  const index = openPassageIndex(store);
  const vectors = of && { model, dimensions, of };
  await store.transaction(async (inside) => {
    await index.add(inside, { ...file, generation: 1, language, ...(vectors ? { vectors } : {}) });
    await index.flip(inside, { fileId: file.fileId, generation: 1 });
  });
}

/** Prints the measures of each channel that found something. @param namesOf what a passage counts as; all of the passages that were found for a question are given */
export function printChannels(
  what: string,
  found: readonly (readonly Passage[])[],
  relevant: readonly ReadonlySet<string>[],
  namesOf: (passage: Passage, question: number) => Ranked,
): void {
  for (const channel of ['lexical', 'vector', 'fused', 'rerank'] as const satisfies readonly (keyof Ranks)[]) {
    const ranked = found.map((passages, question) => {
      const inOrder = passages.filter(({ ranks }) => ranks[channel] !== null).toSorted((a, b) => a.ranks[channel]! - b.ranks[channel]!);
      return [...new Set(inOrder.flatMap((passage) => namesOf(passage, question)))];
    });
    if (ranked.some((names) => names.length > 0)) console.log(`${what} ${channel}: ${measures(ranked, relevant)}`);
  }
}

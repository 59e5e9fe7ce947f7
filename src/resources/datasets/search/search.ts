import { sql } from 'kysely';
import type { Passage, PassageSearch, SearchPassages } from '#core/passages';
import type { Store } from '#store/open';
import { arranged, type PlacedPassage, withoutSpace } from './arranged.ts';
import { languageOf } from './language.ts';
import { lexicalRanks } from './lexical.ts';
import { nearest } from './nearest.ts';
import { isEnglish, partsOf, type QuestionDeps, questionVector } from './question-vectors.ts';
import { inOrder, keyOf, type Place, type Scored } from './postings.ts';
import { mostReranked, type Rerank } from './rerank.ts';
import { type Scope, scopeOf } from './scope.ts';
import { slices } from './slices.ts';
import type { Chunk } from './types.ts';
import { openVectorTables, type VectorTables } from './vector-tables.ts';
import type { VectorRanker } from './vector-ranker.ts';

export interface SearchDeps extends QuestionDeps {
  readonly store: Store;
  /** For a database without pgvector. */
  readonly ranker: VectorRanker;
  readonly rerank: Rerank;
  readonly tables?: VectorTables;
}

/** Passages of each channel. */
const channelLimit = 100;

/** The search in datasets: by words (BM25) and by vectors, fused by rank, reranked where there is a service. What the caller may not read is not read. */
export function openSearch({ store, ranker, rerank, tables = openVectorTables(store), ...question }: SearchDeps): SearchPassages {
  return async (search) => {
    const { limit, explain = false, requestId, signal } = search;
    const scope = await scopeOf(store.db, search);
    if (limit === 0) return { passages: [], vectorsDown: false, warnings: [] };
    const [lexical, vectors] = await Promise.all([lexicalRanks(store.db, scope, search.question, channelLimit), byVectors(scope, search)]);
    signal.throwIfAborted();
    const candidates = fused(lexical, vectors.found);
    const considered = explain ? candidates : candidates.slice(0, Math.max(2 * limit, mostReranked));
    const placed = await placedPassages(store, scope, considered);
    const order = await reranked(placed, { question: search.question, requestId, signal });
    const { kept, cut } = arranged(order.found, limit);
    return {
      passages: [...kept, ...(explain ? [...cut, ...order.cut] : [])],
      vectorsDown: vectors.down,
      warnings: [...vectors.warnings, ...order.warnings],
    };
  };

  async function byVectors(scope: Scope, search: PassageSearch) {
    const warnings: string[] = [];
    const parts = partsOf(scope, question.isEnglishOnly);
    const language = parts.some(({ model }) => question.isEnglishOnly(model)) ? await languageOf(search.question, slices(search.signal)) : 'en';
    const found = await Promise.all(
      parts.map(async ({ model, dimensions, scope: part }) => {
        const table = await tables.find({ model, dimensions });
        const weight = question.weightOf?.(model) ?? 1;
        if (!table) return { places: [], weight };
        if (question.isEnglishOnly(model) && !isEnglish(language)) {
          warnings.push(`${model} reads English only: the question was searched by its words alone.`);
          return { places: [], weight };
        }
        const vector = await questionVector(question, { model, dimensions }, search);
        if (!vector) {
          warnings.push(`${model} makes no vectors at the moment: the question was searched by its words alone.`);
          return undefined;
        }
        return { places: await nearest(store, ranker, part, { table, vector, limit: channelLimit, signal: search.signal }), weight };
      }),
    );
    const others = scope.languages.filter(({ datasetId, language: one }) => !isEnglish(one) && isReadInEnglish(scope, datasetId));
    if (others.length > 0) warnings.push('Texts that are not English were searched by their words alone: the model of their vectors reads English only.');
    return { found: found.filter((one) => one !== undefined), down: found.includes(undefined), warnings: [...new Set(warnings)] };
  }

  function isReadInEnglish({ datasets }: Scope, datasetId: number): boolean {
    const model = datasets.find(({ id }) => id === datasetId)?.model;
    return typeof model === 'string' && question.isEnglishOnly(model);
  }

  /** In the order of the service, where there is one and it answers. */
  async function reranked(found: readonly PlacedPassage[], { question: text, requestId, signal }: Pick<PassageSearch, 'question' | 'requestId' | 'signal'>) {
    const sent = found.slice(0, mostReranked);
    try {
      const results = await rerank(
        text,
        sent.map(({ passage }) => passage.text),
        signal,
      );
      if (!results) return { found, cut: [], warnings: [] };
      const order = results.map(({ index, score }, at): PlacedPassage => {
        const one = sent[index]!;
        return { ...one, passage: { ...one.passage, score, ranks: { ...one.passage.ranks, rerank: at + 1 } } };
      });
      const ranked = new Set(results.map(({ index }) => index));
      const cut = found.filter((_, index) => !ranked.has(index)).map(({ passage }): Passage => ({ ...passage, cut: 'rerank' }));
      return { found: order, cut, warnings: [] };
    } catch (error) {
      signal.throwIfAborted();
      question.failed(error, requestId);
      return { found, cut: [], warnings: ['The reranking service did not answer: the passages stand in the order of the search.'] };
    }
  }
}

interface Row extends Pick<Chunk, 'ordinal' | 'page' | 'start' | 'end' | 'context' | 'quote'> {
  readonly id: number;
  readonly edition: number;
  readonly dataset: string;
  readonly filename: string;
}

/** Reads the candidates, as far as the caller may read them now. */
async function placedPassages({ db }: Store, { editions }: Scope, candidates: readonly Candidate[]): Promise<readonly PlacedPassage[]> {
  if (candidates.length === 0) return [];
  const { rows } = await sql<Row>`
    select passages.id, passages.edition_id as edition, passages.ordinal, passages.page, passages.start, passages."end", passages.context, passages.quote,
      scope.dataset, scope.filename
    from unnest(${candidates.map(({ edition }) => edition)}::bigint[], ${candidates.map(({ ordinal }) => ordinal)}::int[]) as candidate (edition_id, ordinal)
    join passages using (edition_id, ordinal) join (${editions}) as scope on scope.id = passages.edition_id`.execute(db);
  const found = new Map(rows.map((row) => [keyOf(row), row]));
  return candidates
    .filter((one) => found.has(keyOf(one)))
    .map((one, at) => {
      const { lexical, vector, score } = one;
      const { id, edition, ordinal, page, start, end, context, quote, dataset, filename } = found.get(keyOf(one))!;
      const passage = {
        id,
        dataset,
        filename,
        page,
        range: [start, end],
        quote,
        text: '',
        score,
        ranks: { lexical, vector, fused: at + 1, rerank: null },
      } as const;
      return { passage: withoutSpace(passage, { context, whole: quote, start }), edition, ordinal, context, whole: quote, span: [start, end] };
    });
}

/** A passage, and where a channel found it, from 1; each may be absent. */
interface Candidate extends Scored {
  readonly lexical: number | null;
  readonly vector: number | null;
  /** The sum of weight / (60 + rank) over the channels. */
  readonly score: number;
}

/** The usual constant of reciprocal rank fusion (Cormack, Clarke, Büttcher 2009). */
const k = 60;

/** What the index of a model found. */
interface Nearest {
  readonly places: readonly Place[];
  /** What its ranks count beside those by words, which count 1. */
  readonly weight: number;
}

/** Fuses ranks, best first. Scores of different channels cannot be compared, their ranks can. */
function fused(lexical: readonly Place[], vectors: readonly Nearest[]): readonly Candidate[] {
  const found = new Map<string, Candidate>();
  const add = (places: readonly Place[], channel: 'lexical' | 'vector', weight = 1) => {
    for (const [at, { edition, ordinal }] of places.entries()) {
      const key = keyOf({ edition, ordinal });
      const one = found.get(key) ?? { edition, ordinal, lexical: null, vector: null, score: 0 };
      found.set(key, { ...one, [channel]: at + 1, score: one.score + weight / (k + at + 1) });
    }
  };
  add(lexical, 'lexical');
  for (const { places, weight } of vectors) add(places, 'vector', weight);
  return [...found.values()].toSorted(inOrder);
}

import { isObject } from '#core/json';
import type { Clock } from '#kit/async/clock';
import { parseJson } from '#kit/json/scan';
import type { Upstreams } from '#kit/upstream/pool';
import { timed } from '#kit/async/timed';

/** The service that puts passages in a better order. */
export interface RerankSettings {
  /** Empty: there is none. */
  readonly url: string;
  readonly apiKey: string;
  readonly model: string;
}

export interface RerankDeps {
  readonly settings: () => RerankSettings;
  readonly upstreams: Upstreams;
  readonly clock: Clock;
}

export interface Reranked {
  /** The index of the text. */
  readonly index: number;
  readonly score: number;
}

/** Texts in the order of the service, best first; undefined where there is no service. @throws where it does not answer well within 2 s; the signal's reason */
export type Rerank = (question: string, texts: readonly string[], signal: AbortSignal) => Promise<readonly Reranked[] | undefined>;

/** Passages that are sent. */
export const mostReranked = 50;
const milliseconds = 2000;
const mostBytes = 1_048_576;
/** Characters of a question that are sent. */
const mostCharacters = 8000;

/**
 * Asks a service with the interface of Cohere (https://docs.cohere.com/reference/rerank) and Jina (https://jina.ai/reranker): POST `{model, query, documents, top_n}`,
 * answered by `{results: [{index, relevance_score}]}`.
 */
export function openRerank({ settings, upstreams, clock }: RerankDeps): Rerank {
  return async (question, texts, signal) => {
    const { url: address, apiKey, model } = settings();
    if (address === '' || texts.length === 0) return undefined;
    const url = new URL(address);
    const body = { ...(model === '' ? {} : { model }), query: question.slice(0, mostCharacters).toWellFormed(), documents: texts, top_n: texts.length };
    return timed({ clock, milliseconds, late: new Error('The reranking service took too long.'), signal }, async (within) => {
      const response = await upstreams.post({
        url,
        path: url.pathname + url.search,
        headers: { 'content-type': 'application/json', accept: 'application/json', ...(apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` }) },
        body: JSON.stringify(body),
        signal: within,
        headSeconds: milliseconds / 1000,
        quietSeconds: milliseconds / 1000,
      });
      if (!response.ok) {
        response.leave();
        throw new Error(`The reranking service answered with ${response.status}.`);
      }
      return resultsIn(parseJson(await response.whole(mostBytes)), texts.length);
    });
  };
}

/** Of what an index is named by twice, the first counts. */
function resultsIn(answer: unknown, count: number): readonly Reranked[] {
  const results = isObject(answer) ? answer['results'] : undefined;
  if (!Array.isArray(results)) throw new Error('The reranking service sent no results.');
  const scores = new Map<number, number>();
  for (const result of results.slice(0, 10 * mostReranked) as readonly unknown[]) {
    if (!isObject(result)) continue;
    const { index, relevance_score: score } = result;
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= count || scores.has(index)) continue;
    if (typeof score === 'number' && Number.isFinite(score)) scores.set(index, score);
  }
  if (scores.size === 0) throw new Error('The reranking service sent no results.');
  return Array.from(scores, ([index, score]) => ({ index, score })).toSorted((one, other) => other.score - one.score);
}

import type { Settings } from '#config/index';
import { floatsOf, type EmbedCall } from '#core/embed';
import { Fault } from '#core/fault';
import type { SearchPassages } from '#core/passages';
import { Permits } from '#core/permits';
import { billedTo, withOwnProgress } from '#core/own-progress';
import { stepOf, steps } from '#core/steps';
import type { Clock } from '#kit/async/clock';
import { embeddingWeight } from '#providers/built-in/embed';
import {
  openRerank,
  openSearch,
  openVectorRanker,
  openVectorTables,
  type AffordTraining,
  type EmbedText,
  type EmbedTexts,
  type VectorTables,
} from '#resources/datasets/search/index';
import { inOwnCodes, nativeContext } from '#resources/native-context';
import type { Store } from '#store/open';
import { causeOf, type Log } from '#telemetry/log';
import type { Calls } from './calls.ts';

export interface DatasetSearchDeps {
  readonly store: Store;
  readonly calls: Calls;
  readonly clock: Clock;
  readonly log: Log;
}

/** The search in datasets with what it needs of the gateway. */
export interface DatasetSearch {
  readonly search: SearchPassages;
  /** Vectors of texts, booked: of questions as embeddings are, of documents as training. */
  readonly embed: EmbedText;
  readonly affords: AffordTraining;
  readonly tables: VectorTables;
  /** Whether a model reads English only: other texts get no vectors of it. */
  readonly isEnglishOnly: (model: string) => boolean;
  close(): Promise<void>;
}

export function openDatasetSearch({ store, calls, clock, log }: DatasetSearchDeps): DatasetSearch {
  const settings = (): Settings => calls.runtime().settings;
  const tables = openVectorTables(store);
  const ranker = openVectorRanker({ store, cacheBytes: () => settings().retrieval.vectorCacheBytes });
  const embed = embedOf(calls);
  const isEnglishOnly = (model: string) => (calls.runtime().models.find(model)?.targets ?? []).some(({ target }) => target.provider === 'built-in');
  const search = openSearch({
    store,
    tables,
    ranker,
    embed,
    isEnglishOnly,
    weightOf: (model) => (isEnglishOnly(model) ? embeddingWeight : 1),
    clock,
    rerank: openRerank({ settings: () => settings().rerank, upstreams: calls.upstreams, clock }),
    failed: (error, requestId) => log.warn({ id: requestId, ...causeOf(error) }, 'A search in datasets goes on without what failed.'),
  });
  return { search, embed, affords: affordsOf(calls), tables, isEnglishOnly, close: () => ranker.close() };
}

function embedOf({ pipeline, models, runtime }: Calls): EmbedText {
  const nextStep = questionSteps();
  return async (asked) => {
    const { model, purpose, caller, requestId, address, step, progress = { attempts: [] }, permits = new Permits(), app, tags, signal } = asked;
    // a name that nobody knows would be answered by the default model, whose vectors are others
    if (models(caller).find(model)?.kind !== 'embedding')
      throw new Fault('not-found', `The embedding model ${model} is not available.`, { field: 'model', reason: 'model' });
    const isQuestion = purpose === 'question';
    const context = nativeContext({ caller, requestId, address, signal });
    const balance = isQuestion ? runtime().settings.charge.embeddings : 'train';
    const number = isQuestion ? nextStep(requestId, step) : 0;
    const labels = { ...(app === undefined ? {} : { app }), tags };
    // a question is asked of several models at a time; what a run looks up is a step of its own, which counts in its limits
    const within = step === undefined ? billedTo : withOwnProgress;
    const { vectors } = await within(progress, (own) =>
      pipeline.embed(callFor(asked), { ...context, ...labels, step: number, balance, permits, progress: own, told: inOwnCodes }),
    );
    return vectors.map((vector) => Float32Array.from(floatsOf(vector)));
  };
}

const callFor = ({ model, dimensions, texts, purpose }: Pick<EmbedTexts, 'model' | 'dimensions' | 'texts' | 'purpose'>): EmbedCall => ({
  model,
  inputs: texts,
  purposes: texts.map(() => ({ task: purpose === 'question' ? 'RETRIEVAL_QUERY' : 'RETRIEVAL_DOCUMENT' })),
  encoding: 'float',
  ...(dimensions === undefined ? {} : { dimensions }),
});

/** The fewest texts that there can be. */
const least = { texts: ['.'], purpose: 'document' } as const;

const affordsOf =
  ({ pipeline, models }: Calls): AffordTraining =>
  async ({ model, caller }) => {
    if (models(caller).find(model)?.kind !== 'embedding') return; // there are no vectors to pay for
    const context = nativeContext({ caller, requestId: '', signal: new AbortController().signal });
    await pipeline.affordsVectors(callFor({ model, ...least }), { ...context, balance: 'train' });
  };

const mostRequests = 10_000;

/** A step number for each vector that one request asks for, or one step of a run. */
function questionSteps(): (requestId: string, step: number | undefined) => number {
  const taken = new Map<string, number>();
  return (requestId, step) => {
    const asker = step === undefined ? requestId : `${requestId}/${step}`;
    const range = step === undefined ? 'question' : 'lookedUp';
    const at = taken.get(asker) ?? 0;
    if (at >= steps[range].most) throw new Fault('invalid', `A request looks up at most ${steps[range].most} questions.`);
    taken.delete(asker);
    taken.set(asker, at + 1);
    const [oldest] = taken.keys();
    if (taken.size > mostRequests && oldest !== undefined) taken.delete(oldest);
    return stepOf(step ?? 0, range, at);
  };
}

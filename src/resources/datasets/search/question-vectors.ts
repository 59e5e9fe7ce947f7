import { sql } from 'kysely';
import { Fault, type FaultCode } from '#core/fault';
import type { PassageSearch } from '#core/passages';
import { systemClock, type Clock } from '#kit/async/clock';
import type { Scope } from './scope.ts';
import { timed } from '#kit/async/timed';
import type { EmbedText, VectorModel } from './types.ts';
import { unit } from './vectors.ts';

/** Characters of a question that are embedded: models read about 8,000 tokens. */
const mostCharacters = 8000;
const milliseconds = 10_000;

/** What is the caller's own matter: a search by words alone would hide it. */
const callers: ReadonlySet<FaultCode> = new Set(['quota-spent', 'invalid', 'unauthenticated']);

export interface QuestionDeps {
  readonly embed: EmbedText;
  /** Whether the model reads English only. */
  readonly isEnglishOnly: (model: string) => boolean;
  /** What the ranks by the vectors of a model count beside those by words; absent: 1, as much. */
  readonly weightOf?: (model: string) => number;
  readonly clock?: Clock;
  readonly failed: (error: unknown, requestId: string) => void;
}

/** The parts of the scope by the model of their vectors: datasets without a model are in none. What is not English is in no part of a model that reads only English. */
export function partsOf(scope: Scope, isEnglishOnly: (model: string) => boolean): readonly (VectorModel & { readonly scope: Scope })[] {
  const models = new Map<string, { readonly model: string; readonly dimensions: number; readonly ids: Set<number> }>();
  for (const { id, model, dimensions } of scope.datasets) {
    if (model === null || dimensions === null) continue;
    const key = `${dimensions} ${model}`;
    const one = models.get(key) ?? { model, dimensions, ids: new Set<number>() };
    one.ids.add(id);
    models.set(key, one);
  }
  return Array.from(models.values(), ({ model, dimensions, ids }) => {
    const reads = isEnglishOnly(model) ? sql`and part.language in ('en', 'und')` : sql``;
    return {
      model,
      dimensions,
      scope: {
        datasets: scope.datasets.filter(({ id }) => ids.has(id)),
        languages: scope.languages.filter(({ datasetId, language }) => ids.has(datasetId) && (!isEnglishOnly(model) || isEnglish(language))),
        editions: sql`select * from (${scope.editions}) as part where part.dataset_id = any(${[...ids]}::bigint[]) ${reads}`,
      },
    };
  }).filter((part) => part.scope.languages.length > 0);
}

export const isEnglish = (language: string): boolean => language === 'en' || language === 'und';

/** The question's vector by one model; undefined where the model is gone or does not answer. @throws Fault where it is the caller's matter; the signal's reason */
export async function questionVector(
  { embed, clock = systemClock, failed }: QuestionDeps,
  { model, dimensions }: VectorModel,
  { question, caller, requestId, step, progress, permits, app, tags, signal }: PassageSearch,
): Promise<Float32Array | undefined> {
  const late = new Fault('timed-out', 'The question took too long to embed.');
  const asked = {
    model,
    texts: [question.slice(0, mostCharacters).toWellFormed()],
    purpose: 'question',
    caller,
    requestId,
    app,
    tags,
    ...(step === undefined ? {} : { step }),
    ...(permits ? { permits } : {}),
    ...(progress ? { progress } : {}),
  } as const;
  try {
    return await timed({ clock, milliseconds, late, signal }, async (within) => {
      const [own] = await embed({ ...asked, signal: within });
      const [vector] = own?.length === dimensions ? [own] : await embed({ ...asked, dimensions, signal: within });
      if (vector?.length !== dimensions) throw new Fault('upstream-failed', `${model} makes vectors of another length than it did.`);
      return unit(vector);
    });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Fault && callers.has(error.code)) throw error;
    failed(error, requestId);
    return undefined;
  }
}

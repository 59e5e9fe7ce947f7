import type { Caller, Labels } from '#core/context';
import { requireScope } from '#core/scopes';
import { Fault } from '#core/fault';
import { requestId } from '#kit/crypto/ids';
import type { EmbeddingCache, EmbedText } from './search/types.ts';

/** The key may have been narrowed since. @throws Fault `forbidden` */
export function mayTrain(caller: Caller): Caller {
  requireScope(caller, 'datasets', 'query');
  return caller;
}

/** Texts of one call that makes vectors. */
export const batch = 64;
/** Seconds for which a job waits where it stands; for more it begins again. */
const longestWait = 120;

/** Waits where a limit per minute is reached: what was done so far is not done again. */
export async function patiently<Made>(
  { sleep }: { readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void> },
  signal: AbortSignal,
  make: () => Promise<Made>,
): Promise<Made> {
  for (;;) {
    try {
      return await make();
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'rate-limited') throw error;
      const { retryAfter = 1 } = error.details;
      if (retryAfter > longestWait) throw error;
      await sleep(1000 * Math.max(1, retryAfter), signal);
    }
  }
}

export interface VectorWork {
  readonly cache: Pick<EmbeddingCache, 'find' | 'keep'>;
  readonly embed: EmbedText;
}

export interface TextsToEmbed extends Labels {
  readonly model: string;
  /** As many as its vectors are thought to have; null where that is not known. */
  readonly dimensions: number | null;
  readonly texts: readonly string[];
  readonly caller: Caller;
  readonly signal: AbortSignal;
}

/** The vectors of some texts; those that were made before are not asked for again. @throws Fault, `not-found` where the model is gone */
export async function vectorsFor(
  work: VectorWork,
  { model, dimensions, ...asked }: TextsToEmbed,
): Promise<{ readonly dimensions: number; readonly of: readonly Float32Array[] }> {
  const { cache, embed } = work;
  const { texts } = asked;
  const known = dimensions === null ? texts.map(() => undefined) : await cache.find({ model, dimensions }, texts);
  const missing = [...new Set(texts.filter((_, at) => known[at] === undefined))];
  if (missing.length === 0) return { dimensions: dimensions!, of: known.map((one) => one!) };
  const made = await embed({ ...asked, model, texts: missing, purpose: 'document', requestId: requestId() });
  const now = { model, dimensions: made[0]!.length };
  await cache.keep(now, missing, made);
  if (missing.length < texts.length && now.dimensions !== dimensions) return vectorsFor(work, { ...asked, ...now }); // it makes others than it did
  const byText = new Map(missing.map((text, at) => [text, made[at]!]));
  return { dimensions: now.dimensions, of: texts.map((text, at) => known[at] ?? byText.get(text)!) };
}

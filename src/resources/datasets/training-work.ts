import type { Caller, Origin } from '#core/context';
import { requireScope } from '#core/scopes';
import { Fault, faultOf, reasonOf } from '#core/fault';
import { Cancelled } from '#kit/async/client-left';
import { requestId } from '#kit/crypto/ids';
import type { RunningJob } from '#store/job';
import { Postponed } from '#store/job-pauses';
import type { EmbeddingCache, EmbedText } from './search/types.ts';

/** The rights of those for whom jobs run: they may lose them while one does. */
export interface JobRights {
  /** Whose key it is, as it is now. @throws Fault `unauthenticated` for one that is not good any more */
  readonly callerOf: (who: Pick<Caller, 'userId' | 'keyId'>) => Promise<Caller>;
  /** Cuts the work when key or user is no more. @returns to be called when it is over */
  readonly watch: (ongoing: { readonly caller: Pick<Caller, 'userId' | 'keyId'>; cut(reason: Fault): void }) => () => void;
}

export interface WorkedFor<Result> extends Pick<JobRights, 'watch'> {
  /** Absent: the user was removed before, and `work` finds that out. */
  readonly who?: Pick<Caller, 'userId' | 'keyId'> | undefined;
  readonly job: RunningJob;
  readonly work: (signal: AbortSignal) => Promise<Result>;
  /** Called with the reason, unless another process takes the job up. */
  readonly failed: (reason: unknown) => Promise<void>;
}

/** Runs a job on behalf of a user; aborted when the user or key is removed. */
export async function workedFor<Result>({ watch, who, job, work, failed }: WorkedFor<Result>): Promise<Result> {
  const over = new AbortController();
  const unwatch = who && watch({ caller: who, cut: (reason) => over.abort(reason) });
  try {
    return await work(AbortSignal.any([job.signal, over.signal]));
  } catch (error) {
    const reason = over.signal.aborted ? reasonOf(error, over.signal) : error;
    if (!job.signal.aborted || job.signal.reason instanceof Cancelled) await failed(reason);
    throw reason;
  } finally {
    unwatch?.();
  }
}

/** The fault that ended a job. @throws Postponed where a limit per minute is reached */
export function faultOrPostponed(reason: unknown): Fault {
  const fault = faultOf(reason);
  if (fault.code === 'rate-limited') throw new Postponed(fault.details.retryAfter ?? 1);
  return fault;
}

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

export interface TextsToEmbed extends Origin {
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

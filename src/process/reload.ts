import type { Settings } from '#config/index';
import type { Clock } from '#kit/async/clock';

/** A worker, as far as a reload needs it. */
export interface Reloading {
  /** Its channel is closed: it has ended or is ending. */
  readonly isGone: boolean;
  /** Applies the settings, or rejects and keeps those it has. @returns the names of the models that answer */
  change(settings: Settings): Promise<readonly string[]>;
  /** Kills it; a worker with the settings in effect replaces it. */
  replace(): void;
}

/** A worker that has not answered by then is stuck. */
const stuckMilliseconds = 10_000;

/**
 * Applies new settings in all workers or in none. If one refuses, all return to the old settings, and a worker that does not is replaced. A worker that dies
 * during a reload makes no difference: its replacement starts with the settings in effect.
 * @param workers returns the workers there are at the moment
 * @param hold sets the settings with which new workers start
 * @returns the names of the models that answer; `undefined` where no worker was left
 * @throws the error of the first worker that refused
 */
export async function reloadAll(
  workers: () => readonly Reloading[],
  { before, after }: { readonly before: Settings; readonly after: Settings },
  hold: (settings: Settings) => void,
  clock: Clock,
): Promise<readonly string[] | undefined> {
  hold(after);
  const answers = await Promise.all(workers().map((worker) => answerOf(worker, after, clock)));
  const refused = answers.find(({ type }) => type === 'refused');
  if (refused) {
    hold(before);
    // Including workers that were started with the new settings in the meantime.
    const back = await Promise.all(workers().map((worker) => answerOf(worker, before, clock)));
    for (const { type, worker } of back) if (type === 'refused' || type === 'stuck') worker.replace();
    throw refused.error;
  }
  for (const { type, worker } of answers) if (type === 'stuck') worker.replace();
  return answers.findLast(({ models }) => models)?.models;
}

interface Answer {
  readonly type: 'taken' | 'refused' | 'gone' | 'stuck';
  readonly worker: Reloading;
  readonly models?: readonly string[];
  readonly error?: unknown;
}

async function answerOf(worker: Reloading, settings: Settings, clock: Clock): Promise<Answer> {
  const stuck = Promise.withResolvers<Answer>();
  const cancel = clock.after(stuckMilliseconds, () => stuck.resolve({ type: 'stuck', worker }));
  const answer = worker.change(settings).then(
    (models): Answer => ({ type: 'taken', worker, models }),
    (error: unknown): Answer => ({ type: worker.isGone ? 'gone' : 'refused', worker, error }),
  );
  try {
    return await Promise.race([answer, stuck.promise]);
  } finally {
    cancel();
  }
}

import type { Settings } from '#config/index';
import type { Clock } from '#kit/async/clock';

/** A worker as far as new settings are concerned. */
export interface Reloading {
  /** Its channel is closed: it has died or is about to. */
  readonly isGone: boolean;
  /** Takes the settings, or refuses them and keeps those it has. @returns the names of the models that answer */
  change(settings: Settings): Promise<readonly string[]>;
  /** Ends it at once; a worker with the settings that hold takes its place. */
  replace(): void;
}

/** A worker that has not answered after so many milliseconds is stuck. */
const patienceMilliseconds = 10_000;

/**
 * Has all workers take new settings. Where one refuses, the old ones hold in all of them: a worker that does not go back is replaced. A worker that dies meanwhile
 * changes nothing, since the one that takes its place starts with the settings that hold.
 *
 * @param workers those that there are when it is called
 * @param hold makes settings those with which new workers start
 * @returns the names of the models that answer; undefined where no worker was left to say it
 * @throws what the first worker that refused says
 */
export async function reloadAll(
  workers: () => readonly Reloading[],
  { before, after }: { readonly before: Settings; readonly after: Settings },
  hold: (settings: Settings) => void,
  clock: Clock,
): Promise<readonly string[] | undefined> {
  hold(after);
  const said = await Promise.all(workers().map((worker) => answerOf(worker, after, clock)));
  const refused = said.find(({ type }) => type === 'refused');
  if (refused) {
    hold(before);
    // Also those that were started with the new settings meanwhile.
    const back = await Promise.all(workers().map((worker) => answerOf(worker, before, clock)));
    for (const { type, worker } of back) if (type === 'refused' || type === 'stuck') worker.replace();
    throw refused.why;
  }
  for (const { type, worker } of said) if (type === 'stuck') worker.replace();
  return said.findLast(({ models }) => models)?.models;
}

interface Answer {
  readonly type: 'taken' | 'refused' | 'gone' | 'stuck';
  readonly worker: Reloading;
  readonly models?: readonly string[];
  readonly why?: unknown;
}

async function answerOf(worker: Reloading, settings: Settings, clock: Clock): Promise<Answer> {
  const stuck = Promise.withResolvers<Answer>();
  const cancel = clock.after(patienceMilliseconds, () => stuck.resolve({ type: 'stuck', worker }));
  const answer = worker.change(settings).then(
    (models): Answer => ({ type: 'taken', worker, models }),
    (why: unknown): Answer => ({ type: worker.isGone ? 'gone' : 'refused', worker, why }),
  );
  try {
    return await Promise.race([answer, stuck.promise]);
  } finally {
    cancel();
  }
}

import type { Clock } from '#kit/async/clock';

/** What forgets what is old, some at a time. */
export interface Forgetting {
  /** @returns false where there may be more */
  forgetOld(): Promise<boolean>;
}

const pauseMilliseconds = 60_000;

/** Forgets what is old, every minute. @returns what ends it */
export function forgetting(all: readonly Forgetting[], clock: Clock, log: (problem: string, cause: unknown) => void): () => void {
  let cancel = () => {};
  let isOver = false;
  const forget = async () => {
    for (const one of all) while (!isOver && !(await one.forgetOld()));
  };
  const later = () => {
    if (isOver) return;
    cancel = clock.after(pauseMilliseconds, () => {
      void forget()
        .catch((error: unknown) => log('Old calls of tools of MCP servers could not be deleted: it is tried again.', error))
        .then(later);
    });
  };
  later();
  return () => {
    isOver = true;
    cancel();
  };
}

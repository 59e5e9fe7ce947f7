import type { Clock } from './clock.ts';

/**
 * Runs costly work once for all callers that wait for it: one run at a time, and none begins within `milliseconds` of the one before. A caller gets the result of a
 * run that began after it asked, so what it gets is never out of date.
 */
export function throttled<Result>(clock: Clock, milliseconds: number, work: () => Promise<Result>): () => Promise<Result> {
  let waiting: Promise<Result> | undefined;
  let running: Promise<unknown> = Promise.resolve();
  let beganAt = -Infinity;
  const begin = async (): Promise<Result> => {
    await running;
    const rest = beganAt + milliseconds - clock.monotonic();
    if (rest > 0) await clock.sleep(rest);
    waiting = undefined;
    beganAt = clock.monotonic();
    const result = work();
    running = result.catch(() => undefined);
    return result;
  };
  return () => (waiting ??= begin());
}

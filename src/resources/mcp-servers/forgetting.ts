import type { Clock } from '#kit/async/clock';
import { repeated } from '#kit/async/repeated';

/** What forgets what is old, some at a time. */
export interface Forgetting {
  /** @returns false where there may be more */
  forgetOld(): Promise<boolean>;
}

const pauseMilliseconds = 60_000;

/** Forgets what is old, every minute. @returns what ends it */
export const forgetting = (all: readonly Forgetting[], clock: Clock, log: (problem: string, cause: unknown) => void): (() => void) =>
  repeated({
    clock,
    milliseconds: pauseMilliseconds,
    async work(isEnded) {
      for (const one of all) while (!isEnded() && !(await one.forgetOld()));
    },
    failed: (cause) => log('Old calls of tools of MCP servers could not be deleted: it is tried again.', cause),
  });

import type { Clock } from '#kit/async/clock';

export interface BackoffDeps {
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
  /** Called when what was logged as a problem is solved. */
  readonly mended: (what: string) => void;
}

const firstPause = 400;
const longestPause = 10_000;

/** Retries the shipping of journals, each by its name, after pauses that double. A journal that fails is logged once, and once when it is shipped again. */
export class Backoff {
  readonly #deps: BackoffDeps;
  readonly #failing = new Map<string, { readonly times: number; readonly until: number }>();

  constructor(deps: BackoffDeps) {
    this.#deps = deps;
  }

  /** Does the work, unless it failed a short while ago. Never rejects. */
  async attempt(journal: string, work: () => Promise<void>): Promise<void> {
    const { clock, log, mended } = this.#deps;
    const failure = this.#failing.get(journal);
    if (failure && clock.monotonic() < failure.until) return;
    try {
      await work();
      if (this.#failing.delete(journal)) mended(`The journal ${journal} is shipped again.`);
    } catch (error) {
      if (!failure) log(`The journal ${journal} cannot be shipped; it waits.`, error);
      const times = (failure?.times ?? 0) + 1;
      this.#failing.set(journal, { times, until: clock.monotonic() + Math.min(firstPause * 2 ** (times - 1), longestPause) });
    }
  }
}

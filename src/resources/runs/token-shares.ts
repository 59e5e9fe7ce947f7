import { orAborted } from '#kit/async/or-aborted';

/** Tokens that an answer is to have. */
export interface SharesWanted {
  /** What is left of the run's tokens, without what is set aside. */
  readonly left: () => number;
  readonly tokens: number;
  readonly signal: AbortSignal;
}

/** What answers of a run that are made at once may use of its tokens: each has its share set aside, so that together they do not use more than are left. */
export class TokenShares {
  #held = 0;
  #given = Promise.withResolvers<void>();

  /**
   * Waits for other answers where too little is left beside their shares. Without others it takes what there is.
   * @returns the share, at least one token @throws the signal's reason
   */
  async take({ left, tokens, signal }: SharesWanted): Promise<number> {
    for (;;) {
      signal.throwIfAborted();
      const free = left() - this.#held;
      if (free >= tokens || this.#held === 0) {
        const share = Math.max(1, Math.min(tokens, free));
        this.#held += share;
        return share;
      }
      await orAborted(this.#given.promise, signal);
    }
  }

  give(share: number): void {
    this.#held -= share;
    this.#given.resolve();
    this.#given = Promise.withResolvers();
  }
}

import type { GenerateEvent } from '#core/event';
import { TokenEstimate } from '#kit/tokens/estimate';

/** Reports the tokens of what the client does not get, or not yet. */
export class UnseenTokens {
  #kept = new TokenEstimate();
  #reported = 0;

  /** @param text that was kept from the client */
  kept(text: string): readonly GenerateEvent[] {
    this.#kept.add(text);
    return this.#report(this.#kept.tokens);
  }

  /** The client gets all of it after all. */
  released(): readonly GenerateEvent[] {
    this.#kept = new TokenEstimate();
    return this.#report(0);
  }

  #report(kept: number): readonly GenerateEvent[] {
    const tokens = kept - this.#reported;
    if (tokens === 0) return [];
    this.#reported = kept;
    return [{ type: 'passed', tokens, unseen: true }];
  }
}

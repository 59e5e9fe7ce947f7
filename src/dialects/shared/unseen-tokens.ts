import type { GenerateEvent } from '#core/event';

/** UTF-8 bytes of a token, about. */
const bytesPerToken = 4;

/** Reports the tokens of what the client does not get, or not yet. */
export class UnseenTokens {
  #bytes = 0;
  #reported = 0;

  /** @param bytes that were kept from the client; negative where it gets them after all */
  changed(bytes: number): readonly GenerateEvent[] {
    this.#bytes += bytes;
    const tokens = Math.ceil(this.#bytes / bytesPerToken) - this.#reported;
    if (tokens === 0) return [];
    this.#reported += tokens;
    return [{ type: 'passed', tokens, unseen: true }];
  }
}

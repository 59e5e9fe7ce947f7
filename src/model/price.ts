/** US dollars for a million tokens. */
export interface Rates {
  readonly input: number;
  readonly output: number;
  /** Of the prompt, what the provider had read before; absent: as the rest of the prompt. */
  readonly cached?: number;
}

/** What a model costs. */
export interface Price extends Rates {
  /** For calls whose prompt has more than `above` tokens, all of their tokens. */
  readonly long?: Rates & { readonly above: number };
}

export const ratesOf = (price: Price, promptTokens: number): Rates => (price.long && promptTokens > price.long.above ? price.long : price);

/** US dollars for so many tokens; `input` includes what was cached. */
export function costOf(
  price: Price,
  { input, output, cached = 0 }: { readonly input: number; readonly output: number; readonly cached?: number | undefined },
): number {
  const rates = ratesOf(price, input);
  const known = rates.cached === undefined ? 0 : Math.min(cached, input);
  return ((input - known) * rates.input + known * (rates.cached ?? 0) + output * rates.output) / 1e6;
}

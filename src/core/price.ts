/** US dollars for a million tokens. */
export interface Rates {
  readonly input: number;
  readonly output: number;
  /** Of the prompt, what the provider had read before; absent: as the rest of the prompt. */
  readonly cached?: number;
  /** Of the prompt, what the provider wrote into its cache for some minutes; absent: as the rest of the prompt. */
  readonly cacheWrite?: number;
  /** The same for an hour; absent: as for some minutes. */
  readonly cacheWrite1h?: number;
}

/** What a model costs. */
export interface Price extends Rates {
  /** For calls whose prompt has more than `above` tokens, all of their tokens. */
  readonly long?: Rates & { readonly above: number };
  /** US dollars for one picture that is made, for one second of sound that is read or made, and for one character that is spoken: beside the tokens. */
  readonly picture?: number;
  readonly second?: number;
  readonly character?: number;
}

/** What a call has made or read that is not counted in tokens. */
export interface Counts {
  /** Pictures that were made. */
  readonly pictures?: number;
  /** Seconds of sound that were read: a transcript's. */
  readonly heardSeconds?: number;
  /** Seconds of sound that were made: speech. */
  readonly spokenSeconds?: number;
  /** Characters that were spoken. */
  readonly characters?: number;
}

/** Tokens of a call: `input` includes what was cached and what was written into the cache. */
export interface Spent {
  readonly input: number;
  readonly output: number;
  readonly cached?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly cacheWrite1h?: number | undefined;
}

export const ratesOf = (price: Price, promptTokens: number): Rates => (price.long && promptTokens > price.long.above ? price.long : price);

/** US dollars for so many tokens, and for what was made or read that they do not stand for. */
export function costOf(price: Price, spent: Spent, counts?: Counts): number {
  const rates = ratesOf(price, spent.input);
  const { input, output, cached = 0, cacheWrite: write = 0, cacheWrite1h: write1h = 0 } = spent;
  let fresh = input;
  let prompt = 0;
  const part = (tokens: number, rate: number) => {
    const some = Math.min(tokens, fresh);
    fresh -= some;
    prompt += some * rate;
  };
  if (cached > 0) part(cached, rates.cached ?? rates.input);
  if (write > 0) part(write, rates.cacheWrite ?? rates.input);
  if (write1h > 0) part(write1h, rates.cacheWrite1h ?? rates.cacheWrite ?? rates.input);
  const cost = (prompt + fresh * rates.input + output * rates.output) / 1e6;
  return counts ? cost + costOfCounts(price, counts) : cost;
}

/** US dollars for a million tokens of a prompt at most: nobody knows before how much of it is going to be written into the provider's cache. */
export const dearestInput = ({ input, cacheWrite = input, cacheWrite1h = cacheWrite }: Rates): number => Math.max(input, cacheWrite, cacheWrite1h);

/** US dollars that so many tokens cost at most. */
export function mostOf(price: Price, input: number, output: number): number {
  const rates = ratesOf(price, input);
  return (input * dearestInput(rates) + output * rates.output) / 1e6;
}

/** Are there rates for what is not counted in tokens? */
export const hasCountRates = ({ picture, second, character }: Pick<Price, 'picture' | 'second' | 'character'>): boolean =>
  picture !== undefined || second !== undefined || character !== undefined;

/** US dollars for pictures, seconds and characters: by their own rates, or, where the price has none, by the tokens that stand for them. */
export function costOfCounts(price: Price, counts: Counts): number {
  if (!hasCountRates(price)) return costOf(price, tokensOfCounts(counts));
  const { picture = 0, second = 0, character = 0 } = price;
  const { pictures = 0, heardSeconds = 0, spokenSeconds = 0, characters = 0 } = counts;
  return pictures * picture + (heardSeconds + spokenSeconds) * second + characters * character;
}

/**
 * Model tokens that stand for what is not counted in tokens, where a provider reports none: 1,000 for a picture, 20 for a second of sound. What is read counts
 * as input, what is made as output.
 */
export function tokensOfCounts({ pictures = 0, heardSeconds = 0, spokenSeconds = 0 }: Counts): { readonly input: number; readonly output: number } {
  return { input: Math.ceil(heardSeconds * tokensPer.second), output: Math.ceil(pictures * tokensPer.picture + spokenSeconds * tokensPer.second) };
}

const tokensPer = { picture: 1000, second: 20 };

/** A price that none of these is above: what a call may cost before it is known which of them counts. Each has at least one. */
export function dearestOf([first, ...others]: readonly [Price, ...Price[]]): Price {
  return others.reduce(dearer, first);
}

function dearer(a: Price, b: Price): Price {
  const above = Math.min(a.long?.above ?? Infinity, b.long?.above ?? Infinity);
  const long = above === Infinity ? undefined : { ...dearerRates(dearerRates(a, b), dearerRates(a.long ?? a, b.long ?? b)), above };
  const { picture, second, character } = { picture: most(a.picture, b.picture), second: most(a.second, b.second), character: most(a.character, b.character) };
  return {
    ...dearerRates(a, b),
    ...(long ? { long } : {}),
    ...(picture === undefined ? {} : { picture }),
    ...(second === undefined ? {} : { second }),
    ...(character === undefined ? {} : { character }),
  };
}

/** Each rate the dearer one; a rate that either of them lacks is as its input. */
function dearerRates(a: Rates, b: Rates): Rates {
  const rate = (name: 'cached' | 'cacheWrite' | 'cacheWrite1h') =>
    a[name] === undefined && b[name] === undefined ? {} : { [name]: Math.max(rateOf(a, name), rateOf(b, name)) };
  return {
    input: Math.max(a.input, b.input),
    output: Math.max(a.output, b.output),
    ...rate('cached'),
    ...rate('cacheWrite'),
    ...rate('cacheWrite1h'),
  };
}

const rateOf = (rates: Rates, name: 'cached' | 'cacheWrite' | 'cacheWrite1h'): number =>
  rates[name] ?? (name === 'cacheWrite1h' ? rates.cacheWrite : undefined) ?? rates.input;

const most = (a: number | undefined, b: number | undefined): number | undefined => (a === undefined ? b : Math.max(a, b ?? 0));

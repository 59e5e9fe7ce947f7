/** US dollars per million tokens. */
export interface Rates {
  readonly input: number;
  readonly output: number;
  /** Prompt tokens read from the provider's cache; absent: the rate of the prompt. */
  readonly cached?: number;
  /** Prompt tokens written to the provider's cache for some minutes; absent: the rate of the prompt. */
  readonly cacheWrite?: number;
  /** The same for an hour; absent: the rate for some minutes. */
  readonly cacheWrite1h?: number;
}

export interface Price extends Rates {
  /** Rates for all tokens of a call whose prompt has more than `above` tokens. */
  readonly long?: Rates & { readonly above: number };
  /** US dollars per generated picture, per second of sound read or generated, and per character spoken, in addition to tokens. */
  readonly picture?: number;
  readonly second?: number;
  readonly character?: number;
  /** US dollars per web search of the provider, in addition to tokens. */
  readonly search?: number;
  /** US dollars per answer with web searches of the provider, however many. */
  readonly searchedAnswer?: number;
}

/** The amounts of a call that are not counted in tokens. */
export interface Counts {
  readonly pictures?: number;
  /** Seconds of sound read, for a transcript. */
  readonly heardSeconds?: number;
  /** Seconds of sound generated (speech). */
  readonly spokenSeconds?: number;
  readonly characters?: number;
}

/** The tokens of a call: `input` includes those read from the cache and written to it. */
export interface Spent {
  readonly input: number;
  readonly output: number;
  readonly cached?: number | undefined;
  readonly cacheWrite?: number | undefined;
  readonly cacheWrite1h?: number | undefined;
}

export const ratesOf = (price: Price, promptTokens: number): Rates => (price.long && promptTokens > price.long.above ? price.long : price);

/** US dollars for these tokens, and for amounts that no tokens represent. */
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

/** US dollars for the web searches of an answer, which cost the same whatever the tokens cost. */
export const costOfSearches = ({ search = 0, searchedAnswer = 0 }: Pick<Price, 'search' | 'searchedAnswer'>, searches = 0): number =>
  searches > 0 ? searches * search + searchedAnswer : 0;

/** Upper bound in US dollars per million prompt tokens: how many of them will be written to the provider's cache is not known in advance. */
export const dearestInput = ({ input, cacheWrite = input, cacheWrite1h = cacheWrite }: Rates): number => Math.max(input, cacheWrite, cacheWrite1h);

/** Upper bound in US dollars for a number of tokens. */
export function mostOf(price: Price, input: number, output: number): number {
  const rates = ratesOf(price, input);
  return (input * dearestInput(rates) + output * rates.output) / 1e6;
}

/** Whether the price has rates for amounts that are not counted in tokens. */
export const hasCountRates = ({ picture, second, character }: Pick<Price, 'picture' | 'second' | 'character'>): boolean =>
  picture !== undefined || second !== undefined || character !== undefined;

/** US dollars for pictures, seconds and characters: by their own rates or, if the price has none, by the tokens that represent them. */
export function costOfCounts(price: Price, counts: Counts): number {
  if (!hasCountRates(price)) return costOf(price, tokensOfCounts(counts));
  const { picture = 0, second = 0, character = 0 } = price;
  const { pictures = 0, heardSeconds = 0, spokenSeconds = 0, characters = 0 } = counts;
  return pictures * picture + (heardSeconds + spokenSeconds) * second + characters * character;
}

/**
 * Model tokens that represent amounts not counted in tokens, if a provider reports none: 1,000 per picture, 20 per second of sound. Amounts read count as
 * input, generated ones as output.
 */
export function tokensOfCounts({ pictures = 0, heardSeconds = 0, spokenSeconds = 0 }: Counts): { readonly input: number; readonly output: number } {
  return { input: Math.ceil(heardSeconds * tokensPer.second), output: Math.ceil(pictures * tokensPer.picture + spokenSeconds * tokensPer.second) };
}

const tokensPer = { picture: 1000, second: 20 };

/** The maximum of these prices, rate by rate: an upper bound while it is not known which of them applies. Each price has at least one rate. */
export const dearestOf = ([first, ...others]: readonly [Price, ...Price[]]): Price => others.reduce(dearer, first);

function dearer(a: Price, b: Price): Price {
  const above = Math.min(a.long?.above ?? Infinity, b.long?.above ?? Infinity);
  const long = above === Infinity ? undefined : { ...dearerRates(dearerRates(a, b), dearerRates(a.long ?? a, b.long ?? b)), above };
  const { picture, second, character } = { picture: most(a.picture, b.picture), second: most(a.second, b.second), character: most(a.character, b.character) };
  const search = most(a.search, b.search);
  const searchedAnswer = most(a.searchedAnswer, b.searchedAnswer);
  return {
    ...dearerRates(a, b),
    ...(long ? { long } : {}),
    ...(picture === undefined ? {} : { picture }),
    ...(second === undefined ? {} : { second }),
    ...(character === undefined ? {} : { character }),
    ...(search === undefined ? {} : { search }),
    ...(searchedAnswer === undefined ? {} : { searchedAnswer }),
  };
}

/** The higher of the two for each rate; a rate that one of them lacks counts as its input rate. */
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

/** Plan tokens for these tokens of a model, rounded up. What only the arithmetic of the processor adds is not: 100 × 1.1 is 110.00000000000001 there. */
export const planTokensOf = (rate: Pick<Rates, 'input' | 'output'>, input: number, output: number): number =>
  Math.ceil((input * rate.input + output * rate.output) * exactness);

const exactness = 1 - 1e-13;

import type { Ability, Model } from '#core/target';
import type { Price, Rates } from '#core/price';
import catalogue from './catalogue.json' with { type: 'json' };
import { hostOf } from './vendors.ts';

/**
 * Published facts about models, in `catalogue.json`: limits in tokens, prices in US dollars per million tokens, abilities. Null means unknown, not none. A
 * vendor's entries apply to its own addresses only: elsewhere the same name may have another context window and another price. Open models (`hosts` null) are
 * the same everywhere, except for their price. The settings override all of it.
 */
export interface CatalogueEntry {
  readonly limits: Model['limits'];
  readonly price?: Price;
  readonly abilities: readonly Ability[];
}

/** The stored form of an entry; unknown values are null. */
interface Written {
  readonly limits: { readonly context: number | null; readonly output: number | null };
  readonly price: Price | null;
  readonly abilities: readonly Ability[];
}

interface Vendor {
  readonly hosts: readonly string[] | null;
  /** The prices of cache writes as multiples of the prompt price, if all models of the vendor share them. */
  readonly cacheWrites?: CacheWrites;
  /** US dollars per web search, unless a model has another. https://platform.openai.com/docs/pricing, https://platform.claude.com/docs/en/about-claude/pricing, https://ai.google.dev/gemini-api/docs/pricing */
  readonly search?: number;
  readonly models: Readonly<Record<string, Written>>;
}

interface CacheWrites {
  readonly cacheWrite: number;
  readonly cacheWrite1h: number;
}

const vendors = Object.values(catalogue.vendors as Readonly<Record<string, Vendor>>).map(({ hosts, cacheWrites, search, models }) => ({
  cacheWrites,
  search,
  ofVendor: hosts !== null,
  serves: hosts === null ? () => true : patternOf(hosts),
  models: new Map(
    Object.entries(models).map(([name, { limits, price, abilities }]) => [name, { limits: known(limits), ...(price ? { price } : {}), abilities }]),
  ),
}));

/** @param address of the provider, which may have `{region}` in its host; @param model its name there, optionally with a date suffix */
export function catalogued(address: string, model: string): CatalogueEntry | undefined {
  const host = hostOf(address);
  for (const { serves, models } of vendors) {
    const found = serves(host) ? (models.get(model) ?? models.get(model.replace(/-(?:\d{4}-\d{2}-\d{2}|\d{8})$/, ''))) : undefined;
    if (found) return found;
  }
  return undefined;
}

/** Is this address its vendor's own, and the model one of that vendor's? */
export function isVendorsOwn(address: string, model: string): boolean {
  const host = hostOf(address);
  const undated = model.replace(/-(?:\d{4}-\d{2}-\d{2}|\d{8})$/, '');
  return vendors.some(({ ofVendor, serves, models }) => ofVendor && serves(host) && (models.has(model) || models.has(undated)));
}

/** The names of a vendor's models at its own address. */
export function cataloguedNames(address: string): readonly string[] {
  const host = hostOf(address);
  return vendors.flatMap(({ ofVendor, serves, models }) => (ofVendor && serves(host) ? [...models.keys()] : []));
}

/** Adds the rates that a price lacks, where all models of the vendor at this address share them: those of cache writes, and of web searches. */
export function withVendorRates(price: Price, address: string): Price {
  const host = hostOf(address);
  const { cacheWrites: writes, search } = vendors.find((one) => (one.cacheWrites ?? one.search) !== undefined && one.serves(host)) ?? {};
  if (!writes && search === undefined) return price;
  const filled = <Some extends Rates>(rates: Some): Some =>
    writes
      ? {
          ...rates,
          cacheWrite: rates.cacheWrite ?? rounded(rates.input * writes.cacheWrite),
          cacheWrite1h: rates.cacheWrite1h ?? rounded(rates.input * writes.cacheWrite1h),
        }
      : rates;
  const searched = search === undefined || price.search !== undefined ? price : { ...price, search };
  return { ...filled(searched), ...(price.long ? { long: filled(price.long) } : {}) };
}

/** Removes the rounding errors of binary fractions. */
const rounded = (usd: number) => Number(usd.toPrecision(12));

/** Facts that hold whichever of several targets answers: the smallest limits, and the common abilities. `longestOutput` if their output limits differ. */
export function common(entries: readonly (CatalogueEntry | undefined)[]): (Omit<CatalogueEntry, 'price'> & Pick<Model, 'longestOutput'>) | undefined {
  const all = entries.filter((entry) => entry !== undefined);
  const [first] = all;
  if (!first || all.length < entries.length) return undefined;
  const limitsOf = (name: 'context' | 'output') => all.map((entry) => entry.limits[name]).filter((limit) => limit !== undefined);
  const smallest = (name: 'context' | 'output') => {
    const limits = limitsOf(name);
    return limits.length === all.length ? { [name]: Math.min(...limits) } : {};
  };
  const outputs = limitsOf('output');
  return {
    limits: { ...smallest('context'), ...smallest('output') },
    ...(outputs.length === all.length && Math.max(...outputs) > Math.min(...outputs) ? { longestOutput: Math.max(...outputs) } : {}),
    abilities: first.abilities.filter((ability) => all.every(({ abilities }) => abilities.includes(ability))),
  };
}

function patternOf(hosts: readonly string[]): (host: string) => boolean {
  return (host) => hosts.some((one) => (one.startsWith('*') ? host.endsWith(one.slice(1)) : host === one));
}

/** Removes the unknown values. */
function known({ context, output }: Written['limits']): Model['limits'] {
  return { ...(context === null ? {} : { context }), ...(output === null ? {} : { output }) };
}

import type { Ability, Model } from '#core/target';
import type { Price, Rates } from '#core/price';
import catalogue from './catalogue.json' with { type: 'json' };

/**
 * What is publicly known of models, in `catalogue.json`: limits in tokens, prices in US dollars for a million tokens, abilities. A null is unknown, never nothing.
 * A vendor's entries count for its own addresses only: elsewhere the same name may have another window and another price. Open models (`hosts` null) are the same
 * everywhere, but for their price. The settings stand above all of it.
 */
export interface CatalogueEntry {
  readonly limits: Model['limits'];
  readonly price?: Price;
  readonly abilities: readonly Ability[];
}

/** What a written entry is: what is unknown is null. */
interface Written {
  readonly limits: { readonly context: number | null; readonly output: number | null };
  readonly price: Price | null;
  readonly abilities: readonly Ability[];
}

interface Vendor {
  readonly hosts: readonly string[] | null;
  /** What writing into its cache costs, as multiples of the price of a prompt: where that is the same for all of its models. */
  readonly cacheWrites?: CacheWrites;
  readonly models: Readonly<Record<string, Written>>;
}

interface CacheWrites {
  readonly cacheWrite: number;
  readonly cacheWrite1h: number;
}

const vendors = Object.values(catalogue.vendors as Readonly<Record<string, Vendor>>).map(({ hosts, cacheWrites, models }) => ({
  cacheWrites,
  serves: hosts === null ? () => true : patternOf(hosts),
  models: new Map(
    Object.entries(models).map(([name, { limits, price, abilities }]) => [name, { limits: known(limits), ...(price ? { price } : {}), abilities }]),
  ),
}));

/** @param address of the provider, which may have `{region}` in its host; @param model its name there, perhaps with a date behind it */
export function catalogued(address: string, model: string): CatalogueEntry | undefined {
  const host = hostOf(address);
  for (const { serves, models } of vendors) {
    const found = serves(host) ? (models.get(model) ?? models.get(model.replace(/-(?:\d{4}-\d{2}-\d{2}|\d{8})$/, ''))) : undefined;
    if (found) return found;
  }
  return undefined;
}

const hostOf = (address: string): string => /^https?:\/\/([^/:?#]+)/i.exec(address)?.[1]?.toLowerCase() ?? '';

/** A price with the rates for writing into the cache that it does not name, where the vendor at this address has the same multiples for all of its models. */
export function withCacheWrites(price: Price, address: string): Price {
  const host = hostOf(address);
  const writes = vendors.find(({ cacheWrites, serves }) => cacheWrites && serves(host))?.cacheWrites;
  if (!writes) return price;
  const filled = <Some extends Rates>(rates: Some): Some => ({
    ...rates,
    cacheWrite: rates.cacheWrite ?? rounded(rates.input * writes.cacheWrite),
    cacheWrite1h: rates.cacheWrite1h ?? rounded(rates.input * writes.cacheWrite1h),
  });
  return { ...filled(price), ...(price.long ? { long: filled(price.long) } : {}) };
}

/** Without what is lost in binary fractions. */
const rounded = (usd: number) => Number(usd.toPrecision(12));

/** What holds for whichever of several targets answers: the smallest limits, and what all of them can do. `longestOutput` where they differ in it. */
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

/** Without what is unknown. */
function known({ context, output }: Written['limits']): Model['limits'] {
  return { ...(context === null ? {} : { context }), ...(output === null ? {} : { output }) };
}

import type { Ability, Model } from '#model/target';
import type { Price } from '#model/price';
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
  readonly models: Readonly<Record<string, Written>>;
}

const vendors = Object.values(catalogue.vendors as Readonly<Record<string, Vendor>>).map(({ hosts, models }) => ({
  serves: hosts === null ? () => true : patternOf(hosts),
  models: new Map(
    Object.entries(models).map(([name, { limits, price, abilities }]) => [name, { limits: known(limits), ...(price ? { price } : {}), abilities }]),
  ),
}));

/** @param address of the provider, which may have `{region}` in its host; @param model its name there, perhaps with a date behind it */
export function catalogued(address: string, model: string): CatalogueEntry | undefined {
  const host = /^https?:\/\/([^/:?#]+)/i.exec(address)?.[1]?.toLowerCase() ?? '';
  for (const { serves, models } of vendors) {
    const found = serves(host) ? (models.get(model) ?? models.get(model.replace(/-(?:\d{4}-\d{2}-\d{2}|\d{8})$/, ''))) : undefined;
    if (found) return found;
  }
  return undefined;
}

/** What holds for whichever of several targets answers: the smallest limits, what all of them can do, and a price only if it is the same. */
export function common(entries: readonly (CatalogueEntry | undefined)[]): CatalogueEntry | undefined {
  const all = entries.filter((entry) => entry !== undefined);
  const [first] = all;
  if (!first || all.length < entries.length) return undefined;
  const smallest = (name: 'context' | 'output') => {
    const limits = all.map((entry) => entry.limits[name]).filter((limit) => limit !== undefined);
    return limits.length === all.length ? { [name]: Math.min(...limits) } : {};
  };
  const { price } = first;
  return {
    limits: { ...smallest('context'), ...smallest('output') },
    ...(price && all.every((entry) => JSON.stringify(entry.price) === JSON.stringify(price)) ? { price } : {}),
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

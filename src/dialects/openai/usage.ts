import type { Usage } from '#core/event';
import { isEmpty, type Extra, type Json, type JsonObject } from '#core/json';
import { askedRate } from '../shared/asked-rate.ts';
import { isCount } from '../shared/read-fields.ts';

/** The usage from the counts of OpenAI's wires; impossible ones are left out. */
export function usageFrom(
  counts: { readonly input: number; readonly output: number; readonly cached: unknown; readonly written: unknown; readonly thought: unknown },
  extra: Extra,
): Usage {
  const { input, output, cached, written, thought } = counts;
  const read = isCount(cached) && cached <= input ? cached : undefined;
  return {
    input,
    output,
    ...(read === undefined ? {} : { cached: read }),
    ...(isCount(written) && written + (read ?? 0) <= input ? { cacheWrite: written } : {}),
    ...(isCount(thought) && thought <= output ? { thought } : {}),
    source: 'provider',
    ...(isEmpty(extra) ? {} : { extra }),
  };
}

/** What service tiers cost, as multiples of the usual price; `fast` is the newer name of `priority`. https://developers.openai.com/api/docs/pricing */
const tierRates: ReadonlyMap<string, number> = new Map([
  ['flex', 0.5],
  ['priority', 2],
  ['fast', 2],
  ['ultrafast', 6],
]);

/** The models of which the fast tier costs another multiple; some vendors write `openai/` before the name. https://openai.com/api-fast-mode/ */
const fastRates: readonly (readonly [RegExp, number])[] = [
  [/(?:^|\/)gpt-5\.5\b/, 2.5],
  [/(?:^|\/)gpt-5-mini\b/, 1.8],
  [/(?:^|\/)(?:gpt-4\.1(?!-nano)|gpt-4o-2024-05-13|o3)\b/, 1.75],
  [/(?:^|\/)gpt-4o-mini\b/, 5 / 3],
  [/(?:^|\/)gpt-4o\b/, 1.7],
  [/(?:^|\/)o4-mini\b/, 20 / 11],
];

function rateOf(tier: string, model: string): number {
  const isFast = tier === 'fast' || tier === 'priority';
  return (isFast ? fastRates.find(([name]) => name.test(model))?.[1] : undefined) ?? tierRates.get(tier) ?? 1;
}

/** What a usage depends on beside its counts. */
export interface Served {
  /** The service tier that answered; empty: it is not known, or all cost the same. */
  readonly tier: string;
  readonly model: string;
}

export const unknownTier: Served = { tier: '', model: '' };

export function atTier(usage: Usage, { tier, model }: Served): Usage {
  const rate = rateOf(tier, model);
  return rate === 1 ? usage : { ...usage, rate };
}

/** What the tier that a client asks for costs above the usual price, for each model that may answer: the client may know it by another name. */
export const askedTier = (tier: string | null | undefined) => askedRate((model) => rateOf(tier ?? '', model));

/** These wires have one count of cache write tokens for all lifetimes. */
export const writtenIn = (minutes: number | undefined, hour: number | undefined): number | undefined =>
  minutes === undefined && hour === undefined ? undefined : (minutes ?? 0) + (hour ?? 0);

/** The members of a usage that are not understood, with those of its details under their original names. */
export function carriedUsage(others: object, details: Readonly<Record<string, object>>): JsonObject {
  const carried: Record<string, Json> = { ...(others as JsonObject) };
  for (const name in details) if (!isEmpty(details[name]!)) carried[name] = details[name] as JsonObject;
  return carried;
}

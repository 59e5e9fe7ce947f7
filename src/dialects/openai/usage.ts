import type { Usage } from '#core/event';
import { isEmpty, type Extra, type JsonObject } from '#core/json';
import { isCount } from '../shared/read-fields.ts';

/** What service tiers cost, as multiples of the usual price. https://platform.openai.com/docs/pricing */
const tierRates: Readonly<Record<string, number>> = { flex: 0.5, priority: 2 };

/** The usage of an answer that was served in this tier. */
export function atTier(usage: Usage, serviceTier: unknown): Usage {
  const rate = typeof serviceTier === 'string' && Object.hasOwn(tierRates, serviceTier) ? tierRates[serviceTier] : undefined;
  return rate === undefined ? usage : { ...usage, rate };
}

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

/** These wires have one count of cache write tokens for all lifetimes. */
export const writtenIn = (minutes: number | undefined, hour: number | undefined): number | undefined =>
  minutes === undefined && hour === undefined ? undefined : (minutes ?? 0) + (hour ?? 0);

/** The members of a usage that are not understood, with those of its details under their original names. */
export function carriedUsage(others: object, details: Readonly<Record<string, object>>): JsonObject {
  const filled = Object.entries(details).filter(([, inner]) => !isEmpty(inner));
  return { ...(others as JsonObject), ...(Object.fromEntries(filled) as JsonObject) };
}

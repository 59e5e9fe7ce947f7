import type { GenerateCall } from '#core/call';
import type { Usage } from '#core/event';
import { isEmpty, type Extra, type Json, type JsonObject } from '#core/json';
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

/** What service tiers cost, as multiples of the usual price. https://platform.openai.com/docs/pricing */
const tierRates: ReadonlyMap<string, number> = new Map([
  ['flex', 0.5],
  ['priority', 2],
]);

/** @param serviceTier the one that answered */
export function atTier(usage: Usage, serviceTier: string): Usage {
  const rate = tierRates.get(serviceTier);
  return rate === undefined ? usage : { ...usage, rate };
}

/** What the tier that a client asks for costs above the usual price. A cheaper one is not certain: what is set aside for the call has to be enough. */
export function askedTier(serviceTier: string | null | undefined): Pick<GenerateCall, 'tierRate'> | undefined {
  const rate = serviceTier ? tierRates.get(serviceTier) : undefined;
  return rate !== undefined && rate > 1 ? { tierRate: rate } : undefined;
}

/** These wires have one count of cache write tokens for all lifetimes. */
export const writtenIn = (minutes: number | undefined, hour: number | undefined): number | undefined =>
  minutes === undefined && hour === undefined ? undefined : (minutes ?? 0) + (hour ?? 0);

/** The members of a usage that are not understood, with those of its details under their original names. */
export function carriedUsage(others: object, details: Readonly<Record<string, object>>): JsonObject {
  const carried: Record<string, Json> = { ...(others as JsonObject) };
  for (const name in details) if (!isEmpty(details[name]!)) carried[name] = details[name] as JsonObject;
  return carried;
}

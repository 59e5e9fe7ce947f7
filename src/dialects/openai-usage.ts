import type { Usage } from '#model/event';
import { isEmpty, type Extra, type JsonObject } from '#model/json';
import { isCount } from './reading.ts';

/** The numbers of OpenAI's wires as they came: what cannot be is left out. `carried` stands beside them. */
export function usageFrom(
  counts: { readonly input: number; readonly output: number; readonly cached: unknown; readonly thought: unknown },
  extra: Extra,
): Usage {
  const { input, output, cached, thought } = counts;
  return {
    input,
    output,
    ...(isCount(cached) && cached <= input ? { cached } : {}),
    ...(isCount(thought) && thought <= output ? { thought } : {}),
    source: 'provider',
    ...(isEmpty(extra) ? {} : { extra }),
  };
}

/** What a usage says besides, with the details that are not known under the names they came by. */
export function besides(others: object, details: Readonly<Record<string, object>>): JsonObject {
  const filled = Object.entries(details).filter(([, inner]) => !isEmpty(inner));
  return { ...(others as JsonObject), ...(Object.fromEntries(filled) as JsonObject) };
}

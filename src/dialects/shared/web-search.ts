import type { ForeignTool, WebSearch } from '#core/conversation';
import type { JsonObject } from '#core/json';

/** The search of the web, which several wires have, each in its own words. */

const mostHosts = 100;

/** The hosts of a list, as far as it is one. */
export function hosts(value: unknown): readonly string[] | undefined {
  const list = Array.isArray(value)
    ? (value as readonly unknown[]).filter((one): one is string => typeof one === 'string' && one !== '' && one.length <= 500)
    : [];
  return list.length > 0 ? list.slice(0, mostHosts) : undefined;
}

type Terms = { readonly [Name in keyof Omit<WebSearch, 'others'>]?: WebSearch[Name] | undefined };

/** @param value the tool, or what it says of itself. @param known its members that have been read */
export const termsOf = (value: JsonObject, known: ReadonlySet<string>, terms: Terms): WebSearch => ({
  ...Object.fromEntries(Object.entries(terms).filter(([, one]) => one !== undefined)),
  others: Object.keys(value)
    .filter((name) => !known.has(name))
    .slice(0, 20),
});

const words = { allowed: 'allowed_domains', blocked: 'blocked_domains', most: 'max_uses', unopened: 'external_web_access' } as const;

/** What of the search a wire has no words for, as `field: reason`. @param heard has words for these */
export const unheardTerms = (search: WebSearch, heard: readonly (keyof typeof words)[]): readonly string[] =>
  [
    ...(Object.keys(words) as (keyof typeof words)[]).flatMap((name) => (search[name] === undefined || heard.includes(name) ? [] : [words[name]])),
    ...search.others,
  ].map((name) => `tools.web_search.${name.slice(0, 100)}: the provider's search does not have this field.`);

/** What is said of a tool that a provider's wire has no words for. */
export const leftOut = ({ search, dialect, value }: ForeignTool): string =>
  search
    ? 'tools: web_search is left out, for the provider has none and no search engine of ours stands in.'
    : `tools: a tool of type ${JSON.stringify(value['type'] ?? null)} is supported by ${dialect} only.`;

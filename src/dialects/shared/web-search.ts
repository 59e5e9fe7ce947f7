import type { ForeignTool, WebSearch } from '#core/conversation';
import { isObject, textOf, type JsonObject } from '#core/json';
import { isGiven } from './read-fields.ts';

/** The web search tool, which several wires have, each with its own field names. */

const mostHosts = 100;

/** The non-empty host names of a list, at most 100; undefined where there are none. */
export function hosts(value: unknown): readonly string[] | undefined {
  const list = Array.isArray(value)
    ? (value as readonly unknown[]).filter((one): one is string => typeof one === 'string' && one !== '' && one.length <= 500)
    : [];
  return list.length > 0 ? list.slice(0, mostHosts) : undefined;
}

const placeNames = ['city', 'region', 'country', 'timezone'] as const;
const longestPlace = 200;

/** A place as all wires that have one spell it. @returns undefined where nothing is said of it */
export function nearOf(value: unknown): WebSearch['near'] {
  if (!isObject(value)) return undefined;
  const named = placeNames.flatMap((name) => (textOf(value[name]) === '' ? [] : [[name, textOf(value[name]).slice(0, longestPlace)] as const]));
  return named.length > 0 ? Object.fromEntries(named) : undefined;
}

/** `search_context_size`. */
export const contextSizeOf = (value: unknown): string | undefined => (typeof value === 'string' && value.length <= 20 ? value : undefined);

type Terms = { readonly [Name in keyof Omit<WebSearch, 'others'>]?: WebSearch[Name] | undefined };

/** @param value the tool, or its configuration. @param known the members that are understood; the names of the others, and of those that cannot be read, are kept */
export const termsOf = (value: JsonObject, known: ReadonlySet<string>, terms: Terms): WebSearch => ({
  ...Object.fromEntries(Object.entries(terms).filter(([, one]) => one !== undefined)),
  others: Object.keys(value)
    .filter((name) => !known.has(name) || isUnread(name, value, terms))
    .slice(0, 20),
});

const isUnread = (name: string, value: JsonObject, terms: Terms): boolean =>
  isGiven(value[name]) && (['near', 'contextSize'] as const).some((term) => words[term] === name && term in terms && terms[term] === undefined);

const words = {
  allowed: 'allowed_domains',
  blocked: 'blocked_domains',
  most: 'max_uses',
  unopened: 'external_web_access',
  near: 'user_location',
  contextSize: 'search_context_size',
} as const;

/** The search settings that a wire does not support, as `field: reason`. @param supported the settings that it does */
export const unsupportedTerms = (search: WebSearch, supported: readonly (keyof typeof words)[]): readonly string[] =>
  [
    ...(Object.keys(words) as (keyof typeof words)[]).flatMap((name) => (search[name] === undefined || supported.includes(name) ? [] : [words[name]])),
    ...search.others,
  ].map((name) => `tools.web_search.${name.slice(0, 100)}: the provider's search does not have this field.`);

/** The note about a tool that the provider's wire does not have, as `field: reason`. */
export const leftOut = ({ search, field = 'tools', dialect, value }: ForeignTool): string =>
  search
    ? `${field}: web_search is left out, for the provider has none and no search engine of ours stands in.`
    : `${field}: a tool of type ${JSON.stringify(value['type'] ?? Object.keys(value)[0] ?? null)} is supported by ${dialect} only.`;

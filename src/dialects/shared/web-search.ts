import type { ForeignTool, WebSearch } from '#core/conversation';
import { isObject, textOf, type JsonObject } from '#core/json';
import { isCount, isGiven } from './read-fields.ts';

/** The web search tool, which several wires have, each with its own field names. */

const mostHosts = 100;
const longestHost = 500;

/** The non-empty host names of a list, at most 100; undefined where there are none. */
function hosts(value: unknown): readonly string[] | undefined {
  const list = Array.isArray(value) ? (value as readonly unknown[]).filter(isHost) : [];
  return list.length > 0 ? list.slice(0, mostHosts) : undefined;
}

const isHost = (one: unknown): one is string => typeof one === 'string' && one !== '' && one.length <= longestHost;

const placeNames = ['city', 'region', 'country', 'timezone'] as const;
const longestPlace = 200;

/** A place as all wires that have one spell it; chat completions have it in an object of its own. */
const placeIn = (value: unknown): unknown => (isObject(value) && isObject(value['approximate']) ? value['approximate'] : value);

/** @returns undefined where nothing is said of a place */
function nearOf(value: unknown): WebSearch['near'] {
  const place = placeIn(value);
  if (!isObject(place)) return undefined;
  const named = placeNames.flatMap((name) => (textOf(place[name]) === '' ? [] : [[name, textOf(place[name]).slice(0, longestPlace)] as const]));
  return named.length > 0 ? Object.fromEntries(named) : undefined;
}

const contextSizeOf = (value: unknown): string | undefined => (typeof value === 'string' && value.length <= 20 ? value : undefined);

type Term = Exclude<keyof WebSearch, 'others'>;

const readers: { readonly [Name in Term]: (value: unknown) => WebSearch[Name] } = {
  allowed: hosts,
  blocked: hosts,
  most: (value) => (isCount(value) ? value : undefined),
  near: nearOf,
  contextSize: contextSizeOf,
  unopened: (live) => (live === false ? true : undefined),
};

/** Can all of a value be read? */
const isWhole: Readonly<Record<Term, (value: unknown) => boolean>> = {
  allowed: (value) => Array.isArray(value) && value.length <= mostHosts && value.every(isHost),
  blocked: (value) => Array.isArray(value) && value.length <= mostHosts && value.every(isHost),
  most: isCount,
  near: (value) => isPlace(placeIn(value)),
  contextSize: (value) => contextSizeOf(value) !== undefined,
  unopened: (value) => typeof value === 'boolean',
};

const isPlace = (place: unknown): boolean =>
  isObject(place) && placeNames.every((name) => !isGiven(place[name]) || (typeof place[name] === 'string' && place[name].length <= longestPlace));

/**
 * Reads the terms of a search.
 *
 * @param value the tool, or its configuration
 * @param names which of its members say what; null for those that say nothing about the search. The names of all others, and of those that cannot be read or not
 *   all, are in `others`.
 */
export function termsOf(value: JsonObject, names: Readonly<Record<string, Term | null>>): WebSearch {
  const given = Object.entries(names).filter(([name, term]) => term !== null && isGiven(value[name])) as readonly (readonly [string, Term])[];
  const read = given.map(([name, term]) => [term, readers[term](value[name])] as const).filter(([, one]) => one !== undefined);
  const others = Object.keys(value).filter((name) => !Object.hasOwn(names, name));
  const unread = given.filter(([name, term]) => !isWhole[term](value[name])).map(([name]) => name);
  return { ...Object.fromEntries(read), others: [...unread, ...others].slice(0, mostOthers) };
}

const mostOthers = 20;

const words = {
  allowed: 'allowed_domains',
  blocked: 'blocked_domains',
  most: 'max_uses',
  unopened: 'external_web_access',
  near: 'user_location',
  contextSize: 'search_context_size',
} as const satisfies Readonly<Record<Term, string>>;

/** The search settings that a wire does not support, as `field: reason`. @param supported the settings that it does */
export const unsupportedTerms = (search: WebSearch, supported: readonly Term[]): readonly string[] => [
  ...(Object.keys(words) as Term[])
    .filter((name) => search[name] !== undefined && !supported.includes(name))
    .map((name) => `tools.web_search.${words[name]}: the provider's search does not have this field.`),
  ...search.others.map((name) => `tools.web_search.${name.slice(0, 100)}: the provider's search does not have this field, or not with this value.`),
];

/** The note about a tool that the provider's wire does not have, as `field: reason`. */
export const leftOut = ({ search, field = 'tools', dialect, value }: ForeignTool): string =>
  search
    ? `${field}: web_search is left out, for the provider has none and no search engine of ours stands in.`
    : `${field}: a tool of type ${JSON.stringify(value['type'] ?? Object.keys(value)[0] ?? null)} is supported by ${dialect} only.`;

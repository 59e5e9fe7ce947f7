import type { ProviderKind } from '#core/provider-kind';
import type { Path } from '../path.ts';
import type { ProviderSettings, Settings } from '../schema/index.ts';
import { wrongAddress, wrongPattern } from './addresses.ts';
import { repeated, type Trouble } from './trouble.ts';

/** What vendors' pages show behind the base address. */
const operations = /(?:\/chat\/completions|\/v1\/completions|\/responses|\/embeddings|\/v1\/messages|\/models\/[^/]{1,128}:\w{1,40})\/?$/i;
/** These values become part of a URL. */
const plainWord = /^[a-z0-9][a-z0-9.:_-]*$/i;
/** Headers that the connection itself sets. */
const ownHeaders = new Set(['host', 'connection', 'content-length', 'content-type', 'transfer-encoding', 'te', 'trailer', 'upgrade', 'expect', 'keep-alive']);

export function* providers({ providers }: Settings, kinds: readonly ProviderKind[]): Iterable<Trouble> {
  for (const [name, provider] of Object.entries(providers)) {
    const path = ['providers', name];
    if (name === 'built-in') yield { path, name: true, text: 'is the name of the built-in provider; choose another.' };
    // The name is part of target names (`platform/us-east1/…`) and of headers.
    else if (!/^[a-z0-9][a-z0-9._-]{0,63}$/i.test(name)) yield { path, name: true, text: 'must have a name of at most 64 letters, digits, ".", "_" and "-".' };
    yield* kind(provider, path, kinds);
    yield* keys(provider, path);
    yield* headers(provider, path);
    yield* regions(provider, path);
  }
}

/** The settings that each kind requires, and those that only other kinds take. */
function* kind(provider: ProviderSettings, path: Path, kinds: readonly ProviderKind[]): Iterable<Trouble> {
  const { kind, apiVersion, project, publisher, baseUrl } = provider;
  const named = new Map(kinds.flatMap((one) => (one.kind === undefined ? [] : [[one.kind, one]])));
  for (const [one, { takes = [], needs = [] }] of named)
    for (const name of takes) {
      const value = provider[name as keyof ProviderSettings];
      const given = value !== undefined && !(Array.isArray(value) && value.length === 0);
      if (kind === one && !given && needs.includes(name)) yield { path, name: true, silent: true, text: `is of kind ${kind} and needs ${name}.` };
      if (kind !== one && given) yield { path: [...path, name], name: true, silent: true, text: `is allowed only with kind ${one}.` };
    }
  const own = kinds.filter(({ dialect }) => dialect === provider.dialect);
  const chosen = own.find((one) => one.kind === kind);
  if (own.length > 0 && !chosen) yield { path: [...path, 'kind'], text: `is not possible with dialect ${provider.dialect}.` };
  const other = chosen?.otherPublishers?.[publisher];
  if (other !== undefined) yield { path: [...path, 'publisher'], text: `needs dialect ${other}: its models do not speak ${provider.dialect}.` };
  const address = chosen?.versioned ? baseUrl.replace(/\?api-version=[\w.-]{1,40}$/, '') : baseUrl;
  const hasRegions = !chosen || chosen.takes?.includes('regions') === true;
  const wrong = hasRegions ? wrongPattern(address) : (wrongAddress(address) ?? (/[{}]/.test(address) ? 'must not contain { or }.' : undefined));
  const operation = operations.exec(baseUrl)?.[0];
  if (wrong) yield { path: [...path, 'baseUrl'], text: wrong, ...(/^https?:/i.test(baseUrl) ? {} : { alone: true }) }; // what else is wrong depends on the kind
  else if (operation !== undefined) yield { path: [...path, 'baseUrl'], text: `must be the base address: leave out ${operation}, which is added to it.` };
  if (apiVersion !== undefined && !plainWord.test(apiVersion)) yield { path: [...path, 'apiVersion'], text: 'must be a version such as 2025-04-01-preview.' };
  if (project !== undefined && !plainWord.test(project)) yield { path: [...path, 'project'], text: 'must be the id of a project.' };
  if (!plainWord.test(publisher)) yield { path: [...path, 'publisher'], text: 'must be the name of a publisher.' };
}

function* keys({ apiKeys = [], credentials }: ProviderSettings, path: Path): Iterable<Trouble> {
  for (const [at, key] of apiKeys.entries())
    if (!isToken(key)) yield { path: [...path, 'apiKeys', at], text: 'must be visible ASCII characters without a space or a line end.' };
  yield* repeated(apiKeys, [...path, 'apiKeys'], 'a key of the list');
  if (!credentials) return;
  const given = Object.keys(credentials);
  if (given.length !== 1) yield { path: [...path, 'credentials'], silent: true, text: 'must have exactly one of serviceAccountFile, accessToken and apiKey.' };
  for (const member of ['accessToken', 'apiKey'] as const)
    if (credentials[member] !== undefined && !isToken(credentials[member]))
      yield { path: [...path, 'credentials', member], text: 'must be visible ASCII characters without a space or a line end.' };
}

function* headers({ headers }: ProviderSettings, path: Path): Iterable<Trouble> {
  const seen = new Set<string>();
  for (const [name, value] of Object.entries(headers)) {
    const at = [...path, 'headers', name];
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/i.test(name)) yield { path: at, name: true, silent: true, text: 'is not a valid header name.' };
    else if (ownHeaders.has(name.toLowerCase())) yield { path: at, name: true, silent: true, text: 'is a header of the connection itself and cannot be set.' };
    else if (seen.has(name.toLowerCase())) yield { path: at, name: true, silent: true, text: 'repeats another header; header names are case-insensitive.' };
    if (!/^[\t\x20-\x7e]*$/.test(value)) yield { path: at, text: 'must be one line of ASCII characters.' };
    seen.add(name.toLowerCase());
  }
}

function* regions({ regions, residency }: ProviderSettings, path: Path): Iterable<Trouble> {
  const names = regions.map((region) => (typeof region === 'string' ? region : region.name));
  yield* repeated(names, [...path, 'regions'], 'a region of the list');
  for (const [at, region] of regions.entries()) {
    const here = [...path, 'regions', at];
    if (!/^[a-z][a-z0-9-]{0,62}$/.test(names[at]!))
      yield { path: typeof region === 'string' ? here : [...here, 'name'], text: 'must be a region such as us-east1.' };
    const wrong = typeof region === 'string' ? undefined : wrongPattern(region.baseUrl);
    if (wrong) yield { path: [...here, 'baseUrl'], text: wrong };
  }
  for (const [list, inside] of Object.entries(residency)) {
    const here = [...path, 'residency', list];
    yield* repeated(inside, here, 'a region of the list');
    for (const [at, region] of inside.entries())
      if (!names.includes(region)) yield { path: [...here, at], text: 'must be one of the regions of this provider.' };
  }
}

const isToken = (text: string) => /^[\x21-\x7e]+$/.test(text);

import { trimEnd } from '#kit/text/trim-end';
import type { GuardedFetch } from '#kit/net/guarded-fetch';
import { parseJson } from '#kit/json/scan';
import type { WebSearch } from '#core/conversation';
import { isObject, textOf } from '#core/json';

/** A search result; the best come first. */
export interface Found {
  readonly url: string;
  readonly title: string;
  /** The engine's excerpt. */
  readonly text: string;
}

export type Bounds = Pick<WebSearch, 'allowed' | 'blocked'>;

export interface Engine {
  /** `most` results, 8 by default. @throws NotFetched; or the signal's reason */
  search(query: string, bounds: Bounds, asking: { readonly owner: string; readonly signal: AbortSignal; readonly most?: number }): Promise<readonly Found[]>;
}

export interface EngineSettings {
  readonly engine: 'searxng' | 'brave' | 'tavily';
  readonly url: string;
  readonly apiKey: string;
}

/** Most results per search, where nothing else is asked for. */
const usualMost = 8;
const mostBytes = 2_097_152;

interface Kind {
  /** Its default address. */
  readonly origin?: string;
  /** The path that is added to an address without it. */
  readonly path: string;
  ask(
    url: URL,
    asked: { readonly query: string; readonly apiKey: string; readonly most: number } & Bounds,
  ): { readonly headers: Readonly<Record<string, string>>; readonly body?: string };
  /** The member with the list of results, and the names of their members. */
  results(answer: Readonly<Record<string, unknown>>): unknown;
  readonly text: string;
}

const bearer = (apiKey: string): Record<string, string> => (apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` });

const kinds: Readonly<Record<EngineSettings['engine'], Kind>> = {
  // https://docs.searxng.org/dev/search_api.html
  searxng: {
    path: '/search',
    ask(url, { query, apiKey, allowed }) {
      url.searchParams.set('q', withSites(query, allowed));
      url.searchParams.set('format', 'json');
      return { headers: bearer(apiKey) };
    },
    results: ({ results }) => results,
    text: 'content',
  },
  // https://api-dashboard.search.brave.com/app/documentation/web-search/get-started
  brave: {
    origin: 'https://api.search.brave.com',
    path: '/res/v1/web/search',
    ask(url, { query, apiKey, allowed, most }) {
      url.searchParams.set('q', withSites(query, allowed));
      url.searchParams.set('count', String(most));
      return { headers: { 'x-subscription-token': apiKey } };
    },
    results: ({ web }) => (isObject(web) ? web['results'] : undefined),
    text: 'description',
  },
  // https://docs.tavily.com/documentation/api-reference/endpoint/search
  tavily: {
    origin: 'https://api.tavily.com',
    path: '/search',
    ask: (_url, { query, apiKey, allowed, blocked, most }) => ({
      headers: { 'content-type': 'application/json', ...bearer(apiKey) },
      body: JSON.stringify({
        query,
        max_results: most,
        ...(allowed ? { include_domains: allowed } : {}),
        ...(blocked ? { exclude_domains: blocked } : {}),
      }),
    }),
    results: ({ results }) => results,
    text: 'content',
  },
};

/** @returns undefined if none is configured: an engine with a default address needs a key, the other an address */
export function addressOf({ engine, url, apiKey }: EngineSettings): string | undefined {
  if (url !== '') return url;
  return apiKey === '' ? undefined : kinds[engine].origin;
}

/** @param fetcher one that allows the engine's own address, which the operator chose */
export function openEngine(settings: EngineSettings, fetcher: GuardedFetch): Engine | undefined {
  const address = addressOf(settings);
  if (address === undefined) return undefined;
  const kind = kinds[settings.engine];
  return {
    async search(query, bounds, { most = usualMost, ...asking }) {
      const url = new URL(address);
      if (!url.pathname.endsWith('/search')) url.pathname = trimEnd(url.pathname, '/') + kind.path;
      const sent = kind.ask(url, { query, apiKey: settings.apiKey, most, ...bounds });
      const takes = (type: string) => type === 'application/json' || type.endsWith('+json');
      const { bytes } = await fetcher.fetch({ ...asking, ...sent, url: url.href, maxBytes: mostBytes, takes });
      return foundIn(kind, parseJson(bytes), bounds).slice(0, most);
    },
  };
}

/** Most hosts that are part of the query; all results are filtered by host afterwards. */
const withSites = (query: string, allowed: readonly string[] = []): string =>
  allowed.length === 0 || allowed.length > 5 ? query : `${query} ${allowed.map((host) => `site:${host}`).join(' OR ')}`;

function isOn(url: string, hosts: readonly string[]): boolean {
  const found = URL.parse(url);
  return hosts.some((one) => {
    const [host = '', ...path] = trimEnd(one.toLowerCase().replace(/^https?:\/\//, ''), '/').split('/');
    const isHost = found?.hostname === host || found?.hostname.endsWith(`.${host}`);
    return isHost === true && `${found!.pathname.toLowerCase()}/`.startsWith(['', ...path, ''].join('/'));
  });
}

function foundIn(kind: Kind, answer: unknown, { allowed, blocked = [] }: Bounds): readonly Found[] {
  const list = isObject(answer) ? kind.results(answer) : undefined;
  if (!Array.isArray(list)) throw new Error('The search engine sent no results.');
  const seen = new Set<string>();
  return (list as readonly unknown[]).flatMap((one): readonly Found[] => {
    if (!isObject(one)) return [];
    const url = textOf(one['url']);
    if (!/^https?:\/\/[^\s<>"]{1,2000}$/i.test(url) || seen.has(url)) return [];
    if ((allowed && !isOn(url, allowed)) || isOn(url, blocked)) return [];
    seen.add(url);
    return [{ url, title: plain(textOf(one['title']), 200) || url.slice(0, 200).toWellFormed(), text: plain(textOf(one[kind.text]), 2000) }];
  });
}

/** Removes the marks that engines put around matching words. A half character would be invalid JSON to a strict reader. */
const plain = (text: string, most: number): string =>
  text
    .slice(0, 10_000)
    .replaceAll(/<\/?(?:strong|b|em)>/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, most)
    .toWellFormed();

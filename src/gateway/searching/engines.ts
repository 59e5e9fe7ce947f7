import type { GuardedFetch } from '#kit/guarded-fetch';
import { isObject, textOf } from '#model/json';

/** Something on the web that fits what was looked for, best first. */
export interface Found {
  readonly url: string;
  readonly title: string;
  /** What the engine shows of it. */
  readonly text: string;
}

/** Where the web is searched. */
export interface Engine {
  /** @throws NotFetched; or the signal's reason */
  search(query: string, asking: { readonly owner: string; readonly signal: AbortSignal }): Promise<readonly Found[]>;
}

export interface EngineSettings {
  readonly engine: 'searxng' | 'brave' | 'tavily';
  readonly url: string;
  readonly apiKey: string;
}

/** So many results are taken. */
export const mostFound = 8;
const mostBytes = 2_097_152;

interface Kind {
  /** Where it is asked unless the settings say otherwise. */
  readonly url?: string;
  ask(url: URL, query: string, apiKey: string): { readonly headers: Readonly<Record<string, string>>; readonly body?: string };
  /** The list of results in an answer, and the names of their members. */
  results(answer: Readonly<Record<string, unknown>>): unknown;
  readonly text: string;
}

const bearer = (apiKey: string): Record<string, string> => (apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` });

const kinds: Readonly<Record<EngineSettings['engine'], Kind>> = {
  // https://docs.searxng.org/dev/search_api.html
  searxng: {
    ask(url, query, apiKey) {
      if (!url.pathname.endsWith('/search')) url.pathname = `${url.pathname.replace(/\/+$/, '')}/search`;
      url.searchParams.set('q', query);
      url.searchParams.set('format', 'json');
      return { headers: bearer(apiKey) };
    },
    results: ({ results }) => results,
    text: 'content',
  },
  // https://api-dashboard.search.brave.com/app/documentation/web-search/get-started
  brave: {
    url: 'https://api.search.brave.com/res/v1/web/search',
    ask(url, query, apiKey) {
      url.searchParams.set('q', query);
      url.searchParams.set('count', String(mostFound));
      return { headers: { 'x-subscription-token': apiKey } };
    },
    results: ({ web }) => (isObject(web) ? web['results'] : undefined),
    text: 'description',
  },
  // https://docs.tavily.com/documentation/api-reference/endpoint/search
  tavily: {
    url: 'https://api.tavily.com/search',
    ask: (_url, query, apiKey) => ({
      headers: { 'content-type': 'application/json', ...bearer(apiKey) },
      body: JSON.stringify({ query, max_results: mostFound }),
    }),
    results: ({ results }) => results,
    text: 'content',
  },
};

/** @returns undefined where nothing is configured: the engine with an address of its own needs a key, the other an address */
export function addressOf({ engine, url, apiKey }: EngineSettings): string | undefined {
  if (url !== '') return url;
  return apiKey === '' ? undefined : kinds[engine].url;
}

/** @param door that lets the engine's own address pass: the operator chose it */
export function openEngine(settings: EngineSettings, door: GuardedFetch): Engine | undefined {
  const address = addressOf(settings);
  if (address === undefined) return undefined;
  const kind = kinds[settings.engine];
  return {
    async search(query, asking) {
      const url = new URL(address);
      const sent = kind.ask(url, query, settings.apiKey);
      const takes = (type: string) => type === 'application/json' || type.endsWith('+json');
      const { bytes } = await door.fetch({ ...asking, ...sent, url: url.href, maxBytes: mostBytes, takes });
      return foundIn(kind, JSON.parse(Buffer.from(bytes).toString('utf8')));
    },
  };
}

function foundIn(kind: Kind, answer: unknown): readonly Found[] {
  const list = isObject(answer) ? kind.results(answer) : undefined;
  if (!Array.isArray(list)) throw new Error('The search engine sent no results.');
  const seen = new Set<string>();
  return (list as readonly unknown[])
    .flatMap((one): readonly Found[] => {
      if (!isObject(one)) return [];
      const url = textOf(one['url']);
      if (!/^https?:\/\/[^\s<>"]{1,2000}$/i.test(url) || seen.has(url)) return [];
      seen.add(url);
      return [{ url, title: plain(textOf(one['title'])).slice(0, 200) || url.slice(0, 200), text: plain(textOf(one[kind.text])).slice(0, 2000) }];
    })
    .slice(0, mostFound);
}

/** Engines put marks around the words that fit. */
const plain = (text: string): string =>
  text
    .slice(0, 10_000)
    .replaceAll(/<\/?(?:strong|b|em)>/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim();

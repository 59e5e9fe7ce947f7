import { UpstreamResponse, UpstreamError } from '../upstream/response.ts';
import type { Memory } from '../memory/byte-budget.ts';
import type { Clock } from '../async/clock.ts';
import { stepOverContinue } from '../upstream/ignore-100-continue.ts';
import { openFairSemaphore, QueueFull } from '../async/fair-semaphore.ts';
import { GuardedDial, theInternet, type DialSettings, type Outside } from './guarded-dial.ts';
import { contentTypeIn } from '../text/content-type.ts';
import { timed } from '../async/timed.ts';

/**
 * The only way to fetch a URL that a user chose. One parser (WHATWG) reads the URL, every address of its host is checked, and the connection uses a checked
 * address, so that DNS rebinding has no effect. Redirects are followed by hand, with the same checks.
 */
export interface GuardedFetch {
  /** @throws NotFetched; QueueFull; UpstreamError `no-room`; or the signal's reason */
  fetch(wanted: Wanted): Promise<Fetched>;
}

export interface Wanted {
  readonly url: string;
  /** The owner, for the limit of concurrent fetches per owner. */
  readonly owner: string;
  readonly signal: AbortSignal;
  /** Limit of the decompressed content (bytes). */
  readonly maxBytes: number;
  /** Whether a MIME type is accepted. Lower-case, without parameters; empty if the response names none. */
  takes(type: string): boolean;
  /** The memory budget that the content counts towards; absent: none. */
  readonly memory?: Memory | undefined;
  /** Headers for the origin of the URL; not sent to other origins. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Present: the request is a POST, and redirects are not followed. */
  readonly body?: string;
  /** The only origins that a redirect may lead to; absent: any. */
  readonly origins?: ReadonlySet<string>;
  /** Whether every 2xx is good; absent: 200 alone. */
  readonly anySuccess?: true;
}

export interface Fetched {
  readonly bytes: Uint8Array;
  readonly type: string;
  /** The MIME type of the content type, lower-case. */
  readonly charset: string | undefined;
  /** The final URL after redirects. */
  readonly url: string;
}

/** What is at an address was seen, and is not taken. Its message tells nothing about a network. */
export class NotTaken extends Error {}

/** The fetch failed. All reasons share one message, so that it reveals nothing about a network. The cause is for the log, or one that may be told. */
export class NotFetched extends Error {
  constructor(cause: unknown) {
    super('The address cannot be fetched, or what is there is not taken.', { cause });
    this.name = 'NotFetched';
  }
}

export interface GuardSettings extends Omit<DialSettings, 'outside' | 'seconds'> {
  readonly clock: Clock;
  readonly outside?: Outside | undefined;
  /** Deadline of the whole fetch, redirects included; default 10. */
  readonly seconds?: number;
}

const mostRedirects = 5;
const longestUrl = 8192;
const redirects = new Set([301, 302, 303, 307, 308]);
/** Sizes count requests, since a waiting one needs little memory. */
const bounds = { each: 4, all: 32, unfinished: { each: { jobs: 68, size: Infinity }, all: { jobs: 1000, size: Infinity } } };

export function openGuardedFetch({ clock, outside = theInternet(), seconds = 10, ...settings }: GuardSettings): GuardedFetch {
  stepOverContinue();
  const dial = new GuardedDial({ ...settings, outside, seconds });
  const users = openFairSemaphore(bounds, clock);
  const watch = { clock, add() {}, delete() {} }; // one deadline covers the whole fetch

  /** One request. @param then handles the response while the connection is open */
  async function ask<Result>(
    url: URL,
    { headers, body }: Pick<Wanted, 'headers' | 'body'>,
    signal: AbortSignal,
    then: (response: UpstreamResponse) => Promise<Result>,
  ): Promise<Result> {
    const { dispatcher, origin } = dial.to(url, await dial.addresses(url, signal));
    try {
      const path = `${url.pathname}${url.search}`;
      const sent = { ...usual, host: url.host, ...headers };
      const response = await new Promise<UpstreamResponse>((resolve, reject) => {
        const request = { url, path, headers: sent, body: body ?? '', signal, headSeconds: seconds, quietSeconds: seconds };
        const method = body === undefined ? 'GET' : 'POST';
        dispatcher.dispatch({ origin, path, method, headers: sent, body: body ?? null }, new UpstreamResponse(request, watch, resolve, reject));
      });
      try {
        return await then(response);
      } finally {
        response.leave();
      }
    } finally {
      void dispatcher.destroy();
    }
  }

  async function follow(wanted: Wanted, signal: AbortSignal): Promise<Fetched> {
    let url = parsedUrl(wanted.url);
    let { headers = {} } = wanted;
    for (let hops = 0; hops <= mostRedirects; hops++) {
      const found = await ask(url, { ...wanted, headers }, signal, async (response): Promise<Fetched | URL> => {
        if (redirects.has(response.status) && wanted.body === undefined) return parsedUrl(String(response.headers['location'] ?? ''), url);
        const isGood = response.status === 200 || (wanted.anySuccess && response.status > 200 && response.status < 300);
        if (!isGood) throw new NotTaken(`It answered ${response.status}.`);
        const { type, charset } = contentTypeIn(String(response.headers['content-type'] ?? ''));
        if (!wanted.takes(type)) throw new NotTaken('It is of a type that is not wanted.');
        if (Number(response.headers['content-length'] ?? 0) > wanted.maxBytes) throw new NotTaken('It is too large.');
        return { bytes: await response.whole(wanted.maxBytes, wanted.memory), type, charset, url: url.href };
      });
      if (!(found instanceof URL)) return found;
      if (wanted.origins?.has(found.origin) === false) throw new NotTaken('It was redirected to another host.');
      if (found.origin !== url.origin) headers = {};
      url = found;
    }
    throw new NotTaken('It was redirected too often.');
  }

  return {
    async fetch(wanted) {
      wanted.signal.throwIfAborted();
      const time = { clock, milliseconds: seconds * 1000, late: new Error('It took too long.'), signal: wanted.signal };
      try {
        return await timed(time, (signal) => users.run({ owner: wanted.owner, size: 1, signal }, () => follow(wanted, signal)));
      } catch (error) {
        wanted.signal.throwIfAborted();
        const isNoRoom = error instanceof UpstreamError && error.problem === 'no-room';
        throw error instanceof QueueFull || isNoRoom ? error : new NotFetched(error);
      }
    },
  };
}

const usual = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'Dragoman' };

/** @throws Error for what is no address, or too long */
export function parsedUrl(text: string, base?: URL): URL {
  const url = text.length > longestUrl ? null : URL.parse(text, base);
  if (!url) throw new Error('Not an address.');
  return url;
}

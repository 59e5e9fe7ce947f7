import { UpstreamResponse, UpstreamError } from '../upstream/response.ts';
import type { Memory } from '../memory/byte-budget.ts';
import type { Clock } from '../async/clock.ts';
import { stepOverContinue } from '../upstream/ignore-100-continue.ts';
import { openFairSemaphore, QueueFull } from '../async/fair-semaphore.ts';
import { GuardedDial, theInternet, type DialSettings, type Outside } from './guarded-dial.ts';

/**
 * The only way to fetch an address that a user chose. One parser reads an address (WHATWG), every address of its host is checked, and the
 * one that was checked is the one that is dialled, so that a name cannot lead elsewhere a moment later. Redirects are followed by hand, each as if it were
 * the first.
 */
export interface GuardedFetch {
  /** @throws NotFetched; QueueFull; UpstreamError `no-room`; or the signal's reason */
  fetch(wanted: Wanted): Promise<Fetched>;
}

export interface Wanted {
  readonly url: string;
  /** Whose wish it is: of each so many are fetched at a time. */
  readonly owner: string;
  readonly signal: AbortSignal;
  /** Of the content, decompressed. */
  readonly maxBytes: number;
  /** Is this MIME type wanted? Lower-case, without parameters; empty where none is named. */
  takes(type: string): boolean;
  /** Where the content counts; absent: nowhere. */
  readonly memory?: Memory | undefined;
  /** Sent along, but not to another origin than that of the address. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Present: it is posted, and no redirect is followed. */
  readonly body?: string;
}

export interface Fetched {
  readonly bytes: Uint8Array;
  readonly type: string;
  /** As the content type names it, lower-case. */
  readonly charset: string | undefined;
  /** Where it was found in the end. */
  readonly url: string;
}

/** It could not be had. One text for all reasons: nobody is to learn from it what there is in a network. The cause is for the log. */
export class NotFetched extends Error {
  constructor(cause: unknown) {
    super('The address cannot be fetched, or what is there is not taken.', { cause });
    this.name = 'NotFetched';
  }
}

export interface GuardSettings extends Omit<DialSettings, 'outside' | 'seconds'> {
  readonly clock: Clock;
  readonly outside?: Outside | undefined;
  /** All of it, redirects included; 10 when absent. */
  readonly seconds?: number;
}

const mostRedirects = 5;
const longestUrl = 8192;
const redirects = new Set([301, 302, 303, 307, 308]);
/** Sizes are requests: each holds little until it is fetched. */
const bounds = { each: 4, all: 32, unfinished: { each: { jobs: 68, size: Infinity }, all: { jobs: 1000, size: Infinity } } };

export function openGuardedFetch({ clock, outside = theInternet(), seconds = 10, ...settings }: GuardSettings): GuardedFetch {
  stepOverContinue();
  const dial = new GuardedDial({ ...settings, outside, seconds });
  const users = openFairSemaphore(bounds, clock);
  const watch = { clock, add() {}, delete() {} }; // the deadline is for all of it

  /** One request. @param then what is done with its answer while the connection is there */
  async function ask<Result>(
    url: URL,
    { headers, body }: Pick<Wanted, 'headers' | 'body'>,
    signal: AbortSignal,
    then: (answering: UpstreamResponse) => Promise<Result>,
  ): Promise<Result> {
    const { dispatcher, origin } = dial.to(url, await dial.addresses(url, signal));
    try {
      const path = `${url.pathname}${url.search}`;
      const sent = { ...usual, host: url.host, ...headers };
      const answering = await new Promise<UpstreamResponse>((resolve, reject) => {
        const request = { url, path, headers: sent, body: body ?? '', signal, headSeconds: seconds, quietSeconds: seconds };
        const method = body === undefined ? 'GET' : 'POST';
        dispatcher.dispatch({ origin, path, method, headers: sent, body: body ?? null }, new UpstreamResponse(request, watch, resolve, reject));
      });
      try {
        return await then(answering);
      } finally {
        answering.leave();
      }
    } finally {
      void dispatcher.destroy();
    }
  }

  async function follow(wanted: Wanted, signal: AbortSignal): Promise<Fetched> {
    let url = parsed(wanted.url);
    let { headers = {} } = wanted;
    for (let hops = 0; hops <= mostRedirects; hops++) {
      const found = await ask(url, { ...wanted, headers }, signal, async (answering): Promise<Fetched | URL> => {
        if (redirects.has(answering.status) && wanted.body === undefined) return parsed(String(answering.headers['location'] ?? ''), url);
        if (answering.status !== 200) throw new Error(`It answered ${answering.status}.`);
        const { type, charset } = typeOf(String(answering.headers['content-type'] ?? ''));
        if (!wanted.takes(type)) throw new Error('It is of a type that is not wanted.');
        if (Number(answering.headers['content-length'] ?? 0) > wanted.maxBytes) throw new Error('It is too large.');
        return { bytes: await answering.whole(wanted.maxBytes, wanted.memory), type, charset, url: url.href };
      });
      if (!(found instanceof URL)) return found;
      if (found.origin !== url.origin) headers = {};
      url = found;
    }
    throw new Error('It was redirected too often.');
  }

  return {
    async fetch(wanted) {
      wanted.signal.throwIfAborted();
      const over = new AbortController();
      const { signal } = over;
      const cancel = clock.after(seconds * 1000, () => over.abort(new Error('It took too long.')));
      const left = () => over.abort(wanted.signal.reason);
      wanted.signal.addEventListener('abort', left);
      try {
        return await users.run({ owner: wanted.owner, size: 1, signal }, () => follow(wanted, signal));
      } catch (error) {
        wanted.signal.throwIfAborted();
        const isNoRoom = error instanceof UpstreamError && error.problem === 'no-room';
        throw error instanceof QueueFull || isNoRoom ? error : new NotFetched(error);
      } finally {
        cancel();
        wanted.signal.removeEventListener('abort', left);
      }
    },
  };
}

const usual = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'Dragoman' };

function parsed(text: string, base?: URL): URL {
  const url = text.length > longestUrl ? null : URL.parse(text, base);
  if (!url) throw new Error('Not an address.');
  return url;
}

function typeOf(header: string): { readonly type: string; readonly charset: string | undefined } {
  const [type = '', ...parameters] = header.toLowerCase().split(';');
  const charset = parameters.map((one) => /^\s*charset\s*=\s*"?([\w-]{1,40})/.exec(one)?.[1]).find((one) => one !== undefined);
  return { type: type.trim(), charset };
}

import { Resolver, lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import type { SecureContext } from 'node:tls';
import { buildConnector, Client, ProxyAgent, type Dispatcher } from 'undici';
import { UpstreamResponse, UpstreamError } from '../upstream/response.ts';
import type { Memory } from '../memory/byte-budget.ts';
import type { Clock } from '../async/clock.ts';
import { stepOverContinue } from '../upstream/ignore-100-continue.ts';
import { openFairSemaphore, QueueFull } from '../async/fair-semaphore.ts';
import { orAborted } from '../async/or-aborted.ts';
import { isMetadata, isPublic } from './public-addresses.ts';

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

/** The network, as far as it is asked before a connection is opened. */
export interface Outside {
  /** The addresses of a host. `trusted`: the operator named it, so that the system's own files may know it. */
  resolve(host: string, trusted: boolean): Promise<readonly string[]>;
  /** Where an address is dialled. */
  at(address: string): string;
}

export interface GuardSettings {
  readonly clock: Clock;
  /** Exceptions, as `scheme://host:port`: there private addresses are fetched too. */
  readonly allow: readonly string[];
  /** An HTTP proxy for all hosts but those in `noProxy`; empty: none. It is told the address that was checked, never the name. */
  readonly proxy: string;
  readonly noProxy: string;
  readonly secureContext?: SecureContext | undefined;
  readonly outside?: Outside | undefined;
  /** All of it, redirects included; 10 when absent. */
  readonly seconds?: number;
}

const mostRedirects = 5;
const longestUrl = 8192;
const redirects = new Set([301, 302, 303, 307, 308]);
/** Sizes are requests: each holds little until it is fetched. */
const bounds = { each: 4, all: 32, unfinished: { each: { jobs: 68, size: Infinity }, all: { jobs: 1000, size: Infinity } } };

export function openGuardedFetch({ clock, allow, proxy, noProxy, secureContext, outside = theInternet(), seconds = 10 }: GuardSettings): GuardedFetch {
  stepOverContinue();
  const exceptions = new Set(allow.map((origin) => new URL(origin).origin));
  const users = openFairSemaphore(bounds, clock);
  const watch = { clock, add() {}, delete() {} }; // the deadline is for all of it

  /** @throws Error for an address that is not to be fetched */
  async function addressesOf(url: URL, signal: AbortSignal): Promise<readonly string[]> {
    if (!/^https?:$/.test(url.protocol) || url.username || url.password) throw new Error('Not a plain http or https address.');
    const trusted = exceptions.has(url.origin);
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const addresses = isIP(host) ? [host] : await orAborted(outside.resolve(host, trusted), signal);
    const isRefused = trusted ? (address: string) => isMetadata(address) && address !== host : (address: string) => !isPublic(address);
    if (addresses.length === 0 || addresses.some(isRefused)) throw new Error('Not a public host.');
    return addresses.map((address) => outside.at(address));
  }

  function dispatcherFor(url: URL, addresses: readonly string[]): { readonly dispatcher: Dispatcher; readonly origin: string } {
    const tls = { ...(secureContext ? { secureContext } : {}), ...(isIP(url.hostname.replace(/^\[|\]$/g, '')) ? {} : { servername: url.hostname }) };
    if (proxy && !isDirect(url, noProxy)) {
      const [address] = addresses as [string];
      const port = url.port || (url.protocol === 'https:' ? '443' : '80');
      const origin = `${url.protocol}//${isIP(address) === 6 ? `[${address}]` : address}:${port}`;
      return {
        dispatcher: new ProxyAgent({ uri: proxy, proxyTunnel: true, requestTls: tls, ...(secureContext ? { proxyTls: { secureContext } } : {}), ...tuning }),
        origin,
      };
    }
    const dial = buildConnector({ ...tls, timeout: seconds * 1000, lookup: pinned(addresses) });
    const connect: buildConnector.connector = (options, then) =>
      dial(options, (...result) => {
        const [error, socket] = result;
        if (error || addresses.includes(socket.remoteAddress ?? '')) return then(...result);
        socket.destroy();
        then(new Error('Another address was dialled.'), null);
      });
    return { dispatcher: new Client(url.origin, { connect, pipelining: 1, ...tuning }), origin: url.origin };
  }

  /** One request. @param then what is done with its answer while the connection is there */
  async function ask<Result>(
    url: URL,
    { headers, body }: Pick<Wanted, 'headers' | 'body'>,
    signal: AbortSignal,
    then: (answering: UpstreamResponse) => Promise<Result>,
  ): Promise<Result> {
    const { dispatcher, origin } = dispatcherFor(url, await addressesOf(url, signal));
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

const tuning = { maxHeaderSize: 32_768, headersTimeout: 0, bodyTimeout: 0 };
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

/** The addresses that were checked, and no others. */
function pinned(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_host, { all }, then) => (all ? then(null, found) : then(null, found[0]!.address, found[0]!.family));
}

/** As curl reads NO_PROXY: names, with or without a leading dot, and all that ends in them. */
function isDirect({ hostname, port }: URL, noProxy: string): boolean {
  return noProxy.split(/[\s,]+/).some((entry) => {
    const [, name = '', only] = /^\*?\.?(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
    if (entry === '*') return true;
    return name !== '' && (only === undefined || only === port) && (hostname === name || hostname.endsWith(`.${name}`));
  });
}

/** The servers of the name system are asked directly: the system's own lookup blocks one of few threads for as long as a hostile server likes. */
function theInternet(): Outside {
  let resolver: Resolver | undefined;
  return {
    async resolve(host, trusted) {
      if (trusted) return (await lookup(host, { all: true })).map(({ address }) => address);
      resolver ??= new Resolver({ timeout: 2000, tries: 2 });
      const found = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
      return found.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
    },
    at: (address) => address,
  };
}

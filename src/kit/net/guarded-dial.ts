import { Resolver, lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import type { SecureContext } from 'node:tls';
import { buildConnector, Client, ProxyAgent, type Dispatcher } from 'undici';
import { orAborted } from '../async/or-aborted.ts';
import { isMetadata, isPublic } from './public-addresses.ts';

/** The network, as far as it is asked before a connection is opened. */
export interface Outside {
  /** The addresses of a host. `trusted`: the operator named it, so that the system's own files may know it. */
  resolve(host: string, trusted: boolean): Promise<readonly string[]>;
  /** Where an address is dialled. */
  at(address: string): string;
}

export interface DialSettings {
  /** Exceptions, as `scheme://host:port`: there private addresses are fetched too. */
  readonly allow: readonly string[];
  /** An HTTP proxy for all hosts but those in `noProxy`; empty: none. It is told the address that was checked, never the name. */
  readonly proxy: string;
  readonly noProxy: string;
  readonly secureContext?: SecureContext | undefined;
  readonly outside: Outside;
  /** For the connection. */
  readonly seconds: number;
}

/** Checks the addresses of a host, and dials only those that were checked. */
export class GuardedDial {
  readonly #settings: DialSettings;
  readonly #exceptions: ReadonlySet<string>;

  constructor(settings: DialSettings) {
    this.#settings = settings;
    this.#exceptions = new Set(settings.allow.map((origin) => new URL(origin).origin));
  }

  /** The checked addresses of a URL's host. @throws Error for a URL that is not to be fetched */
  async addresses(url: URL, signal: AbortSignal): Promise<readonly string[]> {
    if (!/^https?:$/.test(url.protocol) || url.username || url.password) throw new Error('Not a plain http or https address.');
    const { outside } = this.#settings;
    const trusted = this.#exceptions.has(url.origin);
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const addresses = isIP(host) ? [host] : await orAborted(outside.resolve(host, trusted), signal);
    const isRefused = trusted ? (address: string) => isMetadata(address) && address !== host : (address: string) => !isPublic(address);
    if (addresses.length === 0 || addresses.some(isRefused)) throw new Error('Not a public host.');
    return addresses.map((address) => outside.at(address));
  }

  /** @param addresses of the host, checked: no other is dialled */
  to(url: URL, addresses: readonly string[]): { readonly dispatcher: Dispatcher; readonly origin: string } {
    const { proxy, noProxy, secureContext, seconds } = this.#settings;
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
}

const tuning = { maxHeaderSize: 32_768, headersTimeout: 0, bodyTimeout: 0 };

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
export function theInternet(): Outside {
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

import { Resolver, lookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import type { SecureContext } from 'node:tls';
import { buildConnector, Client, ProxyAgent, type Dispatcher } from 'undici';
import { orAborted } from '../async/or-aborted.ts';
import { arePublic, isMetadata } from './public-addresses.ts';

/** The network operations that precede a connection. */
export interface Outside {
  /** The addresses of a host. `trusted`: the operator configured the host, so the hosts file of the system applies. */
  resolve(host: string, trusted: boolean): Promise<readonly string[]>;
  /** The address and port to connect to. */
  at(address: string): string;
}

export interface DialSettings {
  /** Exceptions, as `scheme://host:port`: for these origins private addresses are allowed. */
  readonly allow: readonly string[];
  /** An HTTP proxy for all hosts except those in `noProxy`; empty: none. It receives the checked address, never the name. */
  readonly proxy: string;
  readonly noProxy: string;
  readonly secureContext?: SecureContext | undefined;
  readonly outside: Outside;
  /** Options of the connection. */
  readonly seconds: number;
}

/** Of one host: a DNS server can give thousands, each of which would be checked and dialled. */
const mostAddresses = 64;

/** Checks the addresses of a host and connects only to checked ones. */
export class GuardedDial {
  readonly #settings: DialSettings;
  readonly #exceptions: ReadonlySet<string>;

  constructor(settings: DialSettings) {
    this.#settings = settings;
    this.#exceptions = new Set(settings.allow.map((origin) => new URL(origin).origin));
  }

  /** The checked addresses of a URL's host. @throws Error for a URL that must not be fetched */
  async addresses(url: URL, signal: AbortSignal): Promise<readonly string[]> {
    if (!/^https?:$/.test(url.protocol) || url.username || url.password) throw new Error('Not a plain http or https address.');
    const { outside } = this.#settings;
    const trusted = this.#exceptions.has(url.origin);
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const addresses = isIP(host) ? [host] : await orAborted(outside.resolve(host, trusted), signal);
    if (addresses.length === 0 || addresses.length > mostAddresses) throw new Error('No host, or one of too many addresses.');
    const isRefused = trusted ? addresses.some((address) => isMetadata(address) && address !== host) : !arePublic(addresses);
    if (isRefused) throw new Error('Not a public host.');
    return addresses.map((address) => outside.at(address));
  }

  /** @param addresses checked addresses of the host; no others are used */
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

/** Reads NO_PROXY as curl does: each name, with or without a leading dot, also matches its subdomains. */
function isDirect({ hostname, port }: URL, noProxy: string): boolean {
  return noProxy.split(/[\s,]+/).some((entry) => {
    const [, name = '', only] = /^\*?\.?(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
    if (entry === '*') return true;
    return name !== '' && (only === undefined || only === port) && (hostname === name || hostname.endsWith(`.${name}`));
  });
}

/** Queries DNS servers directly: the lookup of the system blocks one of a few threads for as long as a hostile server chooses. */
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

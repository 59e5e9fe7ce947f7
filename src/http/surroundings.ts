import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import type { Headers } from './headers.ts';

/** What the settings say of proxies before this server, and of pages elsewhere that may ask it. */
export interface SurroundingSettings {
  /** Addresses and networks whose `X-Forwarded-*` count. */
  readonly trustedProxies: readonly string[];
  /** `scheme://host:port`, or `*`. */
  readonly origins: readonly string[];
  /** Empty: made from host and port. */
  readonly publicUrl: string;
}

export interface Surroundings {
  /** The address of the client: behind trusted proxies the last address in `X-Forwarded-For` that is none of them. */
  clientOf(request: IncomingMessage): string | null;
  /** Does the client speak https, to a proxy of ours or as the public address says? */
  isSecure(request: IncomingMessage): boolean;
  /** Does it come from a page of this server, by `Origin`, else by `Sec-Fetch-Site`? `undefined`: it has neither, and so no browser sent it. */
  isFromOwnPage(request: IncomingMessage): boolean | undefined;
  /** Headers of every answer to this request. */
  headers(request: IncomingMessage): Headers;
  /** Headers of the answer to a preflight from an allowed origin; `undefined` for any other request. @param allow the methods of the address */
  preflight(request: IncomingMessage, allow: string): Headers | undefined;
}

/** Two years, as the preload list of browsers wants it at least for one. */
const strictTransport = ['strict-transport-security', 'max-age=63072000'];

/** Our own headers that scripts of other origins may read. */
const exposed = [
  'x-request-id',
  'request-id',
  'retry-after',
  'x-should-retry',
  ...['limit', 'remaining', 'reset'].flatMap((what) => [`x-ratelimit-${what}-requests`, `x-ratelimit-${what}-tokens`]),
  ...['provider', 'region', 'attempts', 'warnings', 'flags', 'cache', 'replayed'].map((name) => `x-dragoman-${name}`),
].join(', ');

const none: Headers = [];

/** @param settings read at each request: the same object until they change */
export function surroundings(settings: () => SurroundingSettings): Surroundings {
  let of: SurroundingSettings | undefined;
  let isTrusted = (_address: string): boolean => false;
  const current = (): SurroundingSettings => {
    const now = settings();
    if (now !== of) isTrusted = within((of = now).trustedProxies);
    return now;
  };
  const throughProxy = (request: IncomingMessage): boolean => current().trustedProxies.length > 0 && isTrusted(peerOf(request) ?? '');
  const isSecure = (request: IncomingMessage): boolean =>
    current().publicUrl.startsWith('https:') || (throughProxy(request) && lastWord(request.headers['x-forwarded-proto']) === 'https');
  const originOf = ({ headers: { origin } }: IncomingMessage): string | undefined => {
    if (origin === undefined) return undefined;
    const { origins } = current();
    return origins.includes('*') ? '*' : origins.find((one) => one.toLowerCase() === origin.toLowerCase());
  };
  return {
    isSecure,
    isFromOwnPage(request) {
      const { origin, host, 'sec-fetch-site': site } = request.headers;
      if (origin === undefined) return site === undefined ? undefined : site === 'same-origin';
      const from = URL.parse(origin);
      if (!from || !/^https?:$/.test(from.protocol)) return false;
      if (from.origin === URL.parse(current().publicUrl)?.origin) return true;
      // A proxy that is not known as one may speak https to the client: the scheme is then believed, unless the browser itself says that the page is another one.
      if (site !== undefined && site !== 'same-origin') return false;
      return from.origin === URL.parse(`${isSecure(request) ? 'https:' : from.protocol}//${host}`)?.origin;
    },
    clientOf(request) {
      const peer = peerOf(request);
      return throughProxy(request) ? (clientAmong(request.headers['x-forwarded-for'], isTrusted) ?? peer) : peer;
    },
    headers(request) {
      const secure = isSecure(request) ? strictTransport : none;
      const origin = originOf(request);
      return origin === undefined ? secure : [...secure, 'access-control-allow-origin', origin, 'access-control-expose-headers', exposed];
    },
    preflight(request, allow) {
      const wanted = request.headers['access-control-request-headers'] ?? '';
      if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined || originOf(request) === undefined) return undefined;
      return ['access-control-allow-methods', allow, ...(wanted === '' ? none : ['access-control-allow-headers', wanted]), 'access-control-max-age', '600'];
    },
  };
}

const peerOf = (request: IncomingMessage): string | null => request.socket.remoteAddress?.replace(/^::ffff:/, '') ?? null;

const lastWord = (header: string | string[] | undefined): string | undefined => [header].flat().join(',').split(',').at(-1)?.trim().toLowerCase();

/** The proxies' addresses are taken from the end: what stands before the client may be the client's own invention. */
function clientAmong(header: string | string[] | undefined, isTrusted: (address: string) => boolean): string | undefined {
  const hops = [header].flat().join(',').split(',').slice(-mostHops);
  let last: string | undefined;
  for (const hop of hops.toReversed()) {
    const address = addressIn(hop);
    if (address === undefined) return last;
    last = address;
    if (!isTrusted(address)) return address;
  }
  return last;
}

/** No chain of proxies is longer. */
const mostHops = 32;

/** The address of `1.2.3.4`, `1.2.3.4:80`, `::1` or `[::1]:80`. */
function addressIn(hop: string): string | undefined {
  const text = hop.trim();
  const bare = /^\[([^\]]{1,64})\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^([\d.]{7,15}):\d{1,5}$/.exec(text)?.[1] ?? text;
  const plain = bare.replace(/^::ffff:(?=\d+\.)/i, '');
  return isIP(plain) ? plain : undefined;
}

function within(networks: readonly string[]): (address: string) => boolean {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', length] = network.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    list.addSubnet(address, length === undefined ? (family === 'ipv6' ? 128 : 32) : Number(length), family);
  }
  return (address) => {
    const version = isIP(address);
    return version !== 0 && list.check(address, version === 6 ? 'ipv6' : 'ipv4');
  };
}

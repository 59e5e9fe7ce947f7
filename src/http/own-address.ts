import { isIP } from 'node:net';

export interface OwnAddress {
  /** The public address; empty: there is none. */
  readonly publicUrl: string;
  /** What it listens on. */
  readonly host: string;
  readonly cors: { readonly origins: readonly string[] };
}

/**
 * Whether a request names this server: by its public address, what it listens on, an IP address or `localhost`. Any other name may have been made to point here by the
 * page that asks (DNS rebinding). A page's origin must be that of the address asked, the public one, or one of those that the settings name.
 */
export function isOwnAddress({ host, origin }: { readonly host: string | undefined; readonly origin: string | undefined }, own: OwnAddress): boolean {
  const asked = host === undefined ? null : URL.parse(`http://${host}`);
  if (asked?.pathname !== '/' || asked.username !== '' || !isOwnName(asked.hostname, own)) return false;
  if (origin === undefined) return true;
  const { origins } = own.cors;
  if (origins.includes('*') || origins.some((one) => one.toLowerCase() === origin.toLowerCase())) return true;
  const from = URL.parse(origin);
  if (!from || !/^https?:$/.test(from.protocol)) return false;
  return from.origin === URL.parse(own.publicUrl)?.origin || from.host === URL.parse(`${from.protocol}//${host}`)?.host;
}

function isOwnName(name: string, { publicUrl, host }: OwnAddress): boolean {
  const plain = name.replace(/^\[|\]$/g, '');
  return isIP(plain) !== 0 || name === 'localhost' || name === URL.parse(publicUrl)?.hostname || plain === host.toLowerCase();
}

/** An address at which this machine reaches a server by the one on which it listens: that of all interfaces is none to connect to. */
export function reachableHere(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}

/** The address at which a server listens, where only this machine reaches it; else an empty text. */
export function addressHere(url: string): string {
  const name = URL.parse(url)?.hostname ?? '';
  return name === '[::1]' || name === 'localhost' || (isIP(name) === 4 && name.startsWith('127.')) ? url : '';
}

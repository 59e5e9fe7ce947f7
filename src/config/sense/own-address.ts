import { isIP } from 'node:net';
import { hostname, networkInterfaces } from 'node:os';
import type { Settings } from '../schema/index.ts';
import type { Trouble } from './trouble.ts';

const loopback = /^(localhost|127(\.\d{1,3}){3}|::1|::ffff:7f[\da-f]{2}:[\da-f]{1,4})$/;
/** Behind a proxy, other paths of the public origin may lead to other servers. */
const ownPath = /^\/(?:$|v1|server)/;
const everywhere = new Set(['0.0.0.0', '::']);

/** Providers whose address is that of this server: each call would call itself. */
export function* ownAddress(settings: Settings): Iterable<Trouble> {
  for (const [name, { baseUrl, regions }] of Object.entries(settings.providers)) {
    if (isOwn(baseUrl, settings)) yield { path: ['providers', name, 'baseUrl'], text, dependsOn };
    for (const [at, region] of regions.entries())
      if (typeof region !== 'string' && isOwn(region.baseUrl, settings)) yield { path: ['providers', name, 'regions', at, 'baseUrl'], text, dependsOn };
  }
}

const text =
  'is the address of this server itself, which would call itself. A base address that your programs need is for their terminal, not for that of the server.';

const dependsOn = [['host'], ['port'], ['publicUrl']];

/** Whether a URL is that of this server itself. */
export function isOwn(address: string, { host, port, publicUrl }: Pick<Settings, 'host' | 'port' | 'publicUrl'>): boolean {
  const url = URL.parse(address);
  if (!url) return false;
  if (URL.parse(publicUrl)?.origin === url.origin) return ownPath.test(url.pathname);
  if (Number(url.port || (url.protocol === 'https:' ? 443 : 80)) !== port) return false;
  const asked = bareHost(url.hostname);
  const own = bareHost(host);
  if (asked === own) return true;
  const here = loopback.test(asked) || everywhere.has(asked);
  if (loopback.test(own)) return here;
  return everywhere.has(own) && (here || asked === hostname().toLowerCase() || (isIP(asked) !== 0 && addressesHere().includes(asked)));
}

const bareHost = (host: string) => host.toLowerCase().replace(/^\[|\]$/g, '');

const addressesHere = () => Object.values(networkInterfaces()).flatMap((some) => (some ?? []).map(({ address }) => address));

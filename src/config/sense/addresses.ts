import { isIP } from 'node:net';
import { certificatesIn } from '#kit/net/certificates';
import type { Path } from '../path.ts';
import type { Settings } from '../schema/index.ts';
import type { Trouble } from './trouble.ts';

/** The problem of a text that must be an http or https URL; undefined if it is one. */
export function wrongAddress(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text)) return 'must start with http:// or https://.';
  // The URL parser tolerates white space and converts \ to /.
  const url = /[\s\\]|[^\x20-\x7e]/.test(text) ? undefined : URL.parse(text);
  if (!url) return 'must be an address such as https://host/path.';
  if (url.username || url.password) return 'must not contain a user name or a password.';
  if (/[?#]/.test(text)) return 'must not contain ? or #.';
  return undefined;
}

/** The same for a URL that may contain {region}. */
export function wrongPattern(text: string): string | undefined {
  const filled = text.replaceAll('{region}', 'region');
  return /[{}]/.test(filled) ? 'may contain {region}, but no other { or }.' : wrongAddress(filled);
}

/** The problem of a text that must be an origin, `scheme://host:port`. */
function wrongOrigin(text: string): string | undefined {
  const path = wrongAddress(text) ? undefined : new URL(text).pathname;
  return path === '/' && !/[/*]$|\*/.test(text) ? undefined : 'must be scheme://host:port of one host, with nothing after it.';
}

export function* addresses(settings: Settings): Iterable<Trouble> {
  const { publicUrl, trustedProxies, search, rerank, mcp, outbound, auth, cors, alerts, blobs, otel, databaseUrl } = settings;
  const urls: readonly (readonly [Path, string])[] = [
    [['publicUrl'], publicUrl],
    [['search', 'url'], search.url],
    [['rerank', 'url'], rerank.url],
    [['auth', 'oidc', 'issuer'], auth.oidc.issuer],
    [['alerts', 'url'], alerts.url],
    [['blobs', 's3', 'endpoint'], blobs.s3.endpoint],
    [['otel', 'endpoint'], otel.endpoint],
    ...mcp.whitelist.map(({ url }, at) => [['mcp', 'whitelist', at, 'url'], url] as const),
  ];
  for (const [path, url] of urls) yield* wrong(path, url === '' ? undefined : wrongAddress(url));
  for (const [at, origin] of outbound.allow.entries()) yield* wrong(['outbound', 'allow', at], wrongOrigin(origin));
  for (const [at, origin] of cors.origins.entries()) yield* wrong(['cors', 'origins', at], origin === '*' ? undefined : wrongOrigin(origin));
  for (const [at, network] of trustedProxies.entries())
    if (!isNetwork(network)) yield { path: ['trustedProxies', at], text: 'must be an address, or a network such as 10.0.0.0/8.' };
  if (alerts.url !== '' && alerts.secret === '') yield { path: ['alerts', 'secret'], text: 'is needed: alerts are signed with it.' };
  yield* bucket(blobs.s3);
  const proxy = outbound.proxy === '' ? undefined : URL.parse(outbound.proxy);
  if (proxy === null || (proxy && !/^https?:$/.test(proxy.protocol)))
    yield { path: ['outbound', 'proxy'], text: 'must be an address such as http://proxy:3128.' };
  if (outbound.caFile !== '') yield* unreadable(['outbound', 'caFile'], outbound.caFile);
  if (databaseUrl !== undefined && !/^postgres(ql)?:\/\/./.test(databaseUrl))
    yield { path: ['databaseUrl'], text: 'must be an address such as postgres://user@host/database.' };
}

/** A bucket that is half named would leave the files in the data folder, or fail at each upload. */
function* bucket({ region: _, ...s3 }: Settings['blobs']['s3']): Iterable<Trouble> {
  if (Object.values(s3).every((value) => value === '')) return;
  const missing = (['endpoint', 'bucket', 'accessKeyId', 'secretAccessKey'] as const).filter((member) => s3[member] === '');
  if (missing.length > 0) yield { path: ['blobs', 's3'], name: true, silent: true, text: `also needs ${missing.join(', ')}.` };
}

function* wrong(path: Path, text: string | undefined): Iterable<Trouble> {
  if (text !== undefined) yield { path, text, alone: true };
}

function* unreadable(path: Path, file: string): Iterable<Trouble> {
  try {
    certificatesIn(file);
  } catch (error) {
    yield { path, text: `${(error as Error).message}.` };
  }
}

function isNetwork(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  return length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= (version === 4 ? 32 : 128));
}

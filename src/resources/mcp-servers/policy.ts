import { Fault, invalid } from '#core/fault';
import { isInner } from '#kit/net/public-addresses';
import type { Program } from '#kit/mcp/child';
import type { McpDefinition } from '#kit/mcp/definitions';

/** What the operator allows: the settings `mcp`. */
export interface McpPolicy {
  readonly mode: 'open' | 'whitelist';
  readonly approval: Approval;
  readonly whitelist: readonly (OperatorEntry & { readonly url: string })[];
  readonly stdio: readonly (OperatorEntry & Program)[];
  /** Origins that may be private or without TLS: the setting `outbound.allow`. */
  readonly allowed: readonly string[];
}

interface OperatorEntry {
  readonly name: string;
  /** The only tools that may be called. */
  readonly tools?: readonly string[] | undefined;
  readonly approval?: Approval | undefined;
}

/**
 * The one judgement of addresses, when they are saved, each time before they are connected to, and before a provider is asked to connect to them. In whitelist mode scheme, host, port and path must be exactly those of an entry.
 *
 * @throws Fault `invalid`, `forbidden`
 */
export function permittedUrl(address: string, { mode, whitelist, allowed }: Pick<McpPolicy, 'mode' | 'whitelist' | 'allowed'>, field = 'url'): URL {
  const url = address.length > 2048 ? null : URL.parse(address);
  if (!url || !/^https?:$/.test(url.protocol)) throw invalid(field, 'must be an https address of at most 2048 characters');
  if (url.username || url.password || url.hash) throw invalid(field, 'must have no user name, password or fragment');
  const isListed = whitelist.some((entry) => isSame(url, entry.url));
  if (mode === 'whitelist' && !isListed) throw notListed(field);
  const isAllowed = allowed.some((origin) => URL.parse(origin)?.origin === url.origin);
  if (((url.protocol === 'http:' && !isListed) || isInner(url.hostname)) && !isAllowed)
    throw invalid(field, 'must be a public https address, or one of an origin that the settings of the server list under outbound.allow');
  return url;
}

export const notListed = (field: string): Fault =>
  new Fault('forbidden', `${field} must be one of the addresses of /server/list-mcp-whitelisted-servers: other MCP servers are not allowed here.`, { field });

export function entryOf(address: string, { whitelist }: Pick<McpPolicy, 'whitelist'>): McpPolicy['whitelist'][number] | undefined {
  const url = URL.parse(address);
  return url ? whitelist.find((entry) => isSame(url, entry.url)) : undefined;
}

function isSame(url: URL, address: string): boolean {
  const listed = URL.parse(address);
  return listed !== null && listed.origin === url.origin && listed.pathname === url.pathname;
}

/** Which calls a user is asked for: none, the first of each definition of a tool that may change things, or every one. */
export type Approval = 'never' | 'first' | 'always';

const strictness: readonly Approval[] = ['never', 'first', 'always'];

/** Of several, the strictest holds. */
export function strictest(...all: readonly (Approval | null | undefined)[]): Approval {
  return strictness[Math.max(0, ...all.map((one) => (one ? strictness.indexOf(one) : 0)))]!;
}

/** @param approved the digest that the user has approved; undefined: none */
export function needsApproval(approval: Approval, { isReadOnly, digest }: McpDefinition, approved: string | undefined): boolean {
  return approval === 'always' || (approval === 'first' && !isReadOnly && approved !== digest);
}

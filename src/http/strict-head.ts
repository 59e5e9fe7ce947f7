import type { IncomingMessage } from 'node:http';

/**
 * What is wrong with the head of a request that the runtime's parser lets through, as a sentence: a version that is not 1.0 or 1.1, an address that is not a
 * path, two Host headers, or one that is no host (RFC 9112, 3.2). Two servers could read such a request differently.
 */
export function oddHead({ url = '', httpVersionMajor, rawHeaders }: IncomingMessage): string | undefined {
  if (httpVersionMajor !== 1) return 'The version of HTTP must be 1.0 or 1.1.';
  if (!url.startsWith('/') || url.includes('#')) return 'The address must be a path that begins with / and has no # in it.';
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length !== 4 || name.toLowerCase() !== 'host') continue;
    hosts++;
    const host = rawHeaders[at + 1]!;
    if (host === lastHost) continue;
    if (!isHost.test(host)) return 'The header Host must be the name or address of a host, perhaps with a port.';
    lastHost = host;
  }
  return hosts > 1 ? 'The header Host must be given once.' : undefined;
}

/** A name, or an address in brackets (RFC 3986, 3.2.2), perhaps with a port. A client may send it empty. */
const isHost = /^(?:\[[\dA-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d{0,5})?$/;

/** The last good one: nearly always that of the next request too. */
let lastHost = '';

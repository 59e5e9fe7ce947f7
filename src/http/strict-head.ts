import type { IncomingMessage } from 'node:http';

/**
 * What is wrong with the head of a request that the runtime's parser lets through, as a sentence: a version that is not 1.0 or 1.1, an address that is not a
 * path, a header twice that says where or who, no Host, or one that is no host (RFC 9112, 3.2), a transfer coding besides `chunked` (6.1). Two servers could read such
 * a request differently.
 */
export function oddHead({ url = '', httpVersionMajor, httpVersionMinor, rawHeaders, headers }: IncomingMessage): string | undefined {
  if (httpVersionMajor !== 1) return 'The version of HTTP must be 1.0 or 1.1.';
  if (!url.startsWith('/') || url.includes('#')) return 'The address must be a path that begins with / and has no # in it.';
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && (httpVersionMinor === 0 || coding.toLowerCase() !== 'chunked'))
    return 'The header Transfer-Encoding must be chunked, in HTTP/1.1.';
  const times = { host: 0, authorization: 0 };
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const { length } = rawHeaders[at]!;
    if (length !== hostLength && length !== authorizationLength) continue;
    const name = rawHeaders[at]!.toLowerCase();
    if (name === 'authorization') times.authorization++;
    if (name !== 'host') continue;
    times.host++;
    const host = rawHeaders[at + 1]!;
    if (host === lastHost) continue;
    const found = isHost.exec(host);
    if (!found || Number(found[1] ?? 0) > mostPort || host.length > longestHost)
      return 'The header Host must be the name or address of a host, perhaps with a port.';
    lastHost = host;
  }
  if (times.host > 1 || (times.host === 0 && httpVersionMinor > 0)) return 'The header Host must be given once.';
  return times.authorization > 1 ? 'The header Authorization must be given once.' : undefined;
}

const hostLength = 4;
const authorizationLength = 13;
const mostPort = 65_535;
/** Of a name, 253, a colon and a port. */
const longestHost = 259;

/** A name, or an address in brackets (RFC 3986, 3.2.2), perhaps with a port. A client may send it empty. */
const isHost = /^(?:\[[\dA-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::(\d{0,5}))?$/;

/** The last good one: nearly always that of the next request too. */
let lastHost = '';

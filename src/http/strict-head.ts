import type { IncomingMessage } from 'node:http';

/**
 * What is wrong with the head of a request that the runtime's parser lets through, as a sentence: a version that is not 1.0 or 1.1, an address that is not a
 * path, two Host headers (RFC 9112, 3.2). Two servers could read such a request differently.
 */
export function oddHead({ url = '', httpVersionMajor, rawHeaders }: IncomingMessage): string | undefined {
  if (httpVersionMajor !== 1) return 'The version of HTTP must be 1.0 or 1.1.';
  if (!url.startsWith('/') || url.includes('#')) return 'The address must be a path that begins with / and has no # in it.';
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  return hosts > 1 ? 'The header Host must be given once.' : undefined;
}

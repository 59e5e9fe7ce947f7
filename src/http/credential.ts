import { badKey, Fault } from '#core/fault';
import type { Exchange } from './exchange.ts';

/**
 * The key or token a request carries: the first of `x-access-tokens`, `Authorization: Bearer`, `x-api-key`, `x-goog-api-key` and, where switched on, `?key=`
 * that is present decides, and a bad one is not saved by a later good one.
 * @returns nothing where there is none of them
 * @throws Fault `unauthenticated`
 */
export function credentialOf(exchange: Exchange, keyInQuery: boolean): string | undefined {
  const token = exchange.header('x-access-tokens');
  if (token !== undefined) return proper(token);
  const authorization = exchange.header('authorization');
  if (authorization !== undefined) {
    const bearer = /^bearer +(\S+) *$/i.exec(authorization)?.[1];
    if (!bearer) throw new Fault('unauthenticated', 'The Authorization header must be of the form: Bearer KEY.');
    return proper(bearer);
  }
  const key = exchange.header('x-api-key') ?? exchange.header('x-goog-api-key') ?? (keyInQuery ? queryKey(exchange.url) : undefined);
  return key === undefined ? undefined : proper(key);
}

/** Of a request without a credential. */
export function noCredential(exchange: Exchange): Fault {
  const message =
    queryKey(exchange.url) === undefined
      ? 'No API key was given: send it as Authorization: Bearer KEY, or in the header x-access-tokens, x-api-key or x-goog-api-key.'
      : 'A key in the address (?key=) is not accepted here: send it in the header x-goog-api-key or as Authorization: Bearer KEY.';
  return new Fault('unauthenticated', message);
}

function proper(credential: string): string {
  if (credential.length === 0 || credential.length > 8192) throw badKey();
  return credential;
}

function queryKey(url: string): string | undefined {
  const at = url.indexOf('?');
  return at < 0 ? undefined : (new URLSearchParams(url.slice(at)).get('key') ?? undefined);
}

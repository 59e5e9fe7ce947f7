import { Fault } from '#core/fault';
import type { Exchange } from './exchange.ts';

/** 30 days: no session lasts longer. */
const mostSeconds = 2_592_000;

/** Over https the prefix has browsers take it from this host alone, for all its paths. https://httpwg.org/http-extensions/draft-ietf-httpbis-rfc6265bis.html#name-the-__host-prefix */
const nameOf = (secure: boolean): string => (secure ? '__Host-dragoman' : 'dragoman');

/** `Set-Cookie` with the text of a session; with an empty one it goes. */
export function sessionCookie(text: string, secure: boolean): string {
  return `${nameOf(secure)}=${text}; Path=/; Max-Age=${text === '' ? 0 : mostSeconds}; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`;
}

/**
 * The text of the session that a request carries. Another host of the same domain may plant a second cookie of that name where there is no https: then neither
 * counts.
 * @throws Fault `unauthenticated` where there are several
 */
export function sessionTextIn(exchange: Exchange): string | undefined {
  const header = exchange.header('cookie');
  if (header === undefined) return undefined;
  const start = `${nameOf(exchange.secure)}=`;
  const texts = new Set(
    header.split(';').flatMap((one) => {
      const pair = one.trim();
      return pair.startsWith(start) ? [pair.slice(start.length)] : [];
    }),
  );
  if (texts.size > 1) throw new Fault('unauthenticated', 'There are several cookies of this server: delete them, and sign in again.');
  const [text] = texts;
  return text;
}

const bodyTypes = ['application/json', 'application/octet-stream'];

/** What changes something with a cookie comes from a page of this server, with a body that no form of a page elsewhere can have. @throws Fault `forbidden` */
export function requireOwnPage(exchange: Exchange): void {
  if (exchange.isFromOwnPage !== true)
    throw new Fault('forbidden', 'With the cookie of a session, changes must come from a page of this server. Behind a proxy, set publicUrl.');
  const type = exchange.header('content-type')?.split(';', 1)[0]!.trim().toLowerCase() ?? '';
  if (exchange.announcesBody && !bodyTypes.includes(type))
    throw new Fault('forbidden', `With the cookie of a session, the type of the body must be ${bodyTypes.join(' or ')}.`);
}

/** A page elsewhere signs nobody in or up: people would work on in somebody else's account. @throws Fault `forbidden` */
export function refuseForeignPage(exchange: Pick<Exchange, 'isFromOwnPage'>): void {
  if (exchange.isFromOwnPage === false) throw new Fault('forbidden', 'People sign in on a page of this server alone. Behind a proxy, set publicUrl.');
}

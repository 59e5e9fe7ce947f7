import { Fault, faultOf, reasonOf } from '#core/fault';
import { isObject } from '#core/json';
import type { Exchange } from '#http/exchange';
import { Accepted, Bytes, eventText, isUpdates, Updates, WithSession, type NounRoute } from '#http/noun-route';
import { choicesIn } from './choices.ts';
import { refuseForeignPage, sessionCookie } from '#http/session-cookie';
import type { Route } from '#http/route';

/** A noun's route as plain REST: JSON without an envelope, and updates as server-sent events. */
export function plainRoute(route: NounRoute): Route {
  return {
    ...route,
    async answer({ exchange, caller, json, files }) {
      if (route.isForOwnPages) refuseForeignPage(exchange);
      if (!route.input && !route.takes) refuseMembers(json);
      const by = { userId: caller.userId, keyId: caller.keyId, requestId: exchange.id, address: exchange.address };
      const { params, query, signal } = exchange;
      if (!route.query) refuseQuery(route, query);
      const choices = route.spends ? { choices: choicesIn((name) => exchange.header(name)) } : {};
      const answer = await route.answer({ caller, by, params, query, json, files, signal, ...choices, ...lastEventOf(exchange) });
      if (answer instanceof Accepted) return exchange.sendJson(202, answer.value);
      if (answer instanceof Bytes) return sendBytes(exchange, answer);
      if (answer instanceof WithSession) return exchange.sendJson(route.makes ? 201 : 200, answer.value, cookieOf(answer, exchange));
      if (answer instanceof Updates) return sendPieces(exchange, eventsOf(answer), events, (fault) => eventText(answer.failed(fault)));
      return isUpdates(answer) ? sendPieces(exchange, framed(answer), events) : answer;
    },
  };
}

/** Refuses a body with members where none is listed. @throws Fault `invalid` */
function refuseMembers(json: unknown): void {
  if (json === undefined) return;
  if (!isObject(json)) throw new Fault('invalid', 'The body must be an object.');
  const [member] = Object.keys(json);
  if (member !== undefined) throw new Fault('invalid', `${member} is not known: this address takes no members.`, { field: member });
}

/** Refuses words behind the `?` where none is listed. What the public addresses below `/.well-known` are asked with is for others to say. @throws Fault `invalid` */
function refuseQuery({ path }: NounRoute, query: URLSearchParams): void {
  if (!path.startsWith('/server/')) return;
  for (const name of query.keys())
    if (name !== 'key')
      throw new Fault('invalid', `${name.slice(0, 100)} is not known: this address takes no query parameters.`, { field: name.slice(0, 100) });
}

const events = ['content-type', 'text/event-stream; charset=utf-8', 'x-accel-buffering', 'no'];

const cookieOf = ({ text }: WithSession, { secure }: Exchange) => ['set-cookie', sessionCookie(text, secure)];

/** The last update that a client has which comes back. */
export function lastEventOf(exchange: Exchange): { readonly lastEventId?: string } {
  const lastEventId = exchange.header('last-event-id');
  return lastEventId === undefined ? {} : { lastEventId };
}

async function* eventsOf({ updates }: Updates): AsyncGenerator<string> {
  for await (const update of updates) yield eventText(update);
}

async function* framed(updates: AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const update of updates) yield `data: ${JSON.stringify(update)}\n\n`;
}

/** Sends bytes, whole or piece by piece as the client reads them. */
function sendBytes(exchange: Exchange, { contentType, content, headers }: Bytes): void | Promise<void> {
  const head = ['content-type', contentType, ...headers];
  if (typeof content === 'string' || content instanceof Uint8Array) return exchange.send(200, head, content);
  return sendPieces(exchange, content, head);
}

/**
 * Sends the pieces as the client reads them. The head goes out with the first piece: until then a failure is a real 4xx or 5xx; behind it the connection is cut,
 * or the answer ends with the words that there are for it.
 */
export async function sendPieces(
  exchange: Exchange,
  pieces: AsyncIterable<string | Uint8Array>,
  headers: readonly string[],
  lastWords?: (fault: Fault) => string,
): Promise<void> {
  let isOpen = false;
  const open = () => {
    if (!isOpen) exchange.open(200, headers);
    isOpen = true;
  };
  try {
    for await (const piece of pieces) {
      exchange.signal.throwIfAborted();
      open();
      if (!exchange.write(piece)) await exchange.drained();
    }
  } catch (error) {
    if (!lastWords || !exchange.opened || exchange.left) throw error;
    exchange.write(lastWords(faultOf(reasonOf(error, exchange.signal))));
    exchange.end();
    throw error;
  }
  open();
  exchange.end();
}

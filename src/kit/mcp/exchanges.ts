import type * as Sdk from '@modelcontextprotocol/client';
import type { GuardedStreams } from '../net/guarded-stream.ts';
import { isRecord } from './definitions.ts';
import { withMessageLimit, type MessageLimits } from './message-limit.ts';
import { mostResultBytes } from './result.ts';

/** Longest time of a call (milliseconds), and longest time that it waits for its user besides. */
export const [callMilliseconds, patienceMilliseconds] = [60_000, 600_000];
/** Longest exchange of a call that may wait. */
const patientSeconds = (callMilliseconds + patienceMilliseconds) / 1000 + 5;
/** Of a message, with what is around a result. */
const messageLimits = { bytes: mostResultBytes + 131_072, values: 250_000 };
export const notingLimits = (noted: Noted): MessageLimits => ({ ...messageLimits, exceeded: () => void (noted.isTooLarge = true) });
/** Bytes of all messages of an answer, and of those of a stream without an end. */
const [mostAnswer, mostStream] = [4_194_304, 67_108_864];

/** The access tokens of a user at a server: sent to its origin alone. */
export interface Bearer {
  /** Undefined: the user has not signed in. */
  token(): Promise<string | undefined>;
  /** Another token in place of one that the server refused. Undefined: there is none. */
  renew(refused: string): Promise<string | undefined>;
  /** The server refused a new token too. */
  refused(token: string): Promise<void>;
  /** The server wants these rights besides. */
  lacks(scope: string): Promise<void>;
}

/** What is known of the exchanges of a connection. */
export interface Noted {
  /** Called when the server has answered whether it tells anything by itself. */
  listening?: () => void;
  /** Called when the stream has ended in which all requests are answered. */
  ended?: () => void;
  /** The server wants more rights than those of the token. */
  lacksScope?: boolean;
  /** What the server answered last, when that was no success. */
  status?: number | undefined;
  /** A message had more bytes than are read. */
  isTooLarge?: boolean;
  /** Open streams for the server's own notifications, those that are being opened among them. */
  listeners: number;
  /** Ids of requests that have no answer yet. */
  readonly pending: Set<unknown>;
  /** Ends the exchange of a request, by its id. */
  readonly open: Map<unknown, AbortController>;
  /** Hands a message to the client as if the server had sent it. */
  receive?: (message: object) => void;
}

/** What a request fails with when the stream of its answer ended before the answer, for which the client would wait. */
export const streamEnded = 'The stream ended before the answer.';

export type Fetcher = (url: string | URL, init?: RequestInit) => Promise<Response>;

export interface ExchangesDeps {
  readonly streams: GuardedStreams;
  /** The user, for the limits of concurrent requests. */
  readonly owner: string;
  readonly closing: AbortSignal;
  readonly noted: Noted;
  /** A call may wait for its user, who is asked. */
  readonly isPatient: boolean;
  /** Each request is answered by the response to it; else in a stream that was opened before. */
  readonly answersEach: boolean;
}

/** Until the client has read an answer whose bytes have come. */
const readMilliseconds = 1000;

/** The exchanges of a connection, through the guarded streams. */
export function fetcher({ streams, owner, closing, noted, isPatient, answersEach }: ExchangesDeps): Fetcher {
  const unanswered = (id: unknown) => noted.pending.delete(id) && noted.receive?.({ jsonrpc: '2.0', id, error: { code: -32_000, message: streamEnded } });
  return async (url, init = {}) => {
    const { method = 'GET', body, signal } = init;
    const text = typeof body === 'string' ? body : '';
    const isLong = method === 'GET' || text.includes('"subscriptions/listen"');
    const headers = Object.fromEntries(new Headers(init.headers));
    const message = messageIn(text);
    const id = idOf(message);
    endGivenUp(message, noted);
    const over = new AbortController();
    if (id !== undefined) noted.open.set(id, over);
    const asked = {
      url,
      owner,
      method,
      headers,
      ...(body ? { body: text } : {}),
      signal: AbortSignal.any([...(signal ? [signal] : []), closing, over.signal]),
    };
    const patience = isPatient && text.includes('"tools/call"') ? { seconds: patientSeconds } : {};
    const isListening = answersEach && method === 'GET';
    if (isListening) noted.listeners++;
    const heard = () => {
      if (isListening) noted.listeners--;
      if (noted.open.get(id) === over) noted.open.delete(id);
    };
    const response = await streams.open({ ...asked, ...patience, maxBytes: isLong ? mostStream : mostAnswer, isLong }).catch((error: unknown) => {
      heard();
      throw error;
    });
    if (method === 'GET') noted.listening?.();
    // 405 to GET says no more than that the server tells nothing by itself
    if (response.status >= 400 && !(method === 'GET' && response.status === 405)) noted.status = response.status;
    if (id !== undefined) noted.pending.add(id);
    return withMessageLimit(response, notingLimits(noted), (isStream) => {
      heard();
      if (!answersEach && method === 'GET') noted.ended?.();
      if (id === undefined) return;
      if (isStream) setImmediate(unanswered, id);
      // some servers answer in the stream of their notifications
      else if (answersEach && response.ok && noted.listeners === 0) setTimeout(unanswered, readMilliseconds, id).unref();
    });
  };
}

interface SignedIn {
  readonly url: string;
  readonly bearer: Bearer;
  readonly noted: Noted;
}

/** Sends the token of the user along. A request that was refused for its token is sent again with another one: the server has not looked at it. */
export function signedIn(sdk: typeof Sdk, asker: Fetcher, { url: server, bearer, noted }: SignedIn): Fetcher {
  const { origin } = new URL(server);
  return async (url, init = {}) => {
    if (new URL(url).origin !== origin) return asker(url, init);
    const sent = (token: string | undefined) => {
      const headers = new Headers(init.headers);
      if (token !== undefined) headers.set('authorization', `Bearer ${token}`);
      return asker(url, { ...init, headers });
    };
    noted.lacksScope = false;
    const token = await bearer.token();
    const response = await sent(token);
    if (response.status === 403) await noteScope(sdk, response, { bearer, noted });
    if (response.status !== 401 || token === undefined) return response;
    const other = await bearer.renew(token);
    if (other === undefined) return response;
    await response.body?.cancel();
    noted.status = undefined;
    const again = await sent(other);
    if (again.status === 401) await bearer.refused(other);
    return again;
  };
}

async function noteScope(sdk: typeof Sdk, response: Response, { bearer, noted }: Pick<SignedIn, 'bearer' | 'noted'>): Promise<void> {
  const { error, scope } = sdk.extractWWWAuthenticateParams(response);
  if (error !== 'insufficient_scope') return;
  noted.lacksScope = true;
  if (scope !== undefined) await bearer.lacks(scope.slice(0, 2048));
}

type Message = Readonly<Record<string, unknown>>;

function messageIn(text: string): Message {
  const message: unknown = text === '' ? undefined : JSON.parse(text); // the client wrote it
  return isRecord(message) ? message : {};
}

/** The id of a request; undefined: a notification. */
const idOf = (message: Message): unknown => ('method' in message ? message['id'] : undefined);

/** Ends the exchange of a request that the client gives up: a server of 2025 may not heed the notification, or have no session to look for the request in. */
function endGivenUp({ method, params }: Message, { open, pending }: Noted): void {
  if (method !== 'notifications/cancelled' || !isRecord(params)) return;
  pending.delete(params['requestId']);
  open.get(params['requestId'])?.abort(new Error('The request was given up.'));
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Fault, faultOf, reasonOf, wrongMethod } from '#core/fault';
import { hopHeader, requireForward } from '#core/hops';
import { isNarrowed } from '#core/narrowed';
import type { Caller } from '#core/context';
import { ClientLeft } from '#kit/async/client-left';
import type { Clock } from '#kit/async/clock';
import { afterPoll } from '#kit/async/turn-end';
import { whenKnown } from '#kit/async/when-known';
import { OpenList } from '#kit/async/open-list';
import { largeBytes, readLargeJson } from '#kit/json/large';
import { mistakeIn } from '#kit/json/mistake';
import { BadJson, readJson, type JsonText, type Parsing } from '#kit/json/scan';
import type { ByteBudget } from '#kit/memory/byte-budget';
import { readBody, type BodyLimits } from './body.ts';
import { credentialOf, noCredential } from './credential.ts';
import { Exchange } from './exchange.ts';
import { FairQueue } from './fair-queue.ts';
import { beginsOn, isLastOn } from './pipelining.ts';
import { readForm } from './form.ts';
import { covered, type Asked, type Face, type Once, type Route } from './route.ts';
import { requireOwnPage, sessionTextIn } from './session-cookie.ts';
import { oddHead } from './strict-head.ts';
import { surroundings, type Surroundings, type SurroundingSettings } from './surroundings.ts';
import type { Uploads } from './uploads.ts';

export interface RequestDeps {
  /** One of them has the root ``, and answers for every address that is nobody's. */
  readonly faces: readonly Face[];
  /** The caller who has this credential, on this route. @throws Fault `unauthenticated` */
  readonly identify: (credential: string, route: Route, exchange: Exchange) => Caller | Promise<Caller>;
  /** The caller whose session this is; absent: there are none. @throws Fault `unauthenticated` */
  readonly identifySession?: (text: string, connection: object) => Caller | Promise<Caller>;
  readonly limits: () => BodyLimits;
  readonly keyInQuery: () => boolean;
  /** What this gateway is called in the hops of requests; absent: none of them is its own. */
  readonly hop?: string;
  readonly clock: Clock;
  readonly once: Once;
  /** The same object until it changes. */
  readonly surroundings: () => SurroundingSettings;
  /** Where files of forms are held. */
  readonly uploads: Uploads;
  readonly budget: ByteBudget;
  /** Called once for each exchange, when its answer is sent or its client gone. */
  readonly done: (done: Done) => void;
}

export interface Done {
  readonly exchange: Exchange;
  readonly face: string;
  readonly route: Route | undefined;
  readonly caller: Caller | undefined;
  readonly fault: Fault | undefined;
}

/** What is at the address of a request. */
export interface Target {
  /** Absent: nobody has the address. */
  readonly face?: Face;
  /** Absent: the address has no such method. */
  readonly route?: Route;
  /** The methods of the address, where the request has another one. */
  readonly allow?: string;
}

/** A request and its response, without what the server library made of them: that would stay in memory as long as the answer takes. */
interface Arrived {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The parts of the address that its route names. */
  readonly params: Readonly<Record<string, string>>;
}

/** What is read of a body, checked, put into other words and written again: as much as takes 30 ms a step. */
const jsonLimits = { maxDepth: 64, maxTokens: 320_000, weights: { string: 4, list: 6, object: 12, key: 4 } };
const exactly = { ...jsonLimits, numbersAsWritten: true };
const parsingFor = ({ numbersAsWritten }: Route) => (numbersAsWritten ? exactly : jsonLimits);

/**
 * The requests being answered. The checks of a request run in this order: path, method, credential, size, content type, JSON, scope; the route's own checks
 * (fields, model, quota) follow.
 */
export class Requests {
  readonly open = new OpenList<Exchange>();
  /** The server is stopping: every answer closes its connection. */
  isDraining = false;
  /** One function for all requests: each would keep its own as long as its answer takes. */
  readonly #draining = () => this.isDraining;
  ended = () => {};
  readonly #deps: RequestDeps;
  readonly #isExtra: (socket: Socket) => boolean;
  readonly #around: Surroundings;
  readonly #queue: FairQueue;

  /** @param isExtra is the connection beyond what the process may have open? */
  constructor(deps: RequestDeps, isExtra: (socket: Socket) => boolean) {
    this.#deps = deps;
    this.#around = surroundings(deps.surroundings);
    this.#isExtra = isExtra;
    this.#queue = new FairQueue(deps);
  }

  get waiting(): number {
    return this.#queue.waiting;
  }

  /** A connection has been accepted. */
  accepted(): void {
    this.#queue.accepted();
  }

  /** Answers a request together with all others that arrive in this turn of the event loop. */
  answer(target: Target, { request, response, params }: Arrived): void {
    if (!beginsOn(request.socket)) return;
    const deps = this.#deps;
    const isExtra = this.#isExtra(request.socket);
    const exchange = new Exchange(request, response, params, deps.clock, {
      draining: isExtra ? always : this.#draining,
      stallSeconds: deps.limits().bodyIdleSeconds,
      budget: deps.budget,
      around: this.#around,
    });
    this.open.add(exchange);
    const odd = oddHead(request);
    if (odd !== undefined) {
      exchange.isLast = true;
      isLastOn(request.socket);
    }
    afterPoll(() => void this.#answer(target, exchange, { request, odd }));
  }

  async #answer(target: Target, exchange: Exchange, { request, odd }: { readonly request: IncomingMessage; readonly odd: string | undefined }): Promise<void> {
    const deps = this.#deps;
    const { route, allow } = target;
    const face = (!route && sharingFace(deps.faces, request)) || (target.face ?? faceOf(deps.faces, request.url ?? ''));
    let caller: Caller | undefined;
    let fault: Fault | undefined;
    try {
      exchange.signal.throwIfAborted();
      if (odd !== undefined) throw new Fault('invalid', odd);
      const hops = request.headers[hopHeader];
      if (hops !== undefined) requireForward(String(hops), deps.hop);
      const preflight = allow === undefined ? undefined : this.#around.preflight(request, allow);
      if (preflight) return exchange.sendNothing(preflight);
      if (!route || exchange.params['*'] === '') throw allow === undefined ? notFound() : wrongMethod(allow);
      const missing = route.missing?.(exchange.params);
      if (missing !== undefined) throw new Fault('not-found', missing);
      if (this.#isExtra(request.socket) && route.scope !== 'public') throw new Fault('overloaded', 'Too many connections are open.', { retryAfter: 1 });
      if (route.scope !== 'public') {
        const found = this.#callerOf(route, exchange);
        exchange.caller = caller = found instanceof Promise ? await found : found;
      }
      if (route.owner === 'admin' && caller?.role !== 'admin') requireReading(route, caller);
      const turn = caller && route.method !== 'GET' ? this.#queue.enter(exchange) : undefined;
      if (turn) {
        await turn;
        exchange.signal.throwIfAborted();
      }
      const known = caller ?? nobody;
      if (route.takes) await this.#answerForm(route, exchange, known);
      else await whenKnown(this.#read(route, exchange, known), (asked) => this.#run(route, asked)); // kept here, it would live as long as the answer
    } catch (thrown) {
      const error = reasonOf(thrown, exchange.signal);
      fault = error instanceof ClientLeft ? undefined : faultOf(error);
      if (fault && !exchange.left) refuse(face, exchange, fault);
    } finally {
      this.open.delete(exchange);
      exchange.letGo();
      deps.done({ exchange, face: face.name, route, caller, fault });
      this.ended();
    }
  }

  #callerOf(route: Route, exchange: Exchange): Caller | Promise<Caller> {
    const { identify, keyInQuery } = this.#deps;
    const credential = credentialOf(exchange, keyInQuery());
    return credential === undefined ? this.#signedIn(exchange) : identify(credential, route, exchange);
  }

  /** Who comes with the cookie of a session. */
  async #signedIn(exchange: Exchange): Promise<Caller> {
    const { identifySession } = this.#deps;
    const text = sessionTextIn(exchange);
    if (text === undefined || !identifySession) throw noCredential(exchange);
    const caller = await identifySession(text, exchange.connection);
    if (exchange.method !== 'GET' && exchange.method !== 'HEAD') requireOwnPage(exchange);
    return caller;
  }

  #read(route: Route, exchange: Exchange, caller: Caller): Asked | Promise<Asked> {
    const takesBody = route.method !== 'GET' && route.method !== 'DELETE';
    return whenKnown(takesBody ? readBody(exchange, this.#limitsOf(route), this.#deps.clock) : new Uint8Array(0), (bytes) => {
      exchange.signal.throwIfAborted();
      exchange.bodyBytes = bytes.length;
      exchange.add(bytes.length); // what is made of them holds about as much again
      const text = bytes.length > 0 ? parsed(bytes, parsingFor(route)) : { value: undefined, places: [] };
      return whenKnown(text, ({ value: json, places }) => ({ exchange, caller, json, bytes, places, files: noFiles }));
    });
  }

  /** Bodies are small where no credential is needed: anybody may send them. */
  #limitsOf({ scope }: Route): ReturnType<RequestDeps['limits']> {
    const limits = this.#deps.limits();
    return scope === 'public' && limits.bodyBytes > mostPublicBytes ? { ...limits, bodyBytes: mostPublicBytes } : limits;
  }

  /** Runs a route that takes forms. */
  async #answerForm(route: Route, exchange: Exchange, caller: Caller): Promise<void> {
    const form = await readForm(exchange, route, { ...this.#deps, limits: () => this.#limitsOf(route), parse: (bytes) => parsed(bytes, parsingFor(route)) });
    try {
      await this.#run(route, { exchange, caller, places: [], ...form });
    } finally {
      await form.remove();
    }
  }

  #run(route: Route, asked: Asked): Promise<void> {
    const { exchange, caller } = asked;
    const { once } = this.#deps;
    if (!mayEnter(route, caller)) throw new Fault('forbidden', lacks(route), { reason: 'scope' });
    const key = route.spends ? exchange.header('idempotency-key') : undefined;
    return key === undefined ? answered(asked, route) : once(asked, key, () => answered(asked, route));
  }
}

const noFiles: readonly never[] = [];
const always = () => true;
const mostPublicBytes = 1_048_576;

/** Not async: an async function would keep `asked`, and the JSON in it, until the answer ends. */
function answered(asked: Asked, route: Route): Promise<void> {
  const { exchange } = asked;
  return Promise.try(route.answer, asked).then((value) => {
    if (!exchange.opened && !exchange.left) exchange.sendJson(route.makes ? 201 : 200, value ?? {});
  });
}

const notFound = () =>
  new Fault(
    'not-found',
    'There is nothing at this address. All addresses are listed at /docs; the base address for OpenAI clients is /v1 (also /server/chatcompat/v1), for Anthropic and Google clients the server without a path.',
  );

function parsed(bytes: Uint8Array, parsing: Parsing): JsonText | Promise<JsonText> {
  try {
    return bytes.length > largeBytes ? readLargeJson(bytes, parsing).catch((error: unknown) => refusedJson(error, bytes)) : readJson(bytes, parsing);
  } catch (error) {
    return refusedJson(error, bytes);
  }
}

function refusedJson(error: unknown, bytes: Uint8Array): never {
  if (!(error instanceof BadJson)) throw error;
  const { member, isTooLong } = error;
  const mistake = mistakeIn(bytes);
  const message = mistake ? `The text is not valid JSON: ${mistake.expected} was expected at line ${mistake.line}, column ${mistake.column}.` : error.message;
  const why = mistake ? { reason: 'not-json' as const } : {};
  const code = isTooLong && !mistake ? 'too-large' : 'invalid';
  throw member === undefined ? new Fault(code, message, why) : new Fault(code, `${member.slice(0, 100)}: ${message}`, { field: member.slice(0, 100), ...why });
}

function mayEnter(route: Route, caller: Caller): boolean {
  if (route.givesRights && isNarrowed(caller)) return false;
  const { scope } = route;
  if (scope === 'unscoped') return caller.scopes === undefined;
  if (scope === 'public' || scope === 'any' || caller.scopes === undefined || caller.scopes.includes(scope)) return true;
  return caller.scopes.some((one) => covered[one]?.includes(scope));
}

/** Auditors see what administrators see, and change nothing; to everybody else it is not there. */
function requireReading({ method }: Route, caller: Caller | undefined): void {
  if (caller?.role !== 'auditor') throw notFound();
  if (method !== 'GET') throw new Fault('forbidden', 'An auditor sees this and changes nothing.');
}

function lacks({ scope, givesRights }: Route): string {
  if (givesRights) return 'This needs a key that is not narrowed: one without scopes, models, mcpTools, limits or an expiry.';
  return scope === 'unscoped' ? 'This needs a key without scopes.' : `This key lacks the scope ${scope}.`;
}

/** The face that is meant by a header of the request, where several share the root above its address. */
function sharingFace(faces: readonly Face[], { url = '', headers }: IncomingMessage): Face | undefined {
  const path = pathOf(url);
  return faces.find(({ shares }) => shares?.some(({ root, header }) => headers[header] !== undefined && isBelow(path, root)));
}

/** The face with the longest root above an unknown address. */
function faceOf(faces: readonly Face[], url: string): Face {
  const path = pathOf(url);
  const depth = (face: Face) => Math.max(...face.roots.map((root) => (isBelow(path, root) ? root.length : -1)));
  return faces.reduce((best, face) => (depth(face) > depth(best) ? face : best));
}

const pathOf = (url: string) => url.replace(/\?.*$/s, '');
const isBelow = (path: string, root: string) => root === '' || path === root || path.startsWith(`${root}/`);

function refuse(face: Face, exchange: Exchange, fault: Fault): void {
  if (exchange.opened) return exchange.destroy();
  const { retryAfter, allow, never } = fault.details;
  const status = face.refusalStatus?.(fault) ?? fault.status;
  exchange.sendJson(status, face.refusal(fault, exchange.id, exchange.url), [
    ...(status === 401 ? ['www-authenticate', 'Bearer realm="dragoman"'] : []), // RFC 9110 §15.5.2: never without a challenge
    ...(allow === undefined ? [] : ['allow', allow]),
    ...(fault.status === 429 || fault.status === 503 ? ['retry-after', String(Math.max(1, Math.ceil(retryAfter ?? 1)))] : []),
    ...(never || fault.code === 'quota-spent' || fault.code === 'unsupported' ? ['x-should-retry', 'false'] : []),
    ...exchange.refusalHeaders,
    ...(face.refusalHeaders?.(exchange.id) ?? []),
  ]);
}

/** The caller of a public address. */
const nobody: Caller = { userId: 0, email: '', role: 'user', plan: '', teamIds: [], keyId: 0, keyName: '', scopes: [] };

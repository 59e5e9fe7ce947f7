import { METHODS, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { Fault, faultOf, reasonOf } from '#core/fault';
import { isNarrowed } from '#core/narrowed';
import type { Caller } from '#core/context';
import type { Clock } from '#kit/async/clock';
import type { ByteBudget } from '#kit/memory/byte-budget';
import { OpenList } from '#kit/async/open-list';
import { requestId } from '#kit/crypto/ids';
import { BadJson, readJson, type JsonText } from '#kit/json/scan';
import { largeBytes, readLargeJson } from '#kit/json/large';
import { readBody, type BodyLimits } from './body.ts';
import { credentialOf } from './credential.ts';
import { boundConnections, roomFor } from './connection-limit.ts';
import { Exchange } from './exchange.ts';
import { ClientLeft } from '#kit/async/client-left';
import { oddHead } from './strict-head.ts';
import { beginsOn } from './pipelining.ts';
import type { Asked, Face, Once, Route } from './route.ts';

/** What the HTTP server needs from the rest. */
export interface HttpServerDeps {
  /** The last one has the root `/` and answers for every unknown address. */
  readonly faces: readonly Face[];
  /** Who has this credential on this route. @throws Fault `unauthenticated` */
  readonly identify: (credential: string, route: Route, exchange: Exchange) => Caller | Promise<Caller>;
  readonly limits: () => BodyLimits & { readonly headerSeconds: number; readonly maxConnections: number };
  readonly keyInQuery: () => boolean;
  readonly clock: Clock;
  readonly once: Once;
  /** The memory that requests may hold. */
  readonly budget: ByteBudget;
  /** Told once an exchange, when its answer is out or its client gone. `fault` where it was refused. */
  readonly done: (done: Done) => void;
}

/** An answered request. */
export interface Done {
  readonly exchange: Exchange;
  readonly face: string;
  readonly route: Route | undefined;
  readonly caller: Caller | undefined;
  readonly fault: Fault | undefined;
}

export interface Listening {
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  /** Requests being answered now. */
  readonly inFlight: () => number;
  /** Clients connected now. */
  readonly connections: () => number;
  /** Requests being answered now whose callers are known. */
  readonly ongoing: () => readonly Exchange[];
  /** Stops listening, lets what is in flight finish for so many seconds, then cuts the rest. */
  close(graceSeconds: number): Promise<void>;
}

/** What is read of a body, checked, put into other words and written again: as much as takes 30 ms a step. */
const jsonLimits = { maxDepth: 64, maxTokens: 320_000, weights: { string: 4, list: 6, object: 12 } };
const checkMilliseconds = 500;
/** How long work whose connection is gone may take to end, when the server stops. */
const unwindMilliseconds = 5000;

/**
 * Starts to listen: the one place that knows the server library. Checks run in this order: path, method, credential, size, content type, JSON, scope;
 * the route's own checks (fields, model, quota) follow.
 */
export async function serve(deps: HttpServerDeps, { host, port }: { host: string; port: number }): Promise<Listening> {
  const { headerSeconds } = deps.limits();
  let draining = false;
  let emptied = () => {};
  const open = new OpenList<Exchange>();
  const app = Fastify({
    logger: false,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 4096 },
    requestTimeout: 0,
    keepAliveTimeout: 75_000,
    http: { headersTimeout: headerSeconds * 1000, connectionsCheckingInterval: 2000, maxHeaderSize: 16_384, requestTimeout: 0 },
    clientErrorHandler: (error, socket) => refuseUnreadable(error, socket, deps.clock),
    frameworkErrors: (_error, request, reply) => void run(undefined, request, reply),
  });
  const connections = boundConnections(app.server, () => roomFor(deps.limits().maxConnections), deps.clock);
  // Nobody is invited to send a body that is not going to be read (`readBody` does it), and other expectations may be passed over (RFC 9110, 10.1.1).
  for (const expecting of ['checkContinue', 'checkExpectation'] as const)
    app.server.on(expecting, (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', (_request, socket) => socket.end(`HTTP/1.1 405 Method Not Allowed\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null)); // of unknown addresses; the others are answered before the library looks for a body
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);

  const run = async (route: Route | undefined, request: FastifyRequest, reply: FastifyReply, allow?: string): Promise<void> => {
    reply.hijack();
    if (!beginsOn(request.raw.socket)) return;
    const isExtra = connections.isExtra(request.raw.socket);
    const exchange = new Exchange(request.raw, reply.raw, (request.params ?? {}) as Record<string, string>, deps.clock, {
      draining: () => draining || isExtra,
      stallSeconds: deps.limits().bodyIdleSeconds,
      budget: deps.budget,
    });
    open.add(exchange);
    let caller: Caller | undefined;
    let fault: Fault | undefined;
    try {
      const odd = oddHead(request.raw);
      if (odd) throw new Fault('invalid', odd);
      if (!route || exchange.params['*'] === '') throw allow === undefined ? notFound() : new Fault('wrong-method', `This address takes ${allow}.`);
      if (isExtra && route.scope !== 'public') throw new Fault('overloaded', 'Too many connections are open.', { retryAfter: 1 });
      if (route.scope !== 'public') exchange.caller = caller = await deps.identify(credentialOf(exchange, deps.keyInQuery()), route, exchange);
      if (route.owner === 'admin' && caller?.role !== 'admin') throw notFound();
      await answer(route, exchange, caller ?? nobody);
    } catch (thrown) {
      const error = reasonOf(thrown, exchange.signal);
      fault = error instanceof ClientLeft ? undefined : faultOf(error);
      if (fault && !exchange.left) refuse(faceOf(deps.faces, exchange.url), exchange, fault, allow);
    } finally {
      open.delete(exchange);
      exchange.letGo();
      deps.done({ exchange, face: faceOf(deps.faces, exchange.url).name, route, caller, fault });
      if (draining) setImmediate(() => app.server.closeIdleConnections());
      if (open.size === 0) emptied();
    }
  };

  const answer = async (route: Route, exchange: Exchange, caller: Caller): Promise<void> => {
    const takesBody = route.method !== 'GET' && route.method !== 'DELETE';
    const bytes = takesBody ? await readBody(exchange, deps.limits(), deps.clock, route.takes) : new Uint8Array(0);
    exchange.signal.throwIfAborted();
    exchange.bodyBytes = bytes.length;
    exchange.add(bytes.length); // what is made of them holds about as much again
    const text = bytes.length > 0 && route.takes !== 'form' ? parsed(bytes) : { value: undefined, places: [] };
    const { value: json, places } = text instanceof Promise ? await text : text;
    if (!mayEnter(route, caller)) throw new Fault('forbidden', lacks(route), { reason: 'scope' });
    const asked = { exchange, caller, json, bytes, places };
    const key = route.spends ? exchange.header('idempotency-key') : undefined;
    await (key === undefined ? answered(asked, route) : deps.once(asked, key, () => answered(asked, route)));
  };

  // Of an unknown address, the library may find something wrong with the body before it is told to us.
  app.setErrorHandler((_error, request, reply) => run(undefined, request, reply));
  for (const face of deps.faces) mount(app, face.routes, run);
  app.setNotFoundHandler((request, reply) => run(undefined, request, reply));
  const checkTimes = () => {
    const now = deps.clock.monotonic();
    app.server.headersTimeout = deps.limits().headerSeconds * 1000;
    open.forEach((exchange) => exchange.checkTime(now));
    stopChecking = deps.clock.after(checkMilliseconds, checkTimes);
  };
  let stopChecking = deps.clock.after(checkMilliseconds, checkTimes);
  await app.listen({ host, port, listenTextResolver: () => '' }).catch((error: NodeJS.ErrnoException) => {
    throw new Error(listeningProblem(error, { host, port }), { cause: error });
  });
  const address = app.server.address() as AddressInfo;

  return {
    url: `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`,
    inFlight: () => open.size,
    connections: () => connections.connections,
    ongoing() {
      const all: Exchange[] = [];
      open.forEach((exchange) => exchange.caller && all.push(exchange));
      return all;
    },
    async close(graceSeconds) {
      draining = true;
      const closed = new Promise<void>((resolve) => app.server.close(() => resolve()));
      app.server.closeIdleConnections();
      const cancel = deps.clock.after(graceSeconds * 1000, () => {
        open.forEach((exchange) => exchange.cut(new Fault('overloaded', 'The server is shutting down.', { retryAfter: 1 })));
        deps.clock.after(1000, () => app.server.closeAllConnections());
      });
      await closed;
      // The work of a client that left may take a moment longer than its connection: the ledger is told of it before anything else is closed.
      if (open.size > 0)
        await new Promise<void>((resolve) => {
          const late = deps.clock.after(unwindMilliseconds, resolve);
          emptied = () => (late(), resolve());
        });
      stopChecking();
      cancel();
      await app.close();
    },
  };
}

/** Why nobody can be listened to, for whoever starts the server. */
export function listeningProblem(error: NodeJS.ErrnoException, { host, port }: { host: string; port: number }): string {
  return sentences[error.code ?? '']?.(host, port) ?? error.message;
}

const sentences: Readonly<Record<string, (host: string, port: number) => string>> = {
  EADDRINUSE: (host, port) => `Port ${port} of ${host} is in use: end the program that has it, or choose another with PORT or --port.`,
  EACCES: (_host, port) => `Port ${port} may not be used by this user: choose one above 1023 with PORT or --port.`,
  EADDRNOTAVAIL: (host) => `${host} is no address of this machine: choose another with HOST or --host.`,
  ENOTFOUND: (host) => `${host} has no address: choose another with HOST or --host.`,
};

async function answered(asked: Asked, route: Route): Promise<void> {
  const { exchange } = asked;
  const value = await route.answer(asked);
  if (!exchange.opened && !exchange.left) exchange.sendJson(route.makes ? 201 : 200, value ?? {});
}

type Run = (route: Route | undefined, request: FastifyRequest, reply: FastifyReply, allow?: string) => Promise<void>;

/** Each address with its methods; every other method of a known address is told which ones there are. */
function mount(app: FastifyInstance, routes: readonly Route[], run: Run): void {
  for (const [url, group] of Map.groupBy(routes, (route) => route.path)) {
    const methods = group.map((route) => route.method);
    for (const route of group) app.route({ method: route.method, url, ...answeredBy((request, reply) => void run(route, request, reply)) });
    const others = METHODS.filter((method) => !methods.includes(method as Route['method']));
    const allow = methods.join(', ');
    app.route({ method: others, url, ...answeredBy((request, reply) => void run(undefined, request, reply, allow)) });
  }
}

/** The request is answered as soon as its address is known. The library goes no further: it would look for a parser of the body, which is ours to read. */
function answeredBy(answer: (request: FastifyRequest, reply: FastifyReply) => void) {
  return { onRequest: (request: FastifyRequest, reply: FastifyReply, _next: () => void) => answer(request, reply), handler() {} };
}

const notFound = () =>
  new Fault('not-found', 'There is nothing at this address. All addresses are listed at /docs; the base address for OpenAI clients is /server/chatcompat/v1.');

function parsed(bytes: Uint8Array): JsonText | Promise<JsonText> {
  try {
    return bytes.length > largeBytes ? readLargeJson(bytes, jsonLimits).catch(refusedJson) : readJson(bytes, jsonLimits);
  } catch (error) {
    return refusedJson(error);
  }
}

function refusedJson(error: unknown): never {
  if (!(error instanceof BadJson)) throw error;
  const { message, member } = error;
  throw member === undefined ? new Fault('invalid', message) : new Fault('invalid', `${member.slice(0, 100)}: ${message}`, { field: member.slice(0, 100) });
}

function mayEnter(route: Route, caller: Caller): boolean {
  if (route.givesRights && isNarrowed(caller)) return false;
  if (route.scope === 'unscoped') return caller.scopes === undefined;
  return route.scope === 'public' || caller.scopes === undefined || caller.scopes.includes(route.scope);
}

function lacks({ scope, givesRights }: Route): string {
  if (givesRights) return 'This needs a key that is not narrowed: one without scopes, models or an expiry.';
  return scope === 'unscoped' ? 'This needs a key without scopes.' : `This key lacks the scope ${scope}.`;
}

function faceOf(faces: readonly Face[], url: string): Face {
  return faces.find((face) => url.startsWith(face.root)) ?? faces.at(-1)!;
}

function refuse(face: Face, exchange: Exchange, fault: Fault, allow: string | undefined): void {
  if (exchange.opened) return exchange.destroy();
  const { retryAfter } = fault.details;
  exchange.sendJson(fault.status, face.refusal(fault, exchange.id), [
    ...(allow === undefined ? [] : ['allow', allow]),
    ...(fault.status === 429 || fault.status === 503 ? ['retry-after', String(Math.max(1, Math.ceil(retryAfter ?? 1)))] : []),
    ...(fault.code === 'quota-spent' ? ['x-should-retry', 'false'] : []),
    ...exchange.refusalHeaders,
    ...(face.refusalHeaders?.(exchange.id) ?? []),
  ]);
}

/** Bytes that are no HTTP: one plain refusal, then the connection ends. Behind a whole request that waits for its answer, or within an answer, a refusal would be taken for that. */
function refuseUnreadable(
  error: Error & { code?: string },
  socket: Socket & { _httpMessage?: null | { headersSent: boolean; req: IncomingMessage } },
  clock: Clock,
): void {
  const answering = socket._httpMessage;
  const isTaken = answering ? answering.headersSent || answering.req.complete : false;
  if (!socket.writable || isTaken || error.code === 'ECONNRESET') return void socket.destroy();
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request';
  socket.end(`HTTP/1.1 ${status}\r\nx-request-id: ${requestId()}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
  clock.after(lingerMilliseconds, () => socket.destroy()); // who never closes its own end keeps no file of ours open
}

const lingerMilliseconds = 500;

/** Who asks at a public address. */
const nobody: Caller = { userId: 0, email: '', role: 'user', plan: '', teamIds: [], keyId: 0, keyName: '', scopes: [] };

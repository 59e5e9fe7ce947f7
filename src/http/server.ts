import { METHODS, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import { requestId } from '#kit/crypto/ids';
import type { BodyLimits } from './body.ts';
import { boundConnections, roomFor } from './connection-limit.ts';
import type { Exchange } from './exchange.ts';
import { Requests, type RequestDeps } from './requests.ts';
import type { Route } from './route.ts';

/** What the HTTP server needs from the rest. */
export interface HttpServerDeps extends RequestDeps {
  readonly limits: () => BodyLimits & { readonly headerSeconds: number; readonly maxConnections: number };
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

const checkMilliseconds = 500;
/** How long work whose connection is gone may take to end, when the server stops. */
const unwindMilliseconds = 5000;

/** Starts to listen. This file is the only one that knows the server library. */
export async function serve(deps: HttpServerDeps, { host, port }: { host: string; port: number }): Promise<Listening> {
  const { headerSeconds } = deps.limits();
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
  const requests = new Requests(deps, (socket) => connections.isExtra(socket));
  const { open } = requests;
  const run: Run = (route, request, reply, allow) => requests.answer(route, request, reply, allow);
  // `readBody` sends 100 Continue, so that no client is asked for a body that is not going to be read; other expectations may be ignored (RFC 9110, 10.1.1).
  for (const expecting of ['checkContinue', 'checkExpectation'] as const)
    app.server.on(expecting, (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', (_request, socket) => socket.end(`HTTP/1.1 405 Method Not Allowed\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null)); // of unknown addresses; the others are answered before the library looks for a body
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);

  // For an unknown address the library may refuse the body before it calls the handler below.
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
      requests.isDraining = true;
      let emptied = () => {};
      requests.ended = () => {
        setImmediate(() => app.server.closeIdleConnections());
        if (open.size === 0) emptied();
      };
      const closed = new Promise<void>((resolve) => app.server.close(() => resolve()));
      app.server.closeIdleConnections();
      const cancel = deps.clock.after(graceSeconds * 1000, () => {
        open.forEach((exchange) => exchange.cut(new Fault('overloaded', 'The server is shutting down.', { retryAfter: 1 })));
        deps.clock.after(1000, () => app.server.closeAllConnections());
      });
      await closed;
      // The work for a client that left may outlast its connection: the ledger books it before anything else is closed.
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

/** Why the server cannot listen, for the operator. */
export function listeningProblem(error: NodeJS.ErrnoException, { host, port }: { host: string; port: number }): string {
  return sentences[error.code ?? '']?.(host, port) ?? error.message;
}

const sentences: Readonly<Record<string, (host: string, port: number) => string>> = {
  EADDRINUSE: (host, port) => `Port ${port} of ${host} is in use: stop the program that uses it, or choose another with PORT or --port.`,
  EACCES: (_host, port) => `Port ${port} may not be used by this user: choose one above 1023 with PORT or --port.`,
  EADDRNOTAVAIL: (host) => `${host} is no address of this machine: choose another with HOST or --host.`,
  ENOTFOUND: (host) => `${host} has no address: choose another with HOST or --host.`,
};

type Run = (route: Route | undefined, request: FastifyRequest, reply: FastifyReply, allow?: string) => Promise<void>;

/** Mounts each address with its methods; any other method of a known address gets 405 with `Allow`. */
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

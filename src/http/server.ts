import type { IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import FindMyWay from 'find-my-way';
import { Fault } from '#core/fault';
import type { Clock } from '#kit/async/clock';
import { lastInTurn } from '#kit/async/turn-end';
import { requestId } from '#kit/crypto/ids';
import { METHODS } from '#kit/net/http';
import { listeningProblem } from '#kit/net/listening-problem';
import type { BodyLimits } from './body.ts';
import { boundConnections, roomFor } from './connection-limit.ts';
import { unframed, type Exchange } from './exchange.ts';
import { Requests, type RequestDeps, type Target } from './requests.ts';
import { addressesOf, type Alias, type Face, type Route } from './route.ts';

/** What the HTTP server needs from the rest. */
export interface HttpServerDeps extends RequestDeps {
  readonly limits: () => BodyLimits & { readonly headerSeconds: number; readonly maxConnections: number };
}

export interface Listening {
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  /** Requests being answered now. */
  readonly inFlight: () => number;
  /** Those of them that wait for their turn. */
  readonly waiting: () => number;
  /** Clients connected now. */
  readonly connections: () => number;
  /** Requests being answered now whose callers are known. */
  readonly ongoing: () => readonly Exchange[];
  /** Stops listening, gives requests in flight `graceSeconds` to finish, then cuts the rest. */
  close(graceSeconds: number): Promise<void>;
}

const mostHeadBytes = 16_384;
const maxParamLength = 4096;
/** Connections that may wait to be accepted, which happens once a turn of the event loop; beyond them a client connects a second later. The system may allow fewer. */
const backlog = 4096;
const checkMilliseconds = 500;
/** How long work whose connection is gone may take to end, when the server stops. */
const unwindMilliseconds = 5000;

/** In place of Fastify's own compilers, which take 4 MB: no route uses Fastify schemas. */
const noCompiler = () => {
  throw new Error('A route declares a Fastify schema: its fields are checked by the route itself.');
};
const noSchemas = { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } };

/** Starts to listen. This file is the only one that knows the server library. */
export async function serve(deps: HttpServerDeps, { host, port }: { host: string; port: number }): Promise<Listening> {
  const { headerSeconds } = deps.limits();
  const app = Fastify({
    logger: false,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength },
    requestTimeout: 0,
    keepAliveTimeout: 75_000,
    http: {
      headersTimeout: headerSeconds * 1000,
      connectionsCheckingInterval: 2000,
      maxHeaderSize: mostHeadBytes,
      requestTimeout: 0,
      requireHostHeader: false, // `oddHead` does, in our words and with our headers
    },
    schemaController: noSchemas,
    clientErrorHandler: (error, socket) => refuseUnreadable(error, socket, deps.clock),
    frameworkErrors: (_error, request, reply) => run(unknown, request, reply),
  });
  const connections = boundConnections(app.server, () => roomFor(deps.limits().maxConnections), deps.clock);
  const requests = new Requests(deps, (socket) => connections.isExtra(socket));
  app.server.on('connection', () => requests.accepted());
  const { open } = requests;
  const run: Run = (target, { raw: request, params }, reply) => {
    reply.hijack();
    requests.answer(target, { request, response: reply.raw, params: (params ?? {}) as Record<string, string> });
  };
  // `readBody` sends 100 Continue, so that no client is asked for a body that is not going to be read; other expectations may be ignored (RFC 9110, 10.1.1).
  for (const expecting of ['checkContinue', 'checkExpectation'] as const)
    app.server.on(expecting, (request, response) => app.server.emit('request', request, response));
  app.server.on('connect', (_request, socket) => socket.end(bareAnswer(noTunnel)));
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null)); // where no route is found; the other requests are answered before the library looks for a body
  for (const method of METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);

  // Where no route is found, the library may refuse the body before it calls the handler below.
  const unmounted = mount(app, deps.faces, run);
  app.setErrorHandler((_error, request, reply) => run(unmounted(request), request, reply));
  app.setNotFoundHandler((request, reply) => run(unmounted(request), request, reply));
  const checkTimes = () => {
    const now = deps.clock.monotonic();
    app.server.headersTimeout = deps.limits().headerSeconds * 1000;
    open.forEach((exchange) => exchange.checkTime(now));
    stopChecking = deps.clock.after(checkMilliseconds, checkTimes);
  };
  let stopChecking = deps.clock.after(checkMilliseconds, checkTimes);
  await app.listen({ host, port, backlog, listenTextResolver: () => '' }).catch((error: NodeJS.ErrnoException) => {
    throw new Error(listeningProblem(error, { host, port }), { cause: error });
  });

  return {
    url: urlOf(app.server.address() as AddressInfo),
    inFlight: () => open.size,
    waiting: () => requests.waiting,
    connections: () => connections.connections,
    ongoing: () => ofCallers(open),
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

function ofCallers(open: Requests['open']): readonly Exchange[] {
  const all: Exchange[] = [];
  open.forEach((exchange) => exchange.caller && all.push(exchange));
  return all;
}

const urlOf = ({ family, address, port }: AddressInfo) => `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;

type Run = (target: Target, request: FastifyRequest, reply: FastifyReply) => void;

/** Of an address that is nobody's. */
const unknown: Target = {};

interface Mounted extends Alias {
  readonly face: Face;
  readonly route: Route;
}

/**
 * Mounts each address with its methods, `HEAD` wherever `GET` is, and with the methods of other addresses: `PUT /things/import` is not to be taken for `PUT
 * /things/:id`. Those get 405 with `Allow`.
 * @returns what a request is told that no route was found for: the same at a known address. To mount all methods that there are took 8 MB more.
 */
function mount(app: FastifyInstance, faces: readonly Face[], run: Run): (request: FastifyRequest) => Target {
  const known = FindMyWay({ maxParamLength });
  const all: readonly Mounted[] = faces.flatMap((face) =>
    face.routes.flatMap((route) => addressesOf(route).map(({ method, path, headers }) => ({ face, route, method, path, ...(headers ? { headers } : {}) }))),
  );
  const methods = new Set(all.flatMap(({ method }) => methodsOf(method)));
  for (const [url, group] of Map.groupBy(all, ({ path }) => path)) {
    const runHere = url.includes('/:') ? withNames(run) : run;
    const usual = group.filter(({ headers }) => !headers);
    const wrong = wrongAt(usual.length > 0 ? usual : group);
    known.on('GET', url, () => {}, wrong.at);
    const byMethod = Map.groupBy(group, ({ method }) => method);
    for (const [method, targets] of byMethod) app.route({ method: methodsOf(method), url, ...answeredBy(chosen(targets, wrong, runHere)) });
    const taken = new Set(Array.from(byMethod.keys(), methodsOf).flat());
    const others = [...methods].filter((method) => !taken.has(method));
    app.route({ method: others, url, ...answeredBy((request, reply) => runHere(wrong.at(request.params as Params), request, reply)) });
  }
  return ({ url }) => {
    const found = known.find('GET', url);
    return found ? (found.store as TargetOf)(found.params) : unknown;
  };
}

/** `/things/` and `/things//files` are not addresses of a thing whose name is empty. */
const withNames =
  (run: Run): Run =>
  (target, request, reply) =>
    run(Object.values(request.params as Params).includes('') ? unknown : target, request, reply);

const methodsOf = (method: Route['method']): string[] => (method === 'GET' ? ['GET', 'HEAD'] : [method]);

type Params = Readonly<Record<string, string | undefined>>;
type TargetOf = (params: Params) => Target;

/** What a request with a wrong method is told. Where an address stands for several operations, those take other methods than what else is there. */
interface Wrong {
  readonly at: TargetOf;
  /** Absent: it stands for none, or for nothing else. */
  readonly isOperation?: (params: Params) => boolean;
}

function wrongAt(group: readonly Mounted[]): Wrong {
  const { face } = group[0]!;
  const allowing = (some: readonly Mounted[]): Target => ({ face, allow: [...new Set(some.flatMap(({ method }) => methodsOf(method)))].join(', ') });
  const doing = group.filter(({ route }) => route.operations);
  if (doing.length === 0 || doing.length === group.length) return { at: always(allowing(group)) };
  const [operations, others] = [allowing(doing), allowing(group.filter(({ route }) => !route.operations))];
  const isOperation = (params: Params) => doing.some(({ route }) => isOperationOf(route, params));
  return { at: (params) => (isOperation(params) ? operations : others), isOperation };
}

const always = (target: Target) => () => target;

const isOperationOf = ({ operations = [] }: Route, { '*': name = '' }: Params) => operations.some(({ suffix }) => name.endsWith(suffix));

/** Of the routes at one address the one whose headers the request has, else the one that needs none, else none: its method is wrong there. */
function chosen(targets: readonly Mounted[], wrong: Wrong, run: Run): (request: FastifyRequest, reply: FastifyReply) => void {
  const plain = targets.find(({ headers }) => !headers);
  const { at, isOperation } = wrong;
  const usual = !plain ? at : isOperation && !plain.route.operations ? (params: Params) => (isOperation(params) ? at(params) : plain) : always(plain);
  const special = targets.filter(({ headers }) => headers);
  if (special.length === 0) return (request, reply) => run(usual(request.params as Params), request, reply);
  const isMeant = (headers: readonly string[] = [], request: FastifyRequest) => headers.every((name) => request.headers[name] !== undefined);
  return (request, reply) => run(special.find(({ headers }) => isMeant(headers, request)) ?? usual(request.params as Params), request, reply);
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
  if (!socket.writable || error.code === 'ECONNRESET') return void socket.destroy();
  if (isTaken) return lastInTurn(() => socket.destroy()); // the request may have come in the same piece: what it is told at once goes out first
  socket.end(bareAnswer(unreadable[error.code ?? ''] ?? notHttp));
  clock.after(lingerMilliseconds, () => socket.destroy()); // who never closes its own end keeps no file of ours open
}

interface BareRefusal {
  readonly status: number;
  readonly reason: string;
  readonly message: string;
}

const noTunnel: BareRefusal = { status: 405, reason: 'Method Not Allowed', message: 'This server is no proxy.' };
const notHttp: BareRefusal = { status: 400, reason: 'Bad Request', message: 'The bytes that arrived are not HTTP.' };
const unreadable: Readonly<Record<string, BareRefusal>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: 'Request Header Fields Too Large',
    message: `The address and the headers of the request are larger than ${mostHeadBytes} bytes.`,
  },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, reason: 'Request Timeout', message: 'The request arrives too slowly.' },
};

/** The bytes of a refusal of what is no request. */
function bareAnswer({ status, reason, message }: BareRefusal): string {
  const id = requestId();
  const body = JSON.stringify({ response: message, status, message, error: message, error_ref: id });
  const headers = ['x-request-id', id, ...unframed, 'content-type', 'application/json; charset=utf-8', 'content-length', String(Buffer.byteLength(body))];
  const lines = headers.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`));
  return `HTTP/1.1 ${status} ${reason}\r\n${lines.join('')}connection: close\r\n\r\n${body}`;
}

const lingerMilliseconds = 500;

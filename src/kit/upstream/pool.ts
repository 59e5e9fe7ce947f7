import type { SecureContext } from 'node:tls';
import { EnvHttpProxyAgent, Pool, type Dispatcher } from 'undici';
import { UpstreamResponse, StaleConnection, UpstreamError, type UpstreamRequest, type Watch } from './response.ts';
import type { Clock } from '../async/clock.ts';
import { OpenList } from '../async/open-list.ts';
import { stepOverContinue } from './ignore-100-continue.ts';
import { rememberingLookup, type Lookup } from '../net/dns-cache.ts';

export interface PoolSettings {
  readonly clock: Clock;
  /** Read before each request; a changed value applies to all connections from then on. */
  readonly connectSeconds: () => number;
  /** URL of an HTTP proxy for all origins except those in `noProxy`; empty: none. */
  readonly proxy: string;
  readonly noProxy: string;
  /** Trusted certificate authorities; absent: those of the runtime. */
  readonly secureContext?: SecureContext | undefined;
  /** Connections to one origin at a time; who needs one more waits for one of them. Absent: no limit. */
  readonly mostConnections?: number;
  /** Absent: the lookup of the system. */
  readonly lookup?: Lookup;
}

/** One connection pool for each upstream origin. */
export interface Upstreams {
  /** POSTs the body; resolves with the response head. @throws UpstreamError; or the signal's reason */
  post(request: UpstreamRequest): Promise<UpstreamResponse>;
  /** The same as a GET, without a body. */
  get(request: Omit<UpstreamRequest, 'body'>): Promise<UpstreamResponse>;
  /** Drops idle connections and refuses new requests. */
  close(): Promise<void>;
}

export function openUpstreams({ clock, connectSeconds, proxy, noProxy, secureContext, mostConnections = Infinity, lookup }: PoolSettings): Upstreams {
  const pools = new Map<string, { readonly dispatcher: Dispatcher; readonly connectSeconds: number }>();
  const open = new Set<Dispatcher>();
  const addresses = rememberingLookup(clock, lookup);
  const connections = Number.isFinite(mostConnections) ? mostConnections : null;

  const opened = (origin: string, timeout: number): Dispatcher => {
    const connect = { timeout, lookup: addresses, ...(secureContext ? { secureContext } : {}) };
    const through = { connectTimeout: timeout, proxyTls: connect, requestTls: connect };
    const dispatcher = proxy
      ? new EnvHttpProxyAgent({ httpProxy: proxy, httpsProxy: proxy, noProxy, connect, connections, ...through, ...tuning })
      : new Pool(origin, { connect, connections, pipelining: 1, ...tuning });
    open.add(dispatcher);
    return dispatcher;
  };
  /** Requests in progress finish on the old connections. Resolves when they have. */
  const retire = async (dispatcher: Dispatcher) => {
    await dispatcher.close().catch(() => {}); // all connections were cut meanwhile
    open.delete(dispatcher);
  };

  const dispatcherOf = (origin: string): Dispatcher => {
    const seconds = connectSeconds();
    const pool = pools.get(origin);
    if (pool?.connectSeconds === seconds) return pool.dispatcher;
    const dispatcher = opened(origin, seconds * 1000);
    pools.set(origin, { dispatcher, connectSeconds: seconds });
    if (pool) void retire(pool.dispatcher);
    return dispatcher;
  };
  const watch = watcher(clock);
  const mostAlone = Math.min(usualAlone, Math.ceil(mostConnections / 8));
  let alone = 0;
  /** Sends a request on a new connection, which is closed after the answer; on one of the pool while there are too many of those. */
  const askAlone = (method: Method, request: UpstreamRequest): Promise<UpstreamResponse> => {
    if (alone >= mostAlone) return ask(dispatcherOf(cachedOrigin(request.url)), method, request, watch);
    const dispatcher = opened(cachedOrigin(request.url), connectSeconds() * 1000);
    alone++;
    // Not retired before: a proxy is connected to first.
    return ask(dispatcher, method, request, watch).finally(() => void retire(dispatcher).then(() => alone--));
  };
  const send = (method: Method, request: UpstreamRequest): Promise<UpstreamResponse> =>
    ask(dispatcherOf(cachedOrigin(request.url)), method, request, watch).catch((error: unknown) => {
      // No response has started: retried once. The other connections of the pool may have been closed, too, when the server restarted.
      if (error instanceof UpstreamError && error.problem === 'broken' && error.cause instanceof StaleConnection) return askAlone(method, request);
      throw error;
    });
  return {
    post: (request) => send('POST', request),
    get: (request) => send('GET', { ...request, body: '' }),
    async close() {
      await Promise.all(Array.from(open, (dispatcher) => dispatcher.destroy()));
    },
  };
}

stepOverContinue();

/** Connections at once for requests that are sent again, where there may be many. */
const usualAlone = 256;
const tuning = { keepAliveTimeout: 30_000, keepAliveMaxTimeout: 60_000, maxHeaderSize: 65_536, headersTimeout: 0, bodyTimeout: 0 };

type Method = 'GET' | 'POST';

function ask(dispatcher: Dispatcher, method: Method, request: UpstreamRequest, watch: Watch): Promise<UpstreamResponse> {
  return new Promise((resolve, reject) => {
    const response = new UpstreamResponse(request, watch, resolve, reject);
    dispatcher.dispatch({ origin: cachedOrigin(request.url), path: request.path, method, headers: request.headers, body: request.body }, response);
  });
}

/** `URL.origin` is computed on each access. The URLs of providers are never changed. */
function cachedOrigin(url: URL): string {
  let origin = origins.get(url);
  if (origin === undefined) origins.set(url, (origin = url.origin));
  return origin;
}

const origins = new WeakMap<URL, string>();

/** One timer for all open responses instead of two for each: it checks their deadlines four times a second. */
function watcher(clock: Clock): Watch {
  const open = new OpenList<UpstreamResponse>();
  let armed = false;
  const look = () => {
    armed = false;
    const now = clock.monotonic();
    open.forEach((one) => {
      if (!one.paused && now - one.lastAt > one.patience) one.stop(new UpstreamError(one.status === 0 ? 'slow-head' : 'slow-body'));
    });
    if (open.size > 0) arm();
  };
  const arm = () => {
    armed = true;
    clock.after(250, look);
  };
  return {
    clock,
    add(response) {
      open.add(response);
      if (!armed) arm();
    },
    delete: (response) => open.delete(response),
  };
}

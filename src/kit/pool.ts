import { EnvHttpProxyAgent, Pool, type Dispatcher } from 'undici';
import { Answering, StaleConnection, UpstreamError, type UpstreamRequest, type Watch } from './answering.ts';
import type { Clock } from './clock.ts';
import { Crowd } from './crowd.ts';

export interface PoolSettings {
  readonly clock: Clock;
  readonly connectSeconds: number;
  /** Address of an HTTP proxy for all origins but those in `noProxy`; empty: none. */
  readonly proxy: string;
  readonly noProxy: string;
}

/** One connection pool for each upstream origin. */
export interface Upstreams {
  /**
   * POSTs the body; resolves with the response head.
   *
   * @throws UpstreamError; or the signal's reason
   */
  post(request: UpstreamRequest): Promise<Answering>;
  /** Drops idle connections and refuses new requests. */
  close(): Promise<void>;
}

export function openUpstreams({ clock, connectSeconds, proxy, noProxy }: PoolSettings): Upstreams {
  const dispatchers = new Map<string, Dispatcher>();
  const connect = { timeout: connectSeconds * 1000 };
  const dispatcherOf = (origin: string): Dispatcher => {
    let dispatcher = dispatchers.get(origin);
    if (!dispatcher) {
      dispatcher = proxy
        ? new EnvHttpProxyAgent({ httpProxy: proxy, httpsProxy: proxy, noProxy, connect, ...tuning })
        : new Pool(origin, { connect, connections: null, pipelining: 1, ...tuning });
      dispatchers.set(origin, dispatcher);
    }
    return dispatcher;
  };
  const watch = watcher(clock);
  return {
    async post(request) {
      const dispatcher = dispatcherOf(request.url.origin);
      try {
        return await ask(dispatcher, request, watch);
      } catch (error) {
        // Nothing of an answer has begun: asked once more, on a fresh connection.
        if (error instanceof UpstreamError && error.problem === 'broken' && error.cause instanceof StaleConnection)
          return await ask(dispatcher, request, watch);
        throw error;
      }
    },
    async close() {
      await Promise.all(Array.from(dispatchers.values(), (dispatcher) => dispatcher.destroy()));
    },
  };
}

const tuning = { keepAliveTimeout: 30_000, keepAliveMaxTimeout: 60_000, maxHeaderSize: 65_536, headersTimeout: 0, bodyTimeout: 0 };

function ask(dispatcher: Dispatcher, request: UpstreamRequest, watch: Watch): Promise<Answering> {
  return new Promise((resolve, reject) => {
    const answering = new Answering(request, watch, resolve, reject);
    dispatcher.dispatch({ origin: request.url.origin, path: request.path, method: 'POST', headers: request.headers, body: request.body }, answering);
  });
}

/** One timer for all open answers instead of two for each: it looks four times a second whose patience is over. */
function watcher(clock: Clock): Watch {
  const open = new Crowd<Answering>();
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
    add(answering) {
      open.add(answering);
      if (!armed) arm();
    },
    delete: (answering) => open.delete(answering),
  };
}

import { Fault } from '#core/fault';
import { pageText } from '#gateway/searching/pages';
import { UpstreamError } from '#kit/upstream/response';
import type { Caller } from '#core/context';
import type { SearchPassages } from '#core/passages';
import { queueFull } from '#core/fault';
import type { NounRoute } from '#http/noun-route';
import { QueueFull } from '#kit/async/fair-semaphore';
import type { Clock } from '#kit/async/clock';
import { parseJson } from '#kit/json/scan';
import { NotFetched, type GuardedFetch } from '#kit/net/guarded-fetch';
import { openScripts } from '#kit/sandbox/scripts';
import { audit } from '#resources/audit/store';
import { nativePluginRoutes } from '#resources/plugins/native-routes';
import { pluginRoutes } from '#resources/plugins/routes';
import type { SendRequest, SecretsOf } from '#resources/plugins/run/http';
import { runningPlugins, type RunDeps } from '#resources/plugins/run/run';
import { kind, openPlugins } from '#resources/plugins/store';
import type { Plugins } from '#resources/plugin-run';
import { openSharing } from '#resources/sharing';
import type { Calls } from './calls.ts';
import type { Database } from './database.ts';

export interface PluginsDeps {
  readonly database: Pick<Database, 'store'>;
  readonly calls: Pick<Calls, 'pipeline' | 'web' | 'schemas'>;
  readonly search: SearchPassages;
  readonly convert: RunDeps['convert'];
  readonly clock: Clock;
}

/** Plugins with what they may reach. */
export interface OpenPlugins {
  readonly plugins: Plugins;
  readonly native: readonly NounRoute[];
  readonly own: readonly NounRoute[];
  close(): Promise<void>;
}

export function openPluginsNoun({ database: { store }, calls, search, convert, clock }: PluginsDeps): OpenPlugins {
  const plugins = openPlugins(store);
  const { fetcher } = calls.web;
  const administers = (caller: Caller, id: number) => plugins.one(caller, id).then(({ right }) => right === 'admin' || right === 'owner');
  const sharing = openSharing({ store, audit, kind, lock: plugins.lock, administers });
  const scripts = openScripts(clock);
  const send = sending(fetcher);
  return {
    plugins: runningPlugins({
      plugins,
      scripts,
      generate: calls.pipeline.chatcompat,
      affords: calls.pipeline.affords,
      keepsTo: calls.schemas.against,
      search,
      convert,
      send,
      secretsOf: noSecrets,
      readPage: (url, asking) => pageText(fetcher, url, asking),
    }),
    native: nativePluginRoutes(plugins),
    own: pluginRoutes({
      plugins,
      sharing,
      readDocument: (caller, signal = new AbortController().signal) => documentAt(fetcher, String(caller.userId), signal),
    }),
    close: () => scripts.close(),
  };
}

const noSecrets: SecretsOf = (_, [name]) => {
  throw new Fault('unsupported', `The plugin names the secret ${name}, and there are no secrets here.`, { field: 'request' });
};

const mostBytes = 1_048_576;
const textTypes = /^(?:text\/|application\/(?:[\w.-]{1,100}\+)?(?:json|xml|yaml)|application\/(?:x-ndjson|javascript|x-yaml))/;

/** Requests through the guarded fetch, which sends GET and POST. */
const sending =
  (fetcher: GuardedFetch): SendRequest =>
  async ({ method, url, headers, body, owner, signal }) => {
    if (method !== 'GET' && method !== 'POST')
      throw new Fault('unsupported', `Plugins send GET and POST here, and not ${method}.`, { field: 'request.method' });
    const takes = (type: string) => type === '' || textTypes.test(type);
    const sent = method === 'POST' ? { body: body ?? '' } : {};
    try {
      return await fetcher.fetch({ url, owner, signal, maxBytes: mostBytes, takes, headers, ...sent, anySuccess: true });
    } catch (error) {
      throw asFault(error, 'The address of the plugin cannot be fetched, or what is there is not text.');
    }
  };

function asFault(error: unknown, text: string): unknown {
  if (error instanceof QueueFull) return queueFull(error);
  return error instanceof NotFetched || error instanceof UpstreamError ? new Fault('upstream-failed', text, { cause: error }) : error;
}

/** A description of an interface, at an address that a user chose. */
const documentAt = (fetcher: GuardedFetch, owner: string, signal: AbortSignal) => async (url: string) => {
  try {
    const { bytes } = await fetcher.fetch({ url, owner, signal, maxBytes: 2 * mostBytes, takes: () => true });
    return parseJson(bytes);
  } catch (error) {
    if (error instanceof QueueFull) throw queueFull(error);
    signal.throwIfAborted();
    throw new Fault('invalid', 'request.openapi must be the public address of a JSON document.', { field: 'request.openapi', cause: error });
  }
};

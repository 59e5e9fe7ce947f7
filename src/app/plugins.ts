import { Fault, queueFull } from '#core/fault';
import { pageText } from '#gateway/searching/pages';
import { UpstreamError } from '#kit/upstream/response';
import type { SearchPassages } from '#core/passages';
import type { ResolveSecrets } from '#core/secrets';
import type { JsonObject } from '#core/json';
import type { NounRoute } from '#http/noun-route';
import { QueueFull } from '#kit/async/fair-semaphore';
import type { Clock } from '#kit/async/clock';
import { readLargeJson } from '#kit/json/large';
import { BadJson } from '#kit/json/scan';
import { NotFetched, NotTaken, type GuardedFetch } from '#kit/net/guarded-fetch';
import type { GuardedStreams } from '#kit/net/guarded-stream';
import { openScripts } from '#kit/sandbox/scripts';
import { contentTypeIn, decoded } from '#kit/text/content-type';
import { audit } from '#resources/audit/store';
import { nativePluginRoutes } from '#resources/plugins/native-routes';
import { pluginRoutes } from '#resources/plugins/routes';
import { declaredRequest, unreadable } from '#resources/plugins/definition';
import { documentLimits } from '#resources/plugins/openapi';
import { calledOverHttp, type TextAnswer, type SendRequest, type SecretsOf } from '#resources/plugins/run/http';
import type { DeclaredRequest } from '#resources/plugins/types';
import { runningPlugins, type RunDeps } from '#resources/plugins/run/run';
import { kind, openPlugins } from '#resources/plugins/store';
import type { Plugins } from '#resources/plugin-run';
import { openSharing } from '#resources/sharing';
import type { Acting } from './acting.ts';
import type { Calls } from './calls.ts';
import type { Database } from './database.ts';

export interface PluginsDeps {
  readonly database: Pick<Database, 'store'>;
  readonly calls: Pick<Calls, 'pipeline' | 'web' | 'schemas'>;
  readonly acting: Pick<Acting, 'resolve' | 'streams'>;
  readonly search: SearchPassages;
  readonly convert: RunDeps['convert'];
  readonly clock: Clock;
  readonly allowed: readonly string[];
}

export interface OpenPlugins {
  readonly plugins: Plugins;
  /** Requests that are declared as those of plugins are. */
  readonly requests: DeclaredRequests;
  readonly native: readonly NounRoute[];
  readonly own: readonly NounRoute[];
  close(): Promise<void>;
}

export interface DeclaredRequests {
  /** @returns the request as it is stored. @throws Fault `invalid` naming the field */
  check(request: JsonObject, parameters: JsonObject): JsonObject;
  /** Makes a request with the secrets of its owner. @returns what is shown of the answer. @throws Fault */
  call(request: JsonObject, making: Omit<Parameters<typeof calledOverHttp>[0], 'request'>): Promise<string>;
  isReadOnly(request: JsonObject): boolean;
}

export function openPluginsNoun({ database: { store }, calls, acting, search, convert, clock, allowed }: PluginsDeps): OpenPlugins {
  const plugins = openPlugins(store);
  const { fetcher } = calls.web;
  const sharing = openSharing({ store, audit, kind, lock: plugins.lock });
  const scripts = openScripts(clock);
  const send = sending(fetcher, acting.streams);
  const secretsOf = secretsBy(acting.resolve);
  return {
    plugins: runningPlugins({
      plugins,
      scripts,
      generate: calls.pipeline.chatcompat,
      affords: calls.pipeline.affords,
      enters: calls.pipeline.enters,
      keepsTo: calls.schemas.against,
      search,
      convert,
      send,
      secretsOf,
      readPage: (url, asking) => pageText(fetcher, url, asking),
    }),
    requests: {
      check: (request, parameters) => ({ ...declaredRequest(request, parameters, allowed) }),
      call: (request, making) => calledOverHttp({ request: request as unknown as DeclaredRequest, ...making }, { send, secretsOf }),
      isReadOnly: ({ method }) => method === 'GET',
    },
    native: nativePluginRoutes(plugins),
    own: pluginRoutes({
      plugins,
      sharing,
      checks: (caller, signal) => ({ readDocument: documentAt(fetcher, String(caller.userId), signal), allowed, isPattern: calls.schemas.isPattern }),
    }),
    close: () => scripts.close(),
  };
}

const secretsBy =
  (resolve: ResolveSecrets): SecretsOf =>
  async (userId, names) => {
    const values = await Promise.all(names.map((name) => resolve(userId, `{{secret.${name}}}`)));
    return new Map(names.map((name, at) => [name, values[at]!]));
  };

const mostBytes = 1_048_576;
const textTypes = /^(?:text\/|application\/(?:[\w.-]{1,100}\+)?(?:json|xml|yaml)|application\/(?:x-ndjson|javascript|x-yaml))/;

/** Requests through the guarded fetch, and those of other methods as streams, which follow no redirect. */
const sending =
  (fetcher: GuardedFetch, streams: GuardedStreams): SendRequest =>
  async (request) => {
    const { method, url, headers, body = '', origins, owner, signal } = request;
    const asked = { url, owner, signal, maxBytes: mostBytes, headers, ...(origins ? { origins } : {}) };
    try {
      if (method !== 'GET' && method !== 'POST')
        return await answerOf(await streams.open({ ...asked, method, ...(request.body === undefined ? {} : { body }) }));
      const found = await fetcher.fetch({ ...asked, takes: isText, ...(method === 'POST' ? { body } : {}), anySuccess: true });
      return textAnswer(found, found.bytes);
    } catch (error) {
      signal.throwIfAborted();
      throw asFault(error, 'The address of the plugin cannot be fetched, or what is there is not text.');
    }
  };

const isText = (type: string) => type === '' || textTypes.test(type);

async function answerOf(response: Response): Promise<TextAnswer> {
  const found = contentTypeIn(response.headers.get('content-type') ?? '');
  if (response.ok && isText(found.type)) return textAnswer(found, await response.bytes());
  await response.body?.cancel();
  throw new NotFetched(new NotTaken(response.ok ? 'It is of a type that is not wanted.' : `It answered ${response.status}.`));
}

function asFault(error: unknown, text: string): unknown {
  if (error instanceof QueueFull) return queueFull(error);
  const said = error instanceof NotFetched && error.cause instanceof NotTaken ? `The plugin got nothing from its address. ${error.cause.message}` : text;
  return error instanceof NotFetched || error instanceof UpstreamError ? new Fault('upstream-failed', said, { cause: error }) : error;
}

/** A description of an interface, at an address that a user chose. */
const documentAt = (fetcher: GuardedFetch, owner: string, signal: AbortSignal) => async (url: string) => {
  try {
    const { bytes } = await fetcher.fetch({ url, owner, signal, maxBytes: 2 * mostBytes, takes: () => true });
    return (await readLargeJson(bytes, documentLimits)).value;
  } catch (error) {
    if (error instanceof QueueFull) throw queueFull(error);
    signal.throwIfAborted();
    if (error instanceof BadJson) throw unreadable(error);
    throw new Fault('invalid', 'request.openapi must be the public address of a JSON document.', { field: 'request.openapi', cause: error });
  }
};

const textAnswer = ({ type, charset }: ReturnType<typeof contentTypeIn>, bytes: Uint8Array): TextAnswer => ({ type, bytes, text: decoded(bytes, charset) });

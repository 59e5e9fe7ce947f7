import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Settings } from '#config';
import { openAdministration } from './administration.ts';
import { openDatabase } from './database.ts';
import { admin } from './faces/admin/index.ts';
import { chatcompat } from './faces/chatcompat/index.ts';
import { watch, type OpenApiDocument } from './faces/watch/index.ts';
import { gateway } from './gateway/index.ts';
import { modelsFor } from './gateway/resolve.ts';
import { openLedger } from './gateway/ledger/index.ts';
import { openMetrics } from './http/metrics.ts';
import { openApi } from './http/openapi.ts';
import type { Face } from './http/route.ts';
import { serve } from './http/serve.ts';
import { systemClock, type Clock } from './kit/clock.ts';
import { openUpstreams } from './kit/pool.ts';
import { openTokens } from './kit/tokens.ts';
import { isLocalToken, localOperator, localTokenFile, newLocalToken, writeLocalToken } from './local-token.ts';
import { causeOf, type Log } from './log.ts';
import { modelsOf } from './models.ts';
import { builtIn } from './providers/built-in/built-in.ts';
import { openProviders } from './providers/index.ts';
import { openIdentity } from './resources/api-keys/identify.ts';
import { openApiKeys } from './resources/api-keys/store.ts';
import { firstUser, type FirstUser } from './first-user.ts';
import { openUsage } from './resources/usage/store.ts';
import { requestLine } from './request-line.ts';
import type { Store } from './store/open.ts';
import { version } from './version.ts';

export interface ServerParts {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock?: Clock;
  /** A random number from 0 to 1. */
  readonly chance?: () => number;
}

export interface Server {
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  /** Made by this start, if it was the first. */
  readonly first: FirstUser | undefined;
  /** Names of the models that answer. */
  readonly models: () => readonly string[];
  /** Takes new settings; what needs a restart is left as it is. */
  change(settings: Settings): void;
  /** Stops listening, lets what is in flight finish, settles the books and lets go of the folder. */
  close(graceSeconds: number): Promise<void>;
}

/** Puts the house together and opens the door. */
export async function startServer({ settings: first, log, clock = systemClock, chance = Math.random }: ServerParts): Promise<Server> {
  let settings = first;
  const created = Math.floor(clock.now() / 1000);
  const database = await openDatabase(settings, clock, log);
  const { store, pepper } = database;

  const keys = openApiKeys(store, pepper);
  const usage = openUsage(store);
  const identity = openIdentity(keys, store, clock, () => settings.limits.staleCredentialSeconds);
  const administration = await openAdministration({ database, settings: () => settings, clock, teamsChanged: identity.forget });
  const localToken = newLocalToken();

  const upstreams = openUpstreams({
    clock,
    connectSeconds: settings.limits.connectSeconds,
    proxy: settings.outbound.proxy,
    noProxy: settings.outbound.noProxy,
  });
  const assemble = () => {
    const providers = openProviders(settings.providers, upstreams, clock);
    for (const name of providers.unspoken) log.warn({ provider: name }, 'This version does not speak the dialect of this provider: its models do not answer.');
    const pace = settings.models['built-in']?.tokensPerSecond;
    const own = builtIn({ clock, tokens: openTokens, ...(pace ? { tokensPerSecond: pace } : {}) });
    return modelsOf({ settings, builtIn: own.target('built-in'), target: providers.target, created });
  };
  let models = assemble();

  const ledger = openLedger({
    books: usage,
    planOf: administration.planOf,
    reserveOutput: () => settings.limits.reserveOutput,
    countTokens: async (texts) => (await openTokens()).countAll(texts),
    clock,
    log: (problem, cause) => log.error(causeOf(cause), problem),
  });
  const generate = gateway({ models: () => models, ledger, routing: () => settings.routing, waits: () => settings.limits, clock, chance });

  const metrics = openMetrics();
  metrics.gauge('dragoman_usage_rows_waiting', 'Usage rows that are not in the database yet.', () => ledger.pending);
  metrics.gauge('dragoman_known_credentials', 'Credentials in the cache.', () => identity.known);

  let document: OpenApiDocument | undefined;
  const faces: readonly Face[] = [
    chatcompat({ generate, clock, models: (caller) => modelsFor(models, caller), limits: () => settings.limits }),
    admin(administration.routes),
    watch({
      metrics,
      document: (): OpenApiDocument => (document ??= openApi(faces, { version, server: settings.publicUrl || door.url })),
      missing: async () => [...((await isReady(store)) ? [] : ['database']), ...(stopping ? ['stopping'] : [])],
    }),
  ];
  let stopping = false;
  const door = await serve(
    {
      faces,
      identify: (credential, { owner }, { local }) =>
        isLocalToken(credential) ? localOperator(credential, { token: localToken, local, owner }) : identity.identify(credential),
      limits: () => settings.limits,
      keyInQuery: () => settings.auth.keyInQuery,
      clock,
      done: (done) => requestLine({ log, metrics, clock }, done),
    },
    { host: settings.host, port: settings.port },
  );
  metrics.gauge('dragoman_requests_in_flight', 'Requests being answered.', () => door.inFlight());
  const place = join(settings.data, 'server.json');
  await writeFile(place, `${JSON.stringify({ pid: process.pid, url: door.url, startedAt: new Date(clock.now()).toISOString(), version })}\n`);
  const made = await firstUser(store, pepper, { email: settings.adminEmail, key: settings.adminApiKey });
  await writeLocalToken(settings.data, localToken);

  return {
    url: door.url,
    first: made,
    models: () => [...models.list().map(({ name }) => name), ...(settings.models['*'] ? ['any other name'] : [])],
    change(changed) {
      settings = { ...changed, ...unchangeable(first) };
      document = undefined;
      log.level(settings.logLevel);
      models = assemble();
    },
    async close(graceSeconds) {
      stopping = true;
      await door.close(graceSeconds);
      await ledger.close();
      await upstreams.close();
      administration.close();
      await store.close();
      await rm(place, { force: true });
      await rm(localTokenFile(settings.data), { force: true });
      await log.flush();
    },
  };
}

/** What a running server cannot take over stays as it started. */
function unchangeable({ host, port, data, workers, outbound }: Settings) {
  return { host, port, data, workers, outbound };
}

async function isReady(store: Store): Promise<boolean> {
  try {
    await store.ready();
    return true;
  } catch {
    return false;
  }
}

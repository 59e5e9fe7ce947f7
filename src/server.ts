import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Settings } from '#config';
import { chatcompat } from './faces/chatcompat/index.ts';
import { messages } from './faces/messages/index.ts';
import { watch, type OpenApiDocument } from './faces/watch/index.ts';
import { gateway } from './gateway/index.ts';
import { openLedger } from './gateway/ledger/index.ts';
import { openMetrics } from './http/metrics.ts';
import { openApi } from './http/openapi.ts';
import type { Face } from './http/route.ts';
import { serve } from './http/serve.ts';
import { certificatesIn, trusting } from './kit/certificates.ts';
import { systemClock, type Clock } from './kit/clock.ts';
import { randomKey } from './kit/ids.ts';
import { openUpstreams } from './kit/pool.ts';
import { sealer } from './kit/sealing.ts';
import { openTokens } from './kit/tokens.ts';
import { causeOf, type Log } from './log.ts';
import type { Kept } from './faces/chatcompat/responses/kept.ts';
import type { Plan } from './model/plan.ts';
import { modelsOf } from './models.ts';
import { builtIn } from './providers/built-in/built-in.ts';
import { openProviders } from './providers/index.ts';
import { openIdentity } from './resources/api-keys/identify.ts';
import { openApiKeys } from './resources/api-keys/store.ts';
import { firstUser, type FirstUser } from './first-user.ts';
import { openIdempotency } from './resources/idempotency/once.ts';
import { openKeeping } from './resources/stored-responses/index.ts';
import { openUsage } from './resources/usage/store.ts';
import { requestLine } from './request-line.ts';
import { openStore, type Store } from './store/open.ts';
import { masterKey } from './store/master-key.ts';
import { checkMasterKey, secretRow } from './store/secrets.ts';
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

/** The folders that hold the nouns' migrations. */
const migrations = ['resources/users/', 'resources/api-keys/', 'resources/usage/', 'resources/idempotency/', 'resources/stored-responses/'].map(
  (folder) => new URL(folder, import.meta.url),
);

/** Plans that need no entry; one in the settings stands above them. */
const builtInPlans: Readonly<Record<string, Plan>> = { unlimited: {} };

/** Puts the house together and opens the door. */
export async function startServer({ settings: first, log, clock = systemClock, chance = Math.random }: ServerParts): Promise<Server> {
  let settings = first;
  const created = Math.floor(clock.now() / 1000);
  await mkdir(settings.data, { recursive: true });
  const seal = sealer(await masterKey({ value: settings.masterKey, file: join(settings.data, 'master.key') }));
  const store = await openStore({
    folder: settings.data,
    ...(settings.databaseUrl ? { databaseUrl: settings.databaseUrl } : {}),
    migrations,
    clock,
    log: quieter(log),
  });
  await checkMasterKey(store, seal);
  const pepper = await secretRow(store, seal, 'api-key pepper', randomKey);

  const keys = openApiKeys(store, pepper);
  const usage = openUsage(store);
  const identity = openIdentity(keys, store, clock, () => settings.limits.staleCredentialSeconds);

  const idempotency = await openIdempotency({
    store,
    seal,
    pepper: await secretRow(store, seal, 'idempotency pepper', randomKey),
    clock,
    longestSeconds: () => Math.max(settings.limits.requestSeconds, settings.limits.streamSeconds),
    log: (problem, cause) => log.error(causeOf(cause), problem),
  });

  const keeping = openKeeping<Kept>({
    store,
    seal,
    clock,
    retentionDays: () => settings.responses.retentionDays,
    log: (problem, cause) => log.error(causeOf(cause), problem),
  });

  const upstreams = openUpstreams({
    clock,
    connectSeconds: () => settings.limits.connectSeconds,
    proxy: settings.outbound.proxy,
    noProxy: settings.outbound.noProxy,
    secureContext: settings.outbound.caFile ? trusting(certificatesIn(settings.outbound.caFile)) : undefined,
  });
  const assemble = () => {
    const providers = openProviders(settings.providers, upstreams, clock);
    for (const name of providers.unspoken) log.warn({ provider: name }, 'This version does not speak the dialect of this provider: its models do not answer.');
    const pace = settings.models['built-in']?.tokensPerSecond;
    const own = builtIn({ clock, tokens: openTokens, ...(pace ? { tokensPerSecond: pace } : {}) });
    return modelsOf({ settings, builtIn: own.target('built-in'), target: providers.target, created });
  };
  let models = assemble();

  const countTokens = async (texts: Iterable<string>) => (await openTokens()).countAll(texts);
  const ledger = openLedger({
    books: usage,
    planOf: ({ plan }) => settings.plans[plan] ?? builtInPlans[plan],
    reserveOutput: () => settings.limits.reserveOutput,
    countTokens,
    clock,
    log: (problem, cause) => log.error(causeOf(cause), problem),
  });
  const generate = gateway({ models: () => models, ledger, routing: () => settings.routing, waits: () => settings.limits, clock, chance });

  const metrics = openMetrics();
  metrics.gauge('dragoman_usage_rows_waiting', 'Usage rows that are not in the database yet.', () => ledger.pending);
  metrics.gauge('dragoman_known_credentials', 'Credentials in the cache.', () => identity.known);
  metrics.gauge('dragoman_bad_credentials', 'Bad credentials in their own cache.', () => identity.bad);

  let document: OpenApiDocument | undefined;
  const faces: readonly Face[] = [
    chatcompat({ ...keeping, storing: () => settings.responses.store, generate, clock, models: () => models, limits: () => settings.limits }),
    messages({ generate, clock, models: () => models, limits: () => settings.limits, countTokens }),
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
      identify: identity.identify,
      limits: () => settings.limits,
      keyInQuery: () => settings.auth.keyInQuery,
      clock,
      once: idempotency.once,
      done: (done) => requestLine({ log, metrics, clock }, done),
    },
    { host: settings.host, port: settings.port },
  );
  metrics.gauge('dragoman_requests_in_flight', 'Requests being answered.', () => door.inFlight());
  metrics.gauge('dragoman_client_connections', 'Connections of clients.', () => door.connections());
  const place = join(settings.data, 'server.json');
  await writeFile(place, `${JSON.stringify({ pid: process.pid, url: door.url, startedAt: new Date(clock.now()).toISOString(), version })}\n`);
  const made = await firstUser(store, pepper, { email: settings.adminEmail, key: settings.adminApiKey });

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
      await keeping.close();
      await idempotency.close();
      await ledger.close();
      await upstreams.close();
      await store.close();
      await rm(place, { force: true });
      await log.flush();
    },
  };
}

/** What a running server cannot take over stays as it started. */
function unchangeable({ host, port, data, workers, outbound }: Settings) {
  return { host, port, data, workers, outbound };
}

/** What the store does in its daily round is for those who look for it. */
function quieter(log: Log): Log {
  return { ...log, info: log.debug };
}

async function isReady(store: Store): Promise<boolean> {
  try {
    await store.ready();
    return true;
  } catch {
    return false;
  }
}

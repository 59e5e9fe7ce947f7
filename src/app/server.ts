import type { Settings } from '#config/index';
import { openAdministration } from './administration.ts';
import { openAccounting, openJournalOf, type Accounting, type BooksDeps } from './accounting.ts';
import { isReady, openDatabase } from './database.ts';
import { admin } from '#faces/admin/index';
import { chatcompat } from '#faces/chatcompat/index';
import { gencompat } from '#faces/gencompat/index';
import { messages } from '#faces/messages/index';
import { watch, type OpenApiDocument } from '#faces/monitoring/index';
import { embedding } from '#gateway/tasks/embed';
import { conforming } from '#gateway/rules/conforming';
import type { Guards } from '#gateway/rules/guarded';
import { openGuards } from '#gateway/guards/index';
import { gateway } from '#gateway/pipeline';
import { ResponseCache } from '#gateway/rules/response-cache';
import { openHealth } from '#gateway/routing/health';
import { regionStates, type RegionState } from '#gateway/routing/regions';
import { modelsFor, modelsWithin, type Models } from '#gateway/rules/resolved';
import { openLedger } from '#ledger/index';
import { rawSender } from '#gateway/tasks/send-raw';
import { searching } from '#gateway/searching/index';
import { addressOf, openEngine } from '#gateway/searching/engines';
import { openMetrics, type Figures } from '#telemetry/metrics';
import { openApi } from '#http/openapi';
import type { Face } from '#http/route';
import { serve } from '#http/server';
import { ByteBudget, memoryOf, type ByteLimits } from '#kit/memory/byte-budget';
import { systemClock, type Clock } from '#kit/async/clock';
import { QueueFull } from '#kit/async/fair-semaphore';
import { openPatterns } from '#kit/patterns/index';
import { randomKey } from '#kit/crypto/ids';
import { runAll } from '#kit/async/run-all';
import { openGuardedFetch, type Outside } from '#kit/net/guarded-fetch';
import { openTokens } from '#kit/tokens/index';
import { isLocalToken, localOperator, newLocalToken } from './local-token.ts';
import { causeOf, type Log } from '#telemetry/log';
import type { StoredResponseBody } from '#faces/chatcompat/responses/stored-body';
import type { Generate } from '#core/generate';
import type { Caller } from '#core/context';
import { queueFull } from '#core/fault';
import type { LeaseSource } from '#core/lease';
import type { CountTokens } from '#core/measure';
import { steps } from '#core/steps';
import { modelsOf } from './models.ts';
import { builtIn } from '#providers/built-in/built-in';
import { openSentences } from '#providers/built-in/sentence/sentence';
import { openConformance } from '#providers/built-in/schema/conformance';
import { openProviders } from '#providers/index';
import { audit } from '#resources/audit/store';
import { openIdentity } from '#resources/api-keys/identify';
import { openRights, type Ongoing } from '#resources/api-keys/rights';
import { openApiKeys, type Found } from '#resources/api-keys/store';
import { announced } from './server-file.ts';
import { doctorRoutes } from './diagnostics/routes.ts';
import { firstUser, type FirstUser } from './first-user.ts';
import { openIdempotency } from '#resources/idempotency/once';
import { regionRoutes } from './diagnostics/region-routes.ts';
import { openKeeping } from '#resources/stored-responses/index';
import { requestLine } from './request-log.ts';
import { examine } from '#store/examine';
import { secretRow } from '#store/secrets';
import { outwardOf, upstreamsOf } from './upstreams.ts';
import { version } from './version.ts';

export interface ServerDeps {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock?: Clock;
  /** A random number from 0 to 1. */
  readonly chance?: () => number;
  /** Where this process is one of several workers: the process that leads them. */
  readonly parent?: Parent;
  /** The network outside, for addresses that users choose; the internet when absent. */
  readonly outside?: Outside;
  /** Bytes that requests may hold in memory, together and of one user. */
  readonly memory?: ByteLimits;
  /** What this process held belongs to somebody else now: it should end. */
  readonly lost?: (cause: unknown) => void;
}

/** What a worker leaves to its parent: whatever is one for the machine. */
export interface Parent {
  readonly leases: LeaseSource;
  /** Where its journal is to lie. */
  readonly journal: { readonly holder: string; readonly writer: string };
  /** Good for commands on this machine. */
  readonly localToken: string;
  /** The figures of all processes, as Prometheus reads them. */
  metrics(): Promise<string>;
  /** How the regions stand, as all processes see them together. */
  regions(): Promise<readonly RegionState[]>;
  /** Has all processes forget what ails the regions. */
  resetRegions(): Promise<void>;
  /** What the machine lacks before it can take requests. */
  missing(): Promise<readonly string[]>;
}

export interface Server {
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  /** Made by this start, if it was the first. */
  readonly first: FirstUser | undefined;
  /** Names of the models that answer. */
  readonly models: () => readonly string[];
  /** Requests being answered now, where one process knows of all of them. */
  readonly inFlight?: () => number;
  /** Takes new settings; what needs a restart is left as it is. Throws, or rejects, where they cannot be taken: then the old ones hold. */
  change(settings: Settings): void | Promise<void>;
  /** Stops listening, lets what is in flight finish, settles the books and lets go of the folder. */
  close(graceSeconds: number): Promise<void>;
}

/** One process that serves. */
export interface ServingProcess extends Server {
  /** What it has counted. */
  figures(): Promise<Figures>;
  /** How the regions stand, as it sees them. */
  regions(): readonly RegionState[];
  /** Forgets what ails them. */
  resetRegions(): void;
}

/** Of a process, for bodies with what is made of them, fetched media, whole answers and what is read of kept responses: of everybody, and of one user. */
const heldBytes: ByteLimits = { total: 512 * 2 ** 20, each: 128 * 2 ** 20 };

/** Composes the server and starts to listen. */
export async function startServer({
  settings: first,
  log,
  clock = systemClock,
  chance = Math.random,
  parent,
  outside,
  memory = heldBytes,
  lost = () => {},
}: ServerDeps): Promise<ServingProcess> {
  let settings = first;
  const created = Math.floor(clock.now() / 1000);
  const database = await openDatabase(settings, clock, log);
  const { store, seal, pepper } = database;

  const keys = openApiKeys(store, pepper);
  const met = async <Some extends Iterable<Found | undefined>>(found: Some): Promise<Some> => {
    for (const one of found) if (one) await administration.meets(one.caller);
    return found;
  };
  const find: typeof keys.find = async (credentials) => met(await keys.find(credentials));
  const identity = openIdentity({ find }, store, clock, () => settings.limits.staleCredentialSeconds);
  const administration = await openAdministration({ database, settings: () => settings, clock, teamsChanged: identity.forget });
  let ongoing = (): readonly Ongoing[] => [];
  const rights = openRights({
    keys: {
      async callers(keyIds) {
        const found = await keys.callers(keyIds);
        await met(found.values());
        return found;
      },
    },
    store,
    clock,
    ongoing: () => ongoing(),
    log: (problem, cause) => log.error(causeOf(cause), problem),
  });
  const localToken = parent?.localToken ?? newLocalToken();

  const keeping = openKeeping<StoredResponseBody>({
    store,
    seal,
    clock,
    retentionDays: () => settings.responses.retentionDays,
    mostRuns: () => settings.responses.maxRuns,
    mostBytes: () => settings.responses.maxBytes,
    log: (problem, cause) => log.error(causeOf(cause), problem),
  });

  const upstreams = upstreamsOf(() => settings, clock);
  const { allow } = settings.outbound;
  const outward = { clock, ...outwardOf(settings), outside };
  const media = openGuardedFetch({ ...outward, allow });
  const sentences = openSentences();
  const assembled = (settings: Settings) => {
    const providers = openProviders(settings.providers, { upstreams, clock, fetcher: media });
    for (const name of providers.unspoken) log.warn({ provider: name }, 'This version does not speak the dialect of this provider: its models do not answer.');
    const pace = settings.models['built-in']?.tokensPerSecond;
    const own = builtIn({ clock, tokens: openTokens, sentences, ...(pace ? { tokensPerSecond: pace } : {}) });
    return { providers, models: modelsOf({ settings, builtIn: own.target, targets: providers.targets, created }) };
  };
  let { providers, models } = assembled(settings);

  const countTokens: CountTokens = async (texts, asking) => {
    try {
      return await (await openTokens()).countAll(texts, asking);
    } catch (error) {
      throw error instanceof QueueFull ? queueFull(error) : error;
    }
  };
  const accounting = parent
    ? await booksOfWorker(parent, { settings: () => settings, clock, log })
    : await openAccounting({ database, settings: () => settings, clock, log, lost });
  const idempotency = await openIdempotency({
    store,
    seal,
    boot: accounting.holder,
    pepper: await secretRow(store, seal, 'idempotency pepper', randomKey),
    clock,
    longestSeconds: () => Math.max(settings.limits.requestSeconds, settings.limits.streamSeconds),
    log: (problem, cause) => log.error(causeOf(cause), problem),
  });

  const ledger = openLedger({
    source: accounting.source,
    journal: accounting.journal,
    planOf: administration.planOf,
    teamPlan: administration.teamPlan,
    reserveOutput: () => settings.limits.reserveOutput,
    countTokens,
    clock,
    log: (problem, cause) => log.error(causeOf(cause), problem),
  });
  const modelsSeen = (caller: Caller) => {
    const lists = administration.residencies(caller);
    return modelsFor(lists ? modelsWithin(models, lists) : models, caller);
  };
  const health = openHealth(() => settings.routing, clock, chance);
  let answers = new ResponseCache(clock);
  // A model that was named by an alias is asked by its other names too.
  const ttlsOf = ({ cache }: Settings, found: Models) =>
    new Map(Object.entries(cache).map(([name, { ttlSeconds }]) => [found.find(name)?.name ?? name, ttlSeconds]));
  let ttls = ttlsOf(settings, models);
  const { generate, booked, affords } = gateway({
    models: modelsSeen,
    ledger,
    health,
    routing: () => settings.routing,
    waits: () => settings.limits,
    clock,
    guards: () => guards,
    answers: () => answers,
    ttlOf: ({ name }) => ttls.get(name) ?? ttls.get('*'),
  });
  const finding = openPatterns(clock);
  const conformance = openConformance(clock);
  const guardsOf = ({ guard }: Settings): Guards =>
    openGuards(guard.checks, { generate: booked, pass: rawSender(booked), find: (model) => models.find(model), finding, upstreams });
  let guards = guardsOf(settings);
  // The engine's address is the operator's, and nobody else's exception. Pages are asked for a shorter time: there are others.
  const pages = openGuardedFetch({ ...outward, allow, seconds: 6 });
  const engines = engineOf(({ search }) => {
    const address = addressOf(search);
    return openEngine(search, openGuardedFetch({ ...outward, allow: address === undefined ? [] : [address] }));
  });
  const searched = (stepsEach: number, inner: Generate) => searching({ models: modelsSeen, engine: () => engines(settings), fetcher: pages, stepsEach }, inner);
  const generateSearched = searched(1, generate);
  const regions = () => regionStates(models, health);
  const resetRegions = () => health.reset();

  const standInsOf = ({ defaults, providers }: Settings) => ({
    preferred: defaults.gencompat,
    lastResort: Object.keys(providers).length === 0 ? 'built-in' : undefined,
    publishers: new Set(['google', ...Object.values(providers).map(({ publisher }) => publisher)]),
  });
  let standIns = standInsOf(settings);

  const metrics = openMetrics();
  metrics.gauge('dragoman_usage_rows_waiting', 'Usage rows that are not in the database yet.', () => accounting.pending);
  metrics.gauge('dragoman_limited_accounts', 'Limited accounts in memory.', () => ledger.accounts);
  metrics.gauges('dragoman_region_ok', 'Whether a region answers for a model.', ['provider', 'region', 'model'], () =>
    regions().map(({ provider, region, model, state }) => ({ labels: { provider, region, model }, value: state === 'ok' ? 1 : 0 })),
  );
  metrics.gauges('dragoman_region_latency_seconds', 'Moving average of the time until a region speaks.', ['provider', 'region', 'model'], () =>
    regions().flatMap(({ provider, region, model, latencyMs }) =>
      latencyMs === null ? [] : [{ labels: { provider, region, model }, value: latencyMs / 1000 }],
    ),
  );
  metrics.gauge('dragoman_kept_answer_bytes', 'Memory of answers that are kept for equal requests.', () => answers.bytes);
  metrics.gauge('dragoman_known_credentials', 'Credentials in the cache.', () => identity.known);
  metrics.gauge('dragoman_bad_credentials', 'Bad credentials in their own cache.', () => identity.bad);

  let document: OpenApiDocument | undefined;
  const budget = new ByteBudget(memory);
  const faces: readonly Face[] = [
    chatcompat({
      ...keeping,
      rights,
      memoryOf: (userId) => memoryOf(budget, userId),
      affords,
      storing: () => settings.responses.store,
      generate: generateSearched,
      embed: embedding(generate),
      pass: rawSender(generate),
      embeddingBalance: () => settings.charge.embeddings,
      clock,
      models: modelsSeen,
      limits: () => settings.limits,
    }),
    messages({ generate: generateSearched, clock, models: modelsSeen, limits: () => settings.limits, countTokens }),
    gencompat({
      generate: searched(steps.round, conforming(conformance, generate)),
      clock,
      models: modelsSeen,
      limits: () => settings.limits,
      countTokens,
      embed: embedding(generate),
      embeddingBalance: () => settings.charge.embeddings,
      standIns: () => standIns,
    }),
    admin([
      ...administration.routes,
      ...regionRoutes(parent ?? { regions, resetRegions }, (by) => audit(store, { by, action: 'regions.reset', target: { kind: 'regions', id: null } })),
      ...doctorRoutes({
        settings: () => settings,
        clock,
        database: () => examine(store.db, clock),
        providers: () => providers,
        regions: (parent ?? { regions }).regions,
      }),
    ]),
    watch({
      clock,
      metrics: parent ? { contentType: metrics.contentType, text: () => parent.metrics() } : metrics,
      document: (): OpenApiDocument => (document ??= openApi(faces, { version, server: settings.publicUrl || listening.url })),
      missing: async () => {
        const [database, machine] = await Promise.all([isReady(store), parent?.missing() ?? []]);
        return [...new Set([...(database ? [] : ['database']), ...(stopping ? ['stopping'] : []), ...machine])];
      },
    }),
  ];
  let stopping = false;
  const listening = await serve(
    {
      faces,
      identify: (credential, { owner }, { local }) =>
        isLocalToken(credential) ? localOperator(credential, { token: localToken, local, owner }) : identity.identify(credential),
      limits: () => settings.limits,
      keyInQuery: () => settings.auth.keyInQuery,
      clock,
      once: idempotency.once,
      budget,
      done: (done) => requestLine({ log, metrics, clock }, done),
    },
    { host: settings.host, port: settings.port },
  );
  ongoing = listening.ongoing;
  metrics.gauge('dragoman_requests_in_flight', 'Requests being answered.', () => listening.inFlight());
  metrics.gauge('dragoman_held_bytes', 'Memory that requests hold: bodies and what is made of them, fetched media, whole answers.', () => budget.held);
  metrics.gauge('dragoman_client_connections', 'Connections of clients.', () => listening.connections());
  const made = parent ? undefined : await firstUser(store, pepper, { email: settings.adminEmail, key: settings.adminApiKey });
  const withdraw = parent ? undefined : await announced(settings.data, { url: listening.url, localToken }, clock);

  return {
    url: listening.url,
    first: made,
    figures: () => metrics.figures(),
    regions,
    resetRegions,
    inFlight: listening.inFlight,
    models: () => [...models.list().map(({ name }) => name), ...(settings.models['*'] ? ['any other name'] : [])],
    change(changed) {
      // All that may throw comes first: where something does, nothing has changed.
      const next = { ...changed, ...unchangeable(first) };
      const made = { ...assembled(next), standIns: standInsOf(next), guards: guardsOf(next) };
      const nextTtls = ttlsOf(next, made.models);
      engines(next);
      settings = next;
      ({ providers, models, standIns, guards } = made);
      ttls = nextTtls;
      document = undefined;
      answers = new ResponseCache(clock);
      log.level(settings.logLevel);
    },
    async close(graceSeconds) {
      stopping = true;
      await runAll([
        () => listening.close(graceSeconds),
        () => rights.close(),
        () => keeping.close(),
        () => idempotency.close(),
        () => ledger.close(),
        () => accounting.close(),
        () => upstreams.close(),
        () => finding.close(),
        () => conformance.close(),
        () => administration.close(),
        () => store.close(),
        () => withdraw?.(),
        () => log.flush(),
      ]);
    },
  };
}

/** Made anew when the settings were. */
function engineOf<Engine>(open: (settings: Settings) => Engine): (settings: Settings) => Engine {
  let made: { readonly settings: Settings; readonly engine: Engine } | undefined;
  return (settings) => (made?.settings === settings ? made : (made = { settings, engine: open(settings) })).engine;
}

/** A worker writes a journal of its own; its parent ships it. */
async function booksOfWorker({ leases: source, journal: place }: Parent, parts: Pick<BooksDeps, 'settings' | 'clock' | 'log'>): Promise<Accounting> {
  const journal = await openJournalOf({ ...parts, ...place });
  return { source, journal, holder: place.holder, pending: 0, close: () => journal.close() };
}

/** What a running server cannot take over stays as it started. */
export function unchangeable({ host, port, data, databaseUrl, workers, outbound }: Settings) {
  return { host, port, data, ...(databaseUrl === undefined ? {} : { databaseUrl }), workers, outbound };
}

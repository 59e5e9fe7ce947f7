import { createHmac } from 'node:crypto';
import { join } from 'node:path';
import type { Settings } from '#config/index';
import { restartSettings } from '#config/schema/index';
import type { ConvertDocument } from '#core/document';
import type { RegionState } from '#gateway/routing/regions';
import { addressHere } from '#http/own-address';
import { serve, type HttpServerDeps, type Listening } from '#http/server';
import { openUploads } from '#store/uploads';
import { systemClock, type Clock } from '#kit/async/clock';
import { runAll } from '#kit/async/run-all';
import { ByteBudget, type ByteLimits } from '#kit/memory/byte-budget';
import type { Outside } from '#kit/net/guarded-dial';
import type { Ongoing } from '#resources/api-keys/rights';
import { openLimitAlerts } from '#resources/usage/limit-alerts';
import { problemsTo, type Log } from '#telemetry/log';
import { openMetrics, type Figures } from '#telemetry/metrics';
import { openActing } from './acting.ts';
import { openAccounting, openJournalOf, type Accounting, type AccountingDeps } from './accounting.ts';
import { openCalls } from './calls.ts';
import { openDatabase } from './database.ts';
import { firstUser, type FirstUser } from './first-user.ts';
import { registerGauges } from './gauges.ts';
import { openIdentities } from './identities.ts';
import { interfaces, perRuntime } from './interfaces.ts';
import { openKnowledge } from './knowledge.ts';
import { actingHeader, isLocalToken, localOperator, newLocalToken } from './local-token.ts';
import type { Parent } from './parent.ts';
import { openRecords } from './records.ts';
import { requestLine } from './request-log.ts';
import { announced } from './server-file.ts';

export interface ServerDeps {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock?: Clock;
  readonly parent?: Parent;
  /** Replaces the internet, for addresses that users choose. */
  readonly outside?: Outside;
  /** Replaces what makes text of documents. */
  readonly convert?: ConvertDocument;
  /** Memory that requests may hold, of all users and of each. */
  readonly memory?: ByteLimits;
  /** False: it works on jobs, and listens nowhere. */
  readonly listens?: boolean;
  /** Called when another machine has taken over this one's leases: the process should end. */
  readonly lost?: (cause: unknown) => void;
}

export interface Server {
  /** `http://127.0.0.1:8080` */
  readonly url: string;
  /** The first user, on the first start only. */
  readonly first: FirstUser | undefined;
  readonly models: () => readonly string[];
  /** Requests in flight; absent in the parent of workers, which does not know. */
  readonly inFlight?: () => number;
  /** Applies new settings, except those that need a restart. Throws or rejects if it cannot; the old ones then stay in effect. */
  change(settings: Settings): void | Promise<void>;
  /** Counts a reload of the settings. */
  reloaded(result: 'applied' | 'refused'): void;
  /** Writes down what running calls have cost so far, before this process ends at once. */
  settleAll(): void | Promise<void>;
  /** Stops listening, lets requests in flight finish, settles all usage and unlocks the data folder. */
  close(graceSeconds: number): Promise<void>;
}

export interface ServingProcess extends Server {
  figures(): Promise<Figures>;
  regions(): readonly RegionState[];
  /** Ends all cooldowns. */
  resetRegions(): void;
}

/** Memory per process for bodies with what is made of them, fetched media, buffered answers and stored responses that are read: of all users, and of each. */
const heldBytes: ByteLimits = { total: 512 * 2 ** 20, each: 128 * 2 ** 20 };

/** Of a process that only works on jobs. */
const nowhere: Listening = { url: '', inFlight: () => 0, waiting: () => 0, connections: () => 0, ongoing: () => [], close: async () => {} };

/** Composes the server and starts to listen. */
export async function startServer(deps: ServerDeps): Promise<ServingProcess> {
  const { settings: first, log, clock = systemClock, parent, outside, convert, memory = heldBytes, lost = () => {}, listens = true } = deps;
  let currentSettings = () => first;
  const settings = () => currentSettings();
  let ongoing = (): readonly Ongoing[] => [];
  const database = await openDatabase(first, clock, log);
  const { store, pepper } = database;
  const identities = await openIdentities({ database, settings, clock, log, issuer: () => settings().publicUrl || listening.url, ongoing: () => ongoing() });
  const { identity, administration, rights, people, prompts } = identities;
  const accounting = parent ? await accountingOfWorker(parent, { settings, clock, log }) : await openAccounting({ database, settings, clock, log, lost });
  const base = { database, first, settings, clock, log };
  const { keeping, idempotency, thoughts } = await openRecords({ ...base, boot: accounting.holder, left: (context) => calls.pipeline.left(context) });
  const alerts = openLimitAlerts({ store, clock, isOn: () => settings().alerts.url !== '', log: problemsTo(log) });
  const metrics = openMetrics();
  const acting = openActing({ ...base, outside, address: () => addressOf(settings(), listening), enters: (context) => calls.pipeline.enters(context) });
  const hop = hopOf(pepper);
  const around = { store, clock, log, outside, tools: acting.tools, hop };
  const calls = openCalls({ ...around, settings: first, metrics, accounting, administration, thoughts, prompts: prompts.written, reached: alerts.note });
  currentSettings = () => calls.runtime().settings;
  const { change, closing, regions, resetRegions, modelNames } = calls;
  const uploads = await openUploads(join(first.data, 'uploads'), clock);
  const budget = new ByteBudget(memory);
  const knowledge = await openKnowledge({ ...base, calls, acting, convert, rights, budget, planOf: administration.planOf, uploads });
  const shared = { calls, keeping, prompts: prompts.kept, rights, administration, people, knowledge, acting, metrics, budget, store, clock, parent };
  const localToken = parent?.localToken ?? newLocalToken();
  let isStopping = false;
  const makeFirstUser = async () => (parent || !listens ? undefined : firstUser(store, pepper, { email: first.adminEmail, key: first.adminApiKey }));
  // A key that the operator chose is good from the first request on; a new one is made when the port is ours and it can be printed.
  let made = first.adminApiKey === undefined ? undefined : await makeFirstUser();
  const http: HttpServerDeps = {
    faces: interfaces({ ...shared, journal: accounting.journal, isStopping: () => isStopping }),
    ...identifying(identities, localToken),
    limits: () => settings().limits,
    keyInQuery: () => settings().auth.keyInQuery,
    hop,
    surroundings: perRuntime(calls.runtime, () => surroundingsIn(settings())),
    clock,
    once: idempotency.once,
    budget,
    uploads,
    done: (done) => requestLine({ log, metrics, clock }, done),
  };
  const listening: Listening = listens ? await serve(http, { host: first.host, port: first.port }) : nowhere;
  ({ ongoing } = listening);
  registerGauges({ metrics, accounting, calls, identity, budget, listening });
  made ??= await makeFirstUser();
  const withdraw = parent || !listens ? undefined : await announced(first.data, { url: listening.url, localToken }, clock);

  return {
    url: listening.url,
    first: made,
    figures: () => metrics.figures(),
    regions,
    resetRegions,
    inFlight: () => listening.inFlight() + keeping.running(),
    models: modelNames,
    change(changed) {
      identities.withSettings(() => change({ ...changed, ...unchangeable(first) }));
      log.level(settings().logLevel);
    },
    reloaded: (result) => metrics.reloaded(result),
    settleAll: () => accounting.journal.settleAll(),
    async close(graceSeconds) {
      isStopping = true;
      const ends = clock.monotonic() + graceSeconds * 1000;
      await runAll([
        () => listening.close(graceSeconds),
        () => keeping.close(Math.max(0, (ends - clock.monotonic()) / 1000)), // a background response that is being made is in flight as well
        () => rights.close(),
        () => idempotency.close(),
        () => knowledge.close(),
        () => acting.close(),
        () => thoughts.close(),
        ...closing,
        () => identities.close(),
        () => store.close(),
        () => withdraw?.(),
        () => log.flush(),
      ]);
    },
  };
}

/** The same on all machines of one database. */
const hopOf = (pepper: Buffer): string => createHmac('sha256', pepper).update('hop').digest('base64url').slice(0, 16);

/** Whose credential it is: that of a user, or of the operator of this machine. */
const identifying = (
  { identity, people, userBy }: Pick<Awaited<ReturnType<typeof openIdentities>>, 'identity' | 'people' | 'userBy'>,
  token: string,
): Pick<HttpServerDeps, 'identify' | 'identifySession'> => ({
  identify: (credential, { owner }, exchange) =>
    isLocalToken(credential)
      ? localOperator(credential, { token, local: exchange.local, owner, email: exchange.header(actingHeader), userBy })
      : identity.identify(credential, exchange.connection),
  identifySession: people.signedIn.identify,
});

const surroundingsIn = ({ trustedProxies, cors: { origins }, publicUrl }: Settings) => ({
  trustedProxies,
  origins: origins.map((one) => (one === '*' ? one : new URL(one).origin)), // as browsers write them
  publicUrl,
});

/** The accounting of a worker: it writes a journal of its own, which its parent ships. */
async function accountingOfWorker({ leases: source, journal: place }: Parent, deps: Pick<AccountingDeps, 'settings' | 'clock' | 'log'>): Promise<Accounting> {
  const journal = await openJournalOf({ ...deps, ...place });
  return { source, journal, holder: place.holder, pending: 0, close: () => journal.close() };
}

/** The settings that need a restart: a running server keeps those it started with. Without `logFormat`, which is read only when the log is opened. */
export const unchangeable = (first: Settings): Partial<Settings> =>
  Object.fromEntries(restartSettings.flatMap((name) => (name === 'logFormat' || first[name] === undefined ? [] : [[name, first[name]]])));

/** Where browsers reach this server. */
const addressOf = ({ publicUrl }: Settings, { url }: Listening): string => publicUrl || addressHere(url);

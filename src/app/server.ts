import type { Settings } from '#config/index';
import type { RegionState } from '#gateway/routing/regions';
import { serve, type Listening } from '#http/server';
import { systemClock, type Clock } from '#kit/async/clock';
import { runAll } from '#kit/async/run-all';
import { ByteBudget, type ByteLimits } from '#kit/memory/byte-budget';
import type { Outside } from '#kit/net/guarded-fetch';
import type { Ongoing } from '#resources/api-keys/rights';
import type { Log } from '#telemetry/log';
import { openMetrics, type Figures } from '#telemetry/metrics';
import { openAccounting, openJournalOf, type Accounting, type BooksDeps } from './accounting.ts';
import { openCalls } from './calls.ts';
import { openDatabase } from './database.ts';
import { firstUser, type FirstUser } from './first-user.ts';
import { registerGauges } from './gauges.ts';
import { openIdentities } from './identities.ts';
import { interfaces } from './interfaces.ts';
import { isLocalToken, localOperator, newLocalToken } from './local-token.ts';
import type { Parent } from './parent.ts';
import { openRecords } from './records.ts';
import { requestLine } from './request-log.ts';
import { announced } from './server-file.ts';

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
export async function startServer(deps: ServerDeps): Promise<ServingProcess> {
  const { settings: first, log, clock = systemClock, chance = Math.random, parent, outside, memory = heldBytes, lost = () => {} } = deps;
  let currentSettings = () => first;
  const settings = () => currentSettings();
  let ongoing = (): readonly Ongoing[] => [];
  const database = await openDatabase(first, clock, log);
  const { store, pepper } = database;
  const { identity, administration, rights } = await openIdentities({ database, settings, clock, log, ongoing: () => ongoing() });
  const accounting = parent ? await accountingOfWorker(parent, { settings, clock, log }) : await openAccounting({ database, settings, clock, log, lost });
  const { keeping, idempotency } = await openRecords({ database, boot: accounting.holder, settings, clock, log });
  const calls = openCalls({ settings: first, accounting, administration, clock, chance, log, outside });
  currentSettings = () => calls.runtime().settings;
  const { change, closing, regions, resetRegions, modelNames } = calls;
  const metrics = openMetrics();
  const budget = new ByteBudget(memory);
  const parts = { calls, keeping, rights, administration, metrics, budget, store, clock, parent };
  const localToken = parent?.localToken ?? newLocalToken();
  let isStopping = false;
  const listening: Listening = await serve(
    {
      faces: interfaces({ ...parts, url: () => listening.url, isStopping: () => isStopping }),
      identify: (credential, { owner }, { local }) =>
        isLocalToken(credential) ? localOperator(credential, { token: localToken, local, owner }) : identity.identify(credential),
      limits: () => settings().limits,
      keyInQuery: () => settings().auth.keyInQuery,
      clock,
      once: idempotency.once,
      budget,
      done: (done) => requestLine({ log, metrics, clock }, done),
    },
    { host: first.host, port: first.port },
  );
  ({ ongoing } = listening);
  const { url, inFlight, close } = listening;
  registerGauges({ metrics, accounting, calls, identity, budget, listening });
  const made = parent ? undefined : await firstUser(store, pepper, { email: first.adminEmail, key: first.adminApiKey });
  const withdraw = parent ? undefined : await announced(first.data, { url, localToken }, clock);

  return {
    url,
    first: made,
    figures: () => metrics.figures(),
    regions,
    resetRegions,
    inFlight,
    models: modelNames,
    change(changed) {
      change({ ...changed, ...unchangeable(first) });
      log.level(settings().logLevel);
    },
    async close(graceSeconds) {
      isStopping = true;
      await runAll([
        () => close(graceSeconds),
        () => rights.close(),
        () => keeping.close(),
        () => idempotency.close(),
        ...closing,
        () => administration.close(),
        () => store.close(),
        () => withdraw?.(),
        () => log.flush(),
      ]);
    },
  };
}

/** A worker writes a journal of its own; its parent ships it. */
async function accountingOfWorker({ leases: source, journal: place }: Parent, parts: Pick<BooksDeps, 'settings' | 'clock' | 'log'>): Promise<Accounting> {
  const journal = await openJournalOf({ ...parts, ...place });
  return { source, journal, holder: place.holder, pending: 0, close: () => journal.close() };
}

/** What a running server cannot take over stays as it started. */
export function unchangeable({ host, port, data, databaseUrl, workers, outbound }: Settings) {
  return { host, port, data, ...(databaseUrl === undefined ? {} : { databaseUrl }), workers, outbound };
}

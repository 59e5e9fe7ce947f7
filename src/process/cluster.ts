import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { Settings } from '#config/index';
import { announced } from '#app/server-file';
import { type MachineAccounting, openMachineAccounting } from '#app/accounting';
import { firstUser } from '#app/first-user';
import { missingOf, openDatabase } from '#app/database';
import { subLeases } from '#ledger/sharing/sub-leases';
import { statesTogether } from '#gateway/routing/regions';
import { type Clock, systemClock } from '#kit/async/clock';
import { runAll } from '#kit/async/run-all';
import { listeningProblem } from '#kit/net/listening-problem';
import { problemsTo, type Log } from '#telemetry/log';
import { newLocalToken } from '#app/local-token';
import { reloadAll, type Reloading } from './reload.ts';
import { type Server, unchangeable } from '#app/server';
import type { LeaseSource, PermitKind } from '#core/lease';
import { type ParentAnswers, type Reached, withinASecond } from './ipc.ts';
import type { AnswersFor, WorkerHandle } from './worker-handle.ts';
import { openWorkerPool } from './worker-pool.ts';
import { counted, type Figures, merged, type Metrics, openMetrics, summed } from '#telemetry/metrics';

export interface ClusterDeps {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock?: Clock;
  /** Called when no worker serves and none can be started, or when another machine has taken over this one's leases: the process should end. */
  readonly lost: (cause: unknown) => void;
}

/** Seconds that workers get to close, beyond those for the requests in flight. */
const closingSeconds = 10;

/**
 * Starts a server of several processes. This one has the data folder, the first user, and the machine's leases and metrics; its workers answer the requests.
 * @throws what a worker throws while it starts, if none can be started
 */
export async function startWorkers({ settings: first, log, clock = systemClock, lost }: ClusterDeps): Promise<Server> {
  const database = await openDatabase(first, clock, log);
  const { store, pepper } = database;
  let settings: Settings = first;
  const accounting = await openMachineAccounting({ database, settings: () => settings, clock, log, lost });
  const localToken = newLocalToken();
  const port = await freePort(first);
  const made = await firstUser(store, pepper, { email: first.adminEmail, key: first.adminApiKey });
  settings = { ...first, port };
  let models: readonly string[] = [];
  let isUp = false;
  let isStopping = false;

  const leases = subLeases({
    source: accounting.source,
    settledOf: accounting.settledOf,
    takeSettled: accounting.takeSettled,
    longestSeconds: () => Math.max(settings.limits.requestSeconds, settings.limits.streamSeconds),
    clock,
    log: problemsTo(log),
  });
  const serving = () => workers.serving;
  const metrics = openClusterMetrics(clock, serving);
  metrics.own.gauge('dragoman_usage_rows_waiting', 'Usage rows not yet written to the database.', () => accounting.pending);
  metrics.own.gauge('dragoman_shared_accounts', 'Limited accounts shared by the workers.', () => leases.accounts);
  metrics.own.gauge('dragoman_workers', 'Worker processes serving requests.', () => serving().length);
  accounting.source.contact?.onReached((lapsed) => {
    for (const { channel } of workers.all) channel.tell('reached', reached(accounting, clock, lapsed));
  });

  const started = Promise.withResolvers<string>();
  const missing = async () => [...(await missingOf(store)), ...(isStopping ? ['stopping'] : [])];
  const workers = openWorkerPool({
    count: first.workers,
    clock,
    log,
    answersFor: answersTo({ accounting, leases, metrics, serving, missing, clock }),
    async start({ name, channel }) {
      const { url, models: answering } = await channel.ask('start', { settings, localToken, journal: { holder: accounting.holder, writer: name } });
      models = answering;
      started.resolve(url);
    },
    onEnd(name) {
      leases.ended(name);
      metrics.ended(name);
    },
    onStartFailure: (cause) => (isUp ? lost(cause) : started.reject(cause)),
  });
  const url = await started.promise;
  isUp = true;
  const withdraw = await announced(first.data, { url, localToken }, clock);

  return {
    url,
    first: made,
    models: () => models,
    async change(changed) {
      const hold = (held: Settings) => {
        settings = held;
        log.level(held.logLevel);
      };
      const after = { ...changed, ...unchangeable(first), port };
      models = (await reloadAll(() => workers.all.map(reloading), { before: settings, after }, hold, clock)) ?? models;
    },
    reloaded: (result) => metrics.own.reloaded(result),
    settleAll: () => workers.end(({ channel }) => channel.tell('endAtOnce')),
    async close(graceSeconds) {
      isStopping = true;
      await runAll([
        () => workers.close(({ channel }) => channel.ask('drain', graceSeconds), graceSeconds + closingSeconds),
        () => leases.close(),
        () => accounting.close(),
        () => store.close(),
        withdraw,
        () => log.flush(),
      ]);
    },
  };
}

interface AnswersDeps {
  readonly accounting: Pick<MachineAccounting, 'source'>;
  readonly leases: { open(worker: string): LeaseSource };
  readonly metrics: { text(): Promise<string> };
  readonly serving: () => readonly WorkerHandle[];
  readonly missing: () => Promise<readonly string[]>;
  readonly clock: Clock;
}

/** The requests of a worker that this process answers. */
function answersTo({ accounting, leases, metrics, serving, missing, clock }: AnswersDeps): AnswersFor {
  return (name, channel): ParentAnswers => {
    let source: LeaseSource | undefined;
    const own = () => {
      if (source) return source;
      source = leases.open(name); // with its first question: a standby has no lease
      source.onRecall((account) => channel().tell('recall', account));
      channel().tell('reached', reached(accounting, clock, []));
      return source;
    };
    return {
      lease: (asks) => own().lease(asks),
      giveBack: (returns) => own().giveBack(returns),
      metrics: () => metrics.text(),
      async regions() {
        const states = await Promise.all(serving().map(({ channel }) => withinASecond(clock, channel.ask('regions'))));
        return statesTogether(states.map((own) => own ?? []));
      },
      async resetRegions() {
        await Promise.all(serving().map(({ channel }) => withinASecond(clock, channel.ask('resetRegions'))));
      },
      missing,
    };
  };
}

/** The machine's contact with the database, as reported to workers. */
function reached({ source: { contact } }: Pick<MachineAccounting, 'source'>, clock: Clock, lapsed: readonly PermitKind[]): Reached {
  return { goodMilliseconds: (contact?.goodUntil ?? Infinity) - clock.monotonic(), lapsed };
}

const reloading = (worker: WorkerHandle): Reloading => ({
  get isGone() {
    return worker.isGone;
  },
  change: (settings) => worker.channel.ask('change', settings),
  replace: () => worker.kill(),
});

/** The port to listen on, which must be free. For port 0 a free one is chosen here, since all workers need the same. @throws Error that says why none can be had */
async function freePort({ host, port }: Settings): Promise<number> {
  const server = createServer().listen(port, host);
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new Error(listeningProblem(error, { host, port }), { cause: error });
  });
  const { port: found } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return found;
}

/** The metrics of a server of several processes. */
interface ClusterMetrics {
  /** Those of this process. */
  readonly own: Metrics;
  /** The sums over all processes, in the Prometheus text format. */
  text(): Promise<string>;
  /** Keeps the counters of a worker that has ended: no sum ever falls. */
  ended(name: string): void;
}

function openClusterMetrics(clock: Clock, serving: () => readonly WorkerHandle[]): ClusterMetrics {
  const own = openMetrics();
  const last = new Map<string, Figures>();
  let ofEnded: Promise<Figures> = Promise.resolve([]);
  const figuresOf = async ({ name, channel }: WorkerHandle): Promise<Figures> => {
    const figures = await withinASecond(clock, channel.ask('figures'));
    if (figures && serving().some((one) => one.name === name)) last.set(name, figures);
    return figures ?? [];
  };
  return {
    own,
    text: async () => summed([await ofEnded, await own.figures(), ...(await Promise.all(serving().map(figuresOf)))]),
    ended(name) {
      const figures = counted(last.get(name) ?? []);
      last.delete(name);
      ofEnded = ofEnded.then((before) => merged([before, figures]));
    },
  };
}

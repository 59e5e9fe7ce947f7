import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { Settings } from '#config/index';
import { announced } from '#app/server-file';
import { openMachineAccounting } from '#app/accounting';
import { firstUser } from '#app/first-user';
import { isReady, openDatabase } from '#app/database';
import { subLeases } from '#ledger/sharing/sub-leases';
import { statesTogether } from '#gateway/routing/regions';
import { counted, merged, openMetrics, summed, type Figures } from '#telemetry/metrics';
import { systemClock, type Clock } from '#kit/async/clock';
import { runAll } from '#kit/async/run-all';
import { causeOf, type Log } from '#telemetry/log';
import { newLocalToken } from '#app/local-token';
import { reloadAll, type Reloading } from './reload.ts';
import { unchangeable, type Server } from '#app/server';
import type { LeaseSource, PermitKind } from '#core/lease';
import type { ParentAnswers, Reached } from './ipc.ts';
import { keepWorkers, type Serving } from './worker-pool.ts';

export interface ParentDeps {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock?: Clock;
  /** No worker serves any more, and none can be started, or what this machine held belongs to another: the process should end. */
  readonly lost: (cause: unknown) => void;
}

/** Seconds that workers get for closing, beyond those for what is in flight. */
const closingSeconds = 10;
const soonMilliseconds = 1000;

/**
 * Starts a server of several processes: this one has the data folder, the first user, the leases and the figures of the machine, and answers no request;
 * its workers do. @throws what a worker throws while it starts, where none can be started
 */
export async function startWorkers({ settings: first, log, clock = systemClock, lost }: ParentDeps): Promise<Server> {
  const database = await openDatabase(first, clock, log);
  const { store, pepper } = database;
  let settings: Settings = first;
  const accounting = await openMachineAccounting({ database, settings: () => settings, clock, log, lost });
  const localToken = newLocalToken();
  const made = await firstUser(store, pepper, { email: first.adminEmail, key: first.adminApiKey });
  const port = await freePort(first);
  settings = { ...first, port };
  let models: readonly string[] = [];
  let isUp = false;
  let stopping = false;

  const leases = subLeases({
    source: accounting.source,
    settledOf: accounting.settledOf,
    takeSettled: accounting.takeSettled,
    longestSeconds: () => Math.max(settings.limits.requestSeconds, settings.limits.streamSeconds),
    clock,
    log: (problem, cause) => log.error(causeOf(cause), problem),
  });

  const metrics = openMetrics();
  metrics.gauge('dragoman_usage_rows_waiting', 'Usage rows that are not in the database yet.', () => accounting.pending);
  metrics.gauge('dragoman_shared_accounts', 'Limited accounts that the workers share.', () => leases.accounts);
  metrics.gauge('dragoman_workers', 'Processes that answer requests.', () => workers.serving.length);
  const seen = new Map<string, Figures>();
  let gone: Promise<Figures> = Promise.resolve([]);

  /** What a worker says, if it says so soon: one that is stuck must not hold up the others. */
  const soon = <Answer>(answer: Promise<Answer>): Promise<Answer | undefined> =>
    Promise.race([answer.catch(() => undefined), clock.sleep(soonMilliseconds).then(() => undefined)]);
  const figures = async ({ name, channel }: Serving): Promise<Figures> => {
    const found = await soon(channel.ask('figures'));
    if (found && workers.serving.some((one) => one.name === name)) seen.set(name, found);
    return found ?? [];
  };

  /** What a worker should know of our contact with the database. */
  const reached = (lapsed: readonly PermitKind[]): Reached => ({
    goodMilliseconds: (accounting.source.contact?.goodUntil ?? Infinity) - clock.monotonic(),
    lapsed,
  });
  accounting.source.contact?.onReached((lapsed) => {
    for (const { channel } of workers.all) channel.tell('reached', reached(lapsed));
  });

  const started = Promise.withResolvers<string>();
  const workers = keepWorkers({
    count: first.workers,
    clock,
    log,
    answers(name, channel): ParentAnswers {
      let source: LeaseSource | undefined;
      const own = () => {
        if (source) return source;
        source = leases.open(name); // with its first words: one that is only kept ready has no share
        source.onRecall((account) => channel().tell('recall', account));
        channel().tell('reached', reached([]));
        return source;
      };
      return {
        lease: (asks) => own().lease(asks),
        giveBack: (returns) => own().giveBack(returns),
        metrics: async () => summed([await gone, await metrics.figures(), ...(await Promise.all(workers.serving.map(figures)))]),
        regions: async () =>
          statesTogether((await Promise.all(workers.serving.map(({ channel }) => soon(channel.ask('regions'))))).map((states) => states ?? [])),
        resetRegions: async () => void (await Promise.all(workers.serving.map(({ channel }) => soon(channel.ask('resetRegions'))))),
        missing: async () => [...((await isReady(store)) ? [] : ['database']), ...(stopping ? ['stopping'] : [])],
      };
    },
    async makeReady({ name, channel }) {
      const { url, models: answering } = await channel.ask('start', { settings, localToken, journal: { holder: accounting.holder, writer: name } });
      models = answering;
      started.resolve(url);
    },
    ended(name) {
      leases.ended(name);
      const last = counted(seen.get(name) ?? []);
      seen.delete(name);
      gone = gone.then((before) => merged([before, last]));
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
    async close(graceSeconds) {
      stopping = true;
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

const reloading = (worker: Serving): Reloading => ({
  get isGone() {
    return worker.isGone;
  },
  change: (settings) => worker.channel.ask('change', settings),
  replace: () => worker.kill(),
});

/** Makes sure that the port is free, and finds one where any will do: the workers must agree on it. @throws Error as `listen` does */
async function freePort({ host, port }: Settings): Promise<number> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  const { port: found } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return found;
}

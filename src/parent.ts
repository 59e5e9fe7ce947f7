import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import type { Settings } from '#config';
import { announced } from './announced.ts';
import { firstUser } from './first-user.ts';
import { isReady, openDatabase } from './database.ts';
import { subLeases, type Settled } from './gateway/ledger/sub-leases.ts';
import { counted, merged, openMetrics, summed, type Figures } from './http/metrics.ts';
import { systemClock, type Clock } from './kit/clock.ts';
import { causeOf, type Log } from './log.ts';
import { Fault } from './model/fault.ts';
import { newLocalToken } from './local-token.ts';
import type { LeaseSource } from './model/lease.ts';
import { unchangeable, type Server } from './server.ts';
import { lockFolder } from './store/folder-lock.ts';
import type { Store } from './store/open.ts';
import type { ParentAnswers } from './worker-words.ts';
import { keepWorkers, type Serving } from './workers.ts';

export interface ParentParts {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock?: Clock;
  /** The machine's leases, and what a worker that is gone has settled. */
  readonly books?: (store: Store) => { readonly source: LeaseSource; readonly settledOf: (worker: string) => Promise<readonly Settled[]> };
  /** No worker serves any more, and none can be started: the process should end. */
  readonly lost: (cause: unknown) => void;
}

/** Seconds that workers get for closing, beyond those for what is in flight. */
const closingSeconds = 10;
const figuresMilliseconds = 1000;

/**
 * Starts a house of several processes: this one has the data folder, the first user, the leases and the figures of the machine, and answers no request;
 * its workers do. @throws what a worker throws while it starts, where none can be started
 */
export async function startWorkers({ settings: first, log, clock = systemClock, books, lost }: ParentParts): Promise<Server> {
  await mkdir(first.data, { recursive: true });
  const unlock = lockFolder(first.data);
  const { store, pepper } = await openDatabase(first, clock, log);
  const localToken = newLocalToken();
  const made = await firstUser(store, pepper, { email: first.adminEmail, key: first.adminApiKey });
  const port = await freePort(first);
  let settings: Settings = { ...first, port };
  let models: readonly string[] = [];
  let isUp = false;
  let stopping = false;

  const opened = books?.(store);
  const leases = opened && subLeases({ ...opened, clock, log: (problem, cause) => log.error(causeOf(cause), problem) });

  const metrics = openMetrics();
  metrics.gauge('dragoman_workers', 'Processes that answer requests.', () => workers.serving.length);
  const seen = new Map<string, Figures>();
  let gone: Promise<Figures> = Promise.resolve([]);

  const figures = async ({ name, channel }: Serving): Promise<Figures> => {
    const late = clock.sleep(figuresMilliseconds).then(() => undefined);
    const found = await Promise.race([channel.ask('figures').catch(() => undefined), late]);
    if (found && workers.serving.some((one) => one.name === name)) seen.set(name, found);
    return found ?? [];
  };

  const started = Promise.withResolvers<string>();
  const workers = keepWorkers({
    count: first.workers,
    clock,
    log,
    answers(name, channel): ParentAnswers {
      const source = leases?.open(name) ?? noLeases;
      source.onRecall((account) => channel().tell('recall', account));
      return {
        lease: (asks) => source.lease(asks),
        giveBack: (returns) => source.giveBack(returns),
        metrics: async () => summed([await gone, await metrics.figures(), ...(await Promise.all(workers.serving.map(figures)))]),
        missing: async () => [...((await isReady(store)) ? [] : ['database']), ...(stopping ? ['stopping'] : [])],
      };
    },
    async makeReady({ channel }) {
      const { url, models: answering } = await channel.ask('start', { settings, localToken });
      models = answering;
      started.resolve(url);
    },
    ended(name) {
      leases?.ended(name);
      const last = counted(seen.get(name) ?? []);
      seen.delete(name);
      gone = gone.then((before) => merged([before, last]));
    },
    hopeless: (cause) => (isUp ? lost(cause) : started.reject(cause)),
  });
  const url = await started.promise;
  isUp = true;
  const withdraw = await announced(first.data, { url, localToken }, clock);

  return {
    url,
    first: made,
    models: () => models,
    async change(changed) {
      const before = settings;
      settings = { ...changed, ...unchangeable(first), port };
      const changing = workers.all.map((worker) => ({ worker, answer: worker.channel.ask('change', settings) }));
      log.level(settings.logLevel);
      for (const { worker, answer } of changing) {
        try {
          models = await answer;
        } catch (error) {
          if (!workers.all.includes(worker)) continue; // it died, and not of this
          settings = before;
          throw error;
        }
      }
    },
    async close(graceSeconds) {
      stopping = true;
      await workers.close(({ channel }) => channel.ask('drain', graceSeconds), graceSeconds + closingSeconds);
      await leases?.close();
      await store.close();
      await withdraw();
      unlock();
      await log.flush();
    },
  };
}

const noLeases: LeaseSource = {
  lease: () => Promise.reject(new Fault('overloaded', 'There are no leases here.')),
  giveBack: async () => {},
  onRecall: () => {},
};

/** Makes sure that the port is free, and finds one where any will do: the workers must agree on it. @throws Error as `listen` does */
async function freePort({ host, port }: Settings): Promise<number> {
  const server = createServer().listen(port, host);
  await once(server, 'listening');
  const { port: found } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return found;
}

/*
 * The program of a worker, one of several processes that serve one port. `worker-pool.ts` starts it and talks to it over its channel. When the channel closes the
 * parent is gone, and the worker ends within a second.
 */
import cluster from 'node:cluster';
import { bareThroughout } from '#config/bare';
import { reportedContact } from '#ledger/admission/contact';
import { openChannel } from '#kit/ipc/channel';
import { systemClock } from '#kit/async/clock';
import { collectGarbageOfStart, countMemoryOutsideHeap, keepCompiledCode, keepTickShape } from '#kit/memory/collected';
import { causeOf, openLog } from '#telemetry/log';
import type { Account } from '#core/account';
import { startServer, type ServingProcess } from '#app/server';
import { refusals, type ParentAnswers, type WorkerAnswers } from './ipc.ts';

/** Milliseconds in which a worker without a parent ends its streams. */
const orphanMilliseconds = 800;
/** Seconds for requests in flight after an uncaught error: a replacement starts only when this process has ended. */
const lastSeconds = 10;

const log = openLog('info', 'shared');
const { promise: server, resolve: resolveServer } = Promise.withResolvers<ServingProcess>();
let serving: ServingProcess | undefined;
let isStarted = false;
let hasFailed = false;
const recalled = new Set<(account: Account) => void>();
const contact = reportedContact(systemClock);

countMemoryOutsideHeap();
keepCompiledCode();
keepTickShape();

const answers: WorkerAnswers = {
  async start({ settings: sent, localToken, journal }) {
    isStarted = true;
    const settings = bareThroughout(sent);
    log.level(settings.logLevel);
    const started = await logged(
      startServer({
        settings,
        log,
        parent: {
          localToken,
          journal,
          leases: {
            lease: (asks) => parent.ask('lease', asks),
            giveBack: (returns) => parent.ask('giveBack', returns),
            onRecall: (listen) => void recalled.add(listen),
            contact,
          },
          metrics: () => parent.ask('metrics'),
          regions: () => parent.ask('regions'),
          resetRegions: () => parent.ask('resetRegions'),
          missing: () => parent.ask('missing'),
        },
      }),
    );
    serving = started;
    resolveServer(started);
    collectGarbageOfStart(systemClock, () => (started.inFlight?.() ?? 0) === 0);
    return { url: started.url, models: started.models() };
  },
  async change(settings) {
    const changing = await server;
    await logged((async () => changing.change(bareThroughout(settings)))());
    return changing.models();
  },
  responds() {},
  figures: async () => (await server).figures(),
  regions: async () => (await server).regions(),
  resetRegions: async () => (await server).resetRegions(),
  recall: (account) => {
    for (const listen of recalled) listen(account);
  },
  reached: ({ goodMilliseconds, lapsed }) => contact.reported(goodMilliseconds, lapsed),
  endAtOnce,
  async drain(graceSeconds) {
    await (await server).close(graceSeconds);
    setImmediate(() => process.exit(0)); // the answer goes out first
  },
};

function endAtOnce(): void {
  try {
    void serving?.settleAll();
  } finally {
    process.exit(1);
  }
}

/** Logs failures in full: over the channel only the client's message is sent. */
async function logged<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    log.error(causeOf(error), 'A request from the parent process failed.');
    await log.flush();
    throw error;
  }
}

const parent = openChannel<ParentAnswers>(
  {
    send: (message) => void process.send?.(message, undefined, {}, () => undefined),
    onMessage: (listen) => void process.on('message', listen),
    onClose: (listen) => void process.once('disconnect', listen),
  },
  answers,
  refusals,
);

// Otherwise Node would end a worker as soon as its channel closes, in the middle of its streams.
cluster.worker!.exitedAfterDisconnect = true;
process.once('disconnect', () => {
  setTimeout(endAtOnce, isStarted ? orphanMilliseconds : 0);
  void server.then(({ close }) => close(0)).finally(() => process.exit(1));
});

// A terminal sends its signals to all processes: only the parent acts on them.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});

const end = () => void log.flush().then(() => process.exit(1));
const fail = (cause: unknown) => {
  log.fatal(causeOf(cause), 'Unexpected error: a worker is stopping.');
  if (hasFailed) return;
  hasFailed = true;
  setTimeout(end, (lastSeconds + 10) * 1000);
  if (serving) void serving.close(lastSeconds).finally(end);
  else end();
};
process.on('uncaughtException', fail);
process.on('unhandledRejection', fail);

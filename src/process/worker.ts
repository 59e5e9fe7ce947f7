/*
 * The program of a worker: one of several processes that serve on one port. `workers.ts` starts it and speaks to it over its channel; when that closes the
 * parent is gone, and the worker follows within a second.
 */
import cluster from 'node:cluster';
import { bareThroughout } from '#config/bare';
import { reportedContact } from '#ledger/admission/contact';
import { openChannel } from '#kit/ipc/channel';
import { systemClock } from '#kit/async/clock';
import { causeOf, openLog } from '#telemetry/log';
import type { Account } from '#core/account';
import { startServer, type ServingProcess } from '#app/server';
import { refusals, type ParentAnswers, type WorkerAnswers } from './ipc.ts';

/** Milliseconds in which a worker without parent says its last words. */
const orphanMilliseconds = 800;
/** Seconds for what is in flight after a mistake of ours: another process takes this one's place only when it has ended. */
const lastSeconds = 10;

const log = openLog('info', 'shared');
const { promise: server, resolve: serves } = Promise.withResolvers<ServingProcess>();
let serving: ServingProcess | undefined;
let isEmployed = false;
let hasErred = false;
const recalled = new Set<(account: Account) => void>();
const contact = reportedContact(systemClock);

const answers: WorkerAnswers = {
  async start({ settings: sent, localToken, journal }) {
    isEmployed = true;
    const settings = bareThroughout(sent);
    log.level(settings.logLevel);
    const started = await explained(
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
    serves(started);
    return { url: started.url, models: started.models() };
  },
  async change(settings) {
    const changing = await server;
    await explained((async () => changing.change(bareThroughout(settings)))());
    return changing.models();
  },
  figures: async () => (await server).figures(),
  regions: async () => (await server).regions(),
  resetRegions: async () => (await server).resetRegions(),
  recall: (account) => {
    for (const listen of recalled) listen(account);
  },
  reached: ({ goodMilliseconds, lapsed }) => contact.reported(goodMilliseconds, lapsed),
  async drain(graceSeconds) {
    await (await server).close(graceSeconds);
    setImmediate(() => process.exit(0)); // the answer goes out first
  },
};

/** What goes wrong here is for this log: over the channel goes only what a client may read. */
async function explained<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    log.error(causeOf(error), 'A worker could not do what its parent asked.');
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

// Node would end a worker at once when its channel closes, in the middle of what it says.
cluster.worker!.exitedAfterDisconnect = true;
process.once('disconnect', () => {
  setTimeout(() => process.exit(1), isEmployed ? orphanMilliseconds : 0);
  void server.then(({ close }) => close(0)).finally(() => process.exit(1));
});

// A terminal sends its signals to the whole family: what they mean is for the parent to say.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});

const end = () => void log.flush().then(() => process.exit(1));
const last = (mistake: unknown) => {
  log.fatal(causeOf(mistake), 'Unexpected: a worker ends.');
  if (hasErred) return;
  hasErred = true;
  setTimeout(end, (lastSeconds + 5) * 1000);
  if (serving) void serving.close(lastSeconds).finally(end);
  else end();
};
process.on('uncaughtException', last);
process.on('unhandledRejection', last);

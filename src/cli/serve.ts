import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings, runningOllama, unreadSaid, watchSettings, type Reading, type SettingsArgs } from '#config/index';
import { greeting } from './greeting.ts';
import { causeOf, formatOf, openLog, type Log } from '#telemetry/log';
import { systemClock } from '#kit/async/clock';
import { collectGarbageOfStart, countMemoryOutsideHeap, keepCompiledCode, keepTickShape } from '#kit/memory/collected';
import { startWorkers } from '#process/cluster';
import { startServer } from '#app/server';
import { providerModules } from '#providers/modules';
import { stopOnSignals } from '#process/signals';
import { version } from '#app/version';

/** Seconds that requests in flight may take after a signal to stop. */
const graceSeconds = 30;
/** Seconds for the whole shutdown after an uncaught error. */
const endSeconds = 60;

/** `dragoman serve`: starts the server, prints the greeting, applies new settings when the file changes, stops on signals. `dragoman work`: the same without listening. */
export async function run(args: SettingsArgs, { listens = true }: { readonly listens?: boolean } = {}): Promise<void> {
  countMemoryOutsideHeap();
  keepCompiledCode();
  keepTickShape();
  const ollama = await runningOllama();
  const read = () => readSettings({ kinds: providerModules, args, ollama });
  const start = read();
  const { settings: given } = start;
  const settings = listens ? given : { ...given, workers: 1 };
  const log = openLog(settings.logLevel, settings.workers > 1 ? 'shared' : 'alone', settings.workers > 1 ? 'json' : formatOf(settings));
  // An uncaught error is a bug: requests in flight may finish, and a service manager starts the server again.
  const fail = (error: unknown) => {
    log.fatal(causeOf(error), 'Unexpected error: the server is stopping.');
    end();
  };
  process.stdout.on('error', () => {}); // a closed pipe does not end the server
  process.on('uncaughtException', fail);
  process.on('unhandledRejection', fail);

  if (process.stdout.isTTY && !settings.databaseUrl && !existsSync(join(settings.data, 'database'))) console.log('Setting up the database …');
  const starting = settings.workers > 1 ? startWorkers({ settings, log, lost: fail }) : startServer({ settings, log, lost: fail, listens });
  let stopWatching = () => {};
  const end = stopOnSignals({
    stop() {
      stopWatching();
      return stop(starting);
    },
    settle: async () => (await Promise.race([starting, Promise.resolve(undefined)]))?.settleAll(), // nothing runs before it has started
    mostSeconds: endSeconds,
  });
  const server = await starting;
  collectGarbageOfStart(systemClock, () => (server.inFlight?.() ?? 0) === 0);
  warnOfSettings(log, start);
  for (const variable of start.unread) log.warn({ variable: variable.name }, unreadSaid(variable));
  const failed = (error: Error) => {
    server.reloaded('refused');
    log.error({ problem: error.message }, 'The new settings are invalid; the old ones stay in effect.');
  };
  const watched = watchSettings({
    start,
    read,
    changed({ reading, changed, restart }) {
      const report = () => {
        server.reloaded('applied');
        if (restart.length > 0) log.warn({ changed, restart }, 'New settings are in effect, except those that need a restart.');
        else log.info({ changed, restart }, 'New settings are in effect.');
        warnOfSettings(log, reading);
      };
      const changing = server.change(reading.settings);
      if (changing) return changing.then(report);
      report();
      return undefined;
    },
    failed,
  });
  process.on('SIGHUP', () => watched.reload());
  stopWatching = () => watched.close();
  if (!listens) return console.log(`Working on the jobs of ${settings.databaseUrl ? 'the database' : settings.data}. Stop with Ctrl-C.`);
  console.log(
    greeting({
      version,
      url: server.url,
      data: settings.data,
      first: server.first,
      models: server.models(),
      hasProvider: Object.keys(settings.providers).length > 0,
    }),
  );
}

/** One line that names the settings which somebody set and which do nothing yet. */
function warnOfSettings(log: Log, { notInEffect, unfilled, unreadLines, missing, unused }: Reading): void {
  if (notInEffect.length > 0) log.warn({ settings: notInEffect }, 'These settings are accepted but not yet in effect.');
  for (const text of [...unreadLines, ...unfilled, ...missing, ...unused]) log.warn({}, text);
}

interface Stoppable {
  readonly inFlight?: () => number;
  close(graceSeconds: number): Promise<void>;
}

async function stop(starting: Promise<Stoppable>): Promise<void> {
  const failing = new Promise<never>(() => {}); // a start that fails ends the process itself, in words
  const running = await Promise.race([starting.catch(() => failing), systemClock.sleep(graceSeconds * 1000)]);
  if (!running) return; // a start that never ends has nothing to finish
  const count = running.inFlight?.() ?? 0;
  if (count > 0) console.log(`Waiting up to ${graceSeconds} s for ${count} ${count === 1 ? 'request' : 'requests'} to finish.`);
  await running.close(graceSeconds);
  console.log('Stopped.');
}

import { readSettings, runningOllama, watchSettings, type SettingsArgs } from '#config/index';
import { greeting } from './greeting.ts';
import { causeOf, openLog } from '#telemetry/log';
import { startWorkers } from '#process/cluster';
import { startServer } from '#app/server';
import { providerModules } from '#providers/modules';
import { stopOnSignals } from '#process/signals';
import { version } from '#app/version';

/** Seconds that what is in flight may take after a signal to stop. */
const graceSeconds = 30;
/** And everything, after a mistake. */
const endSeconds = 45;

/** `dragoman serve`: starts the server, greets, takes new settings when the file changes, stops on signals. */
export async function run(args: SettingsArgs): Promise<void> {
  const ollama = await runningOllama();
  const read = () => readSettings({ kinds: providerModules, args, ollama });
  const start = read();
  const { settings } = start;
  const log = openLog(settings.logLevel, settings.workers > 1 ? 'shared' : 'alone');
  // What nobody caught is a mistake of ours: what is in flight may finish, and whoever watches us starts us again.
  const last = (mistake: unknown) => {
    log.fatal(causeOf(mistake), 'Unexpected: the server ends.');
    end();
  };
  process.stdout.on('error', () => {}); // whoever reads what is printed may have left: that ends nothing
  process.on('uncaughtException', last);
  process.on('unhandledRejection', last);

  const starting = settings.workers > 1 ? startWorkers({ settings, log, lost: last }) : startServer({ settings, log, lost: last });
  let stopWatching = () => {};
  const end = stopOnSignals(async () => {
    stopWatching();
    const running = await starting;
    const many = running.inFlight?.() ?? 0;
    if (many > 0) console.log(`Waiting for ${many} ${many === 1 ? 'request' : 'requests'}, ${graceSeconds} s at most.`);
    await running.close(graceSeconds);
    console.log('Stopped.');
  }, endSeconds);
  const server = await starting;
  const failed = (error: Error) => log.error({ problem: error.message }, 'The new settings are not used; the old ones hold.');
  const watched = watchSettings({
    start,
    read,
    changed({ reading, changed, restart }) {
      const said = () => log.info({ changed, restart }, restart.length > 0 ? 'New settings hold, but for those that need a restart.' : 'New settings hold.');
      const changing = server.change(reading.settings);
      if (changing) return changing.then(said);
      said();
      return undefined;
    },
    failed,
  });
  process.on('SIGHUP', () => watched.reload());
  stopWatching = () => watched.close();
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

import { readSettings, type SettingsArgs } from '#config/index';
import type { Command } from 'commander';
import { hostname } from 'node:os';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { journalsIn, usageSink } from '#app/accounting';
import { openDatabase } from '#app/database';
import { adoptJournals } from '#ledger/shipping/adopt';
import { systemDisk } from '#ledger/journal/disk';
import { systemClock } from '#kit/async/clock';
import { causeOf, openLog } from '#telemetry/log';
import { CliError } from './cli-error.ts';
import { openHolders } from '#resources/usage/holders';
import { makeMonthsAhead } from '#resources/usage/months';
import { isReadOnly, lockFolder } from '#store/folder-lock';
import { databaseNow } from '#store/database-clock';

/** `dragoman journal adopt FOLDER` */
export function journalCommand(program: Command): void {
  program
    .command('journal')
    .description('The journals of machines.')
    .command('adopt <folder>')
    .description(
      "Brings the journals in another machine's data folder into the books of this one's database, and frees what that machine had leased. It must be gone for good.",
    )
    .option('--json', 'Prints a JSON object for each holder.')
    .option('--config <file>', 'The settings file; ./dragoman.yaml if it is there.')
    .option('--data <folder>', "This machine's data folder; ./data if nothing else is set.")
    .option('--database-url <url>', 'PostgreSQL 15 or newer, where that holds the data.')
    .action(adopt);
}

interface AdoptOptions extends Pick<SettingsArgs, 'config' | 'data' | 'databaseUrl'> {
  readonly json?: true;
}

async function adopt(folder: string, { json, ...args }: AdoptOptions): Promise<void> {
  const foreign = resolve(folder);
  if (!existsSync(journalsIn(foreign))) throw new CliError(`There is no journal in ${foreign}: it must be a data folder.`, 400);
  const { providerModules } = await import('#providers/modules');
  const { settings } = readSettings({ kinds: providerModules, args });
  if (resolve(settings.data) === foreign) throw new CliError('This is the data folder of this machine: its server books what is left in it by itself.', 400);
  const log = openLog('warn');
  const { store } = await openDatabase(settings, systemClock, log);
  try {
    await makeMonthsAhead(store, await databaseNow(store.db));
    const adopted = await adoptJournals(
      {
        sink: usageSink(store, openHolders(store), `journal adopt on ${hostname()}`),
        disk: systemDisk,
        folder: journalsIn(foreign),
        refused: join(journalsIn(settings.data), 'refused.jsonl'),
        log: (problem, cause) => log.error(cause === undefined ? {} : causeOf(cause), problem),
      },
      () => {
        if (!isReadOnly(foreign)) return lockFolder(foreign);
        log.warn(
          { folder: foreign },
          'This folder cannot be written to, so nobody can tell whether its server still runs elsewhere: make sure that it does not.',
        );
        return () => {};
      },
    );
    for (const one of adopted) console.log(json ? JSON.stringify(one) : `${one.holder}: ${one.rows} rows booked, its leases are free again.`);
  } finally {
    await store.close();
    await log.flush();
  }
}

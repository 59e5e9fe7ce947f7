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
    .description('Recover the journal of a lost machine.')
    .command('adopt <folder>')
    .description(
      "Record the usage in the journals of a lost machine's data folder, and free the quota that the machine had leased. Its server must never run again.",
    )
    .option('--json', 'Print one JSON object per holder.')
    .option('--config <file>', 'Settings file. Default: ./dragoman.yaml, if it exists.')
    .option('--data <folder>', "This machine's data folder. Default: ./data, unless set elsewhere.")
    .option('--database-url <url>', 'PostgreSQL 15 or newer, if the data is there.')
    .action(adopt);
}

interface AdoptOptions extends Pick<SettingsArgs, 'config' | 'data' | 'databaseUrl'> {
  readonly json?: true;
}

async function adopt(folder: string, { json, ...args }: AdoptOptions): Promise<void> {
  const foreign = resolve(folder);
  if (!existsSync(journalsIn(foreign))) throw new CliError(`${foreign} is not a data folder: it has no journal.`, 400);
  const { providerModules } = await import('#providers/modules');
  const { settings } = readSettings({ kinds: providerModules, args });
  if (resolve(settings.data) === foreign)
    throw new CliError("This is this machine's own data folder. Its server books the journal by itself when it starts.", 400);
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
        log.warn({ folder: foreign }, 'This folder is read-only, so it cannot be locked: make sure that no server is using it.');
        return () => {};
      },
    );
    for (const one of adopted) console.log(json ? JSON.stringify(one) : `${one.holder}: ${one.rows} rows booked. Its leases are free again.`);
  } finally {
    await store.close();
    await log.flush();
  }
}

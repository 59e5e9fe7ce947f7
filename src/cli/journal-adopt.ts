import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { journalsIn, usageSink } from '#app/accounting';
import { openDatabase } from '#app/database';
import { readSettings, type SettingsArgs } from '#config/index';
import { systemClock } from '#kit/async/clock';
import { systemDisk } from '#ledger/journal/disk';
import { adoptJournals } from '#ledger/shipping/adopt';
import { providerModules } from '#providers/modules';
import { openHolders } from '#resources/usage/holders';
import { makeMonthsAhead } from '#resources/usage/months';
import { databaseNow } from '#store/database-clock';
import { isReadOnly, lockFolder } from '#store/folder-lock';
import { openLog, problemsTo } from '#telemetry/log';
import { hasData } from './admin-client.ts';
import { CliError } from './cli-error.ts';

export interface AdoptOptions extends Pick<SettingsArgs, 'config' | 'data' | 'databaseUrl'> {
  readonly json?: true;
}

/** Books what the journals of a lost machine's data folder hold, and frees its leases. @throws CliError */
export async function adopt(folder: string, { json, ...args }: AdoptOptions): Promise<void> {
  const foreign = resolve(folder);
  if (!existsSync(journalsIn(foreign))) throw new CliError(`${foreign} is not a data folder: it has no journal.`, 400);
  const { settings } = readSettings({ kinds: providerModules, args, asksProviders: false });
  if (resolve(settings.data) === foreign)
    throw new CliError("This is this machine's own data folder. Its server books the journal by itself when it starts.", 400);
  if (!hasData(settings))
    throw new CliError(`${settings.data} holds no Dragoman data yet: choose the folder of this machine with --data, or its database with --database-url.`, 404);
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
        log: problemsTo(log),
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

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Settings } from '#config';
import type { Clock } from './kit/clock.ts';
import { randomKey } from './kit/ids.ts';
import { sealer, type Sealer } from './kit/sealing.ts';
import type { Log } from './log.ts';
import { masterKey } from './store/master-key.ts';
import { openStore, type Store } from './store/open.ts';
import { checkMasterKey, secretRow } from './store/secrets.ts';

/** What every process of a house stands on. */
export interface Foundation {
  readonly store: Store;
  /** Seals with the master key. */
  readonly seal: Sealer;
  /** Hashes API keys; the same on every machine. */
  readonly pepper: Buffer;
}

/** The folders that hold the nouns' migrations. */
const migrations = ['resources/users/', 'resources/api-keys/', 'resources/usage/', 'resources/idempotency/'].map((folder) => new URL(folder, import.meta.url));

/** Makes the data folder, opens the database and what is sealed in it. @throws WrongMasterKey, Fault `conflict` when the folder is taken, Error */
export async function openFoundation(settings: Settings, clock: Clock, log: Log): Promise<Foundation> {
  await mkdir(settings.data, { recursive: true });
  const seal = sealer(await masterKey({ value: settings.masterKey, file: join(settings.data, 'master.key') }));
  const store = await openStore({
    folder: settings.data,
    ...(settings.databaseUrl ? { databaseUrl: settings.databaseUrl } : {}),
    migrations,
    clock,
    log: quieter(log),
  });
  await checkMasterKey(store, seal);
  return { store, seal, pepper: await secretRow(store, seal, 'api-key pepper', randomKey) };
}

/** What the store does in its daily round is for those who look for it. */
function quieter(log: Log): Log {
  return { ...log, info: log.debug };
}

/** True when the database answers. */
export async function isReady(store: Store): Promise<boolean> {
  try {
    await store.ready();
    return true;
  } catch {
    return false;
  }
}

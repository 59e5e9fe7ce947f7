import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Settings } from '#config/index';
import type { Clock } from '#kit/async/clock';
import { randomKey } from '#kit/crypto/ids';
import { sealer, type Sealer } from '#kit/crypto/sealing';
import type { Log } from '#telemetry/log';
import { knownMasterKey, masterKey, WrongMasterKey } from '#store/master-key';
import type { Examined } from '#store/examine';
import type { BlobColumn } from '#store/blob-rows';
import { examineStore, openStore, type Store } from '#store/open';
import { onlyReads } from '#store/sql-error';
import { makePrivate } from '#store/private-folder';
import type { OwnedTable, SharedTable } from '#resources/users/removal';
import { checkMasterKey, requireMasterKey, secretRow } from '#store/secrets';

export const migrations = [
  'users',
  'api-keys',
  'plans',
  'teams',
  'usage',
  'idempotency',
  'stored-responses',
  'kept-thoughts',
  'audit',
  'lessons',
  'tokens',
  'logins',
  'sessions',
  'prompt-log',
  'datasets',
  'personas',
  'plugins',
  'votes',
  'chats',
  'secrets',
  'mcp-servers',
  'agents',
  'runs',
  'datasets/search',
].map((noun) => new URL(`../resources/${noun}/`, import.meta.url));

/** Tables in which a user may have very many rows. */
export const owned: readonly OwnedTable[] = [
  { table: 'stored_response', bytes: 'bytes' },
  { table: 'conversation' },
  { table: 'idempotency', bytes: 'bytes' },
  { table: 'kept_thoughts', bytes: 'bytes' },
  { table: 'login' },
  { table: 'grants' },
  { table: 'prompt_log' },
  { table: 'given_answer', bytes: 'bytes' },
  { table: 'chat_message', bytes: 'bytes' },
  { table: 'chat' },
  { table: 'run', bytes: 'bytes' },
  { table: 'mcp_approved_call' },
];

/** What users share. Files are shared with those alone who have their dataset. */
export const sharedTables: readonly SharedTable[] = [
  { kind: 'dataset', table: 'datasets' },
  { kind: 'chat', table: 'chat', number: 'number', owner: 'user_id' },
  { kind: 'mcp-server', table: 'mcp_server' },
  ...['agent', 'persona', 'plugin', 'secret'].map((kind) => ({ kind, table: kind })),
];

/** Columns that name blobs: what none of them names goes. */
export const blobColumns: readonly BlobColumn[] = [
  { table: 'dataset_files', blob: 'blob', bytes: 'bytes', user: 'user_id', gone: 'deleted_at' },
  { table: 'dataset_files', blob: 'next_blob', bytes: 'next_bytes', user: 'user_id', gone: 'deleted_at' },
];

export interface Database {
  readonly store: Store;
  readonly seal: Sealer;
  /** Secret that goes into the digests of API keys, the same on every machine. */
  readonly pepper: Buffer;
}

/** Opens the embedded database of the data folder, or the server of `databaseUrl`, with the master key that seals its secrets. @throws WrongMasterKey, and what `openStore` throws */
export async function openDatabase(settings: Settings, clock: Clock, log: Log): Promise<Database> {
  makePrivate(settings.data);
  const store = await openStore({ ...optionsOf(settings, clock), log: quieter(log) });
  const place = keyPlaceOf(settings);
  const isMissing = place.value === undefined && !existsSync(place.file);
  try {
    const seal = sealer(await masterKey(place));
    await checkMasterKey(store, seal);
    return { store, seal, pepper: await secretRow(store, seal, 'api-key pepper', randomKey) };
  } catch (error) {
    await store.close();
    if (error instanceof WrongMasterKey && isMissing) rmSync(place.file, { force: true }); // else the next start would take the new key for the right one
    throw told(error, place, isMissing);
  }
}

/** Looks at the database and the master key as `openDatabase` does, and leaves both as they are. @returns nothing where the embedded database has not been made yet. @throws as `openDatabase` does */
export async function examineDatabase(settings: Settings, clock: Clock): Promise<Examined | undefined> {
  const place = keyPlaceOf(settings);
  const key = await knownMasterKey(place);
  try {
    return await examineStore(optionsOf(settings, clock), (db) => requireMasterKey(db, sealer(key ?? randomKey())));
  } catch (error) {
    throw told(error, place, key === undefined);
  }
}

const optionsOf = ({ data: folder, databaseUrl }: Settings, clock: Clock) => ({
  folder,
  ...(databaseUrl ? { databaseUrl } : {}),
  migrations,
  areAll: true,
  clock,
});

const keyPlaceOf = ({ data, masterKey: value }: Settings) => ({ value, file: join(data, 'master.key') });

/** Of a key that was not given: where it should be, and what to do. */
function told(error: unknown, { value, file }: ReturnType<typeof keyPlaceOf>, isMissing: boolean): unknown {
  if (!(error instanceof WrongMasterKey) || value !== undefined) return error;
  return new WrongMasterKey(
    `is not set, and ${isMissing ? `the file ${file} with the key of this database is missing` : `the key in ${file} does not open what this database has sealed`}. Copy master.key from a backup or from the data folder of the first machine, or set DRAGOMAN_MASTER_KEY to its key.`,
  );
}

/** Logs the store's routine work at level debug. */
const quieter = (log: Log): Log => ({ ...log, info: log.debug });

/** What `/readyz` names while the database cannot be used: `database`, `writable database` where PostgreSQL only reads, `disk` where the embedded one only reads. Empty when it can be written to. */
export async function missingOf(store: Pick<Store, 'kind' | 'ready'>): Promise<readonly string[]> {
  try {
    await store.ready();
    return [];
  } catch (error) {
    if (!onlyReads(error)) return ['database'];
    return [store.kind === 'embedded' ? 'disk' : 'writable database'];
  }
}

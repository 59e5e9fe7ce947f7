import { sql } from 'kysely';
import { SealBroken, type Sealer } from '#kit/crypto/sealing';
import type { Database } from '#store/driver';
import type { Store } from '#store/open';
import { WrongMasterKey } from '#store/master-key';

/**
 * A secret that every machine on one database shares: a pepper, a signing key. The first to ask makes it; when two ask at once, both get the same.
 * @throws WrongMasterKey when it was sealed with another master key
 */
export async function secretRow(store: Store, sealer: Sealer, name: string, make: () => Uint8Array): Promise<Buffer> {
  const { db } = store;
  let sealed = await sealedRow(db, name);
  if (!sealed) {
    await sql`insert into sealed_settings (name, sealed) values (${name}, ${sealer.seal(make(), contextOf(name))}) on conflict do nothing`.execute(db);
    sealed = (await sealedRow(db, name))!;
  }
  return opened(sealer, sealed, name);
}

const contextOf = (name: string) => `setting/${name}`;

const sealedRow = async (db: Database, name: string) =>
  (await sql<{ sealed: Buffer }>`select sealed from sealed_settings where name = ${name}`.execute(db)).rows[0]?.sealed;

function opened(sealer: Sealer, sealed: Buffer, name: string): Buffer {
  try {
    return sealer.open(sealed, contextOf(name));
  } catch (error) {
    throw error instanceof SealBroken
      ? new WrongMasterKey(
          'does not open what this database has sealed: it was sealed with another key. All machines on one database need the key of the first: DRAGOMAN_MASTER_KEY there, or master.key in its data folder.',
        )
      : error;
  }
}

/** Makes sure, before anything is sealed, that this is the key the database knows. @throws WrongMasterKey */
export async function checkMasterKey(store: Store, sealer: Sealer): Promise<void> {
  await secretRow(store, sealer, checkName, () => Buffer.from('dragoman'));
}

const checkName = 'master-key-check';

/** The same of a database that may have no tables yet. Changes nothing. @throws WrongMasterKey */
export async function requireMasterKey(db: Database, sealer: Sealer): Promise<void> {
  const { rows } = await sql<{ found: boolean }>`select to_regclass('sealed_settings') is not null as found`.execute(db);
  const sealed = rows[0]!.found ? await sealedRow(db, checkName) : undefined;
  if (sealed) opened(sealer, sealed, checkName);
}

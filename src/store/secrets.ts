import { sql } from 'kysely';
import { SealBroken, type Sealer } from '#kit/crypto/sealing';
import type { Store } from '#store/open';
import { WrongMasterKey } from '#store/master-key';

/**
 * A secret that every machine on one database shares: a pepper, a signing key. The first to ask makes it; when two ask at once, both get the same.
 * @throws WrongMasterKey when it was sealed with another master key
 */
export async function secretRow(store: Store, sealer: Sealer, name: string, make: () => Uint8Array): Promise<Buffer> {
  const { db } = store;
  const context = `setting/${name}`;
  const read = async () => (await sql<{ sealed: Buffer }>`select sealed from sealed_settings where name = ${name}`.execute(db)).rows[0];
  let row = await read();
  if (!row) {
    await sql`insert into sealed_settings (name, sealed) values (${name}, ${sealer.seal(make(), context)}) on conflict do nothing`.execute(db);
    row = (await read())!;
  }
  try {
    return sealer.open(row.sealed, context);
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
  await secretRow(store, sealer, 'master-key-check', () => Buffer.from('dragoman'));
}

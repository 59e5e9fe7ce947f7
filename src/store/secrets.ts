import { SealBroken, type Sealer } from '#kit/crypto/sealing';
import type { Store } from '#store/open';
import { WrongMasterKey } from '#store/master-key';

type Tables = { sealed_settings: { name: string; sealed: Buffer } };

/**
 * A secret that every machine on one database shares: a pepper, a signing key. The first to ask makes it; when two ask at once, both get the same.
 * @throws WrongMasterKey when it was sealed with another master key
 */
export async function secretRow(store: Store, sealer: Sealer, name: string, make: () => Uint8Array): Promise<Buffer> {
  const db = store.db.$extendTables<Tables>();
  const context = `setting/${name}`;
  const read = () => db.selectFrom('sealed_settings').select('sealed').where('name', '=', name).executeTakeFirst();
  let row = await read();
  if (!row) {
    const sealed = sealer.seal(make(), context);
    await db
      .insertInto('sealed_settings')
      .values({ name, sealed })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
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

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import type { Database } from '#store/driver';
import type { StoreLog } from '#store/log';
import { UnusableDatabase } from '#store/unusable-database';

/*
 * A migration is a file `YYYY-MM-DD-name.sql` beside its noun. The files of all nouns make one sequence, ordered by name; each runs once, in a transaction
 * that also records it, so that a kill leaves it wholly done or not at all.
 */
interface Migration {
  readonly name: string;
  readonly text: string;
  readonly hash: string;
}

const nameForm = /^\d{4}-\d{2}-\d{2}-[a-z0-9-]+\.sql$/;
const lockKey = 7_239_014_552; // any number that is ours; taken until the end of each transaction

/**
 * Brings a database to the state that the files of these folders describe. Safe when several processes start at once.
 * @param areAll these are all folders there are: a database that has run other migrations is of a newer version
 * @returns the names of those that ran now
 * @throws UnusableDatabase when a migration that has run was changed since, or was run by a newer version
 */
export async function migrate(
  db: Database,
  folders: readonly URL[],
  { log, areAll = false }: { readonly log: StoreLog; readonly areAll?: boolean },
): Promise<string[]> {
  const migrations = await readMigrations(folders);
  const missing = await missingOf(migrations, { db, areAll });
  const ran: string[] = [];
  for (const migration of missing) {
    if (!(await runOnce(db, migration))) continue;
    ran.push(migration.name);
    log.info({ migration: migration.name }, 'migrated');
  }
  return ran;
}

/** Finds out whether `migrate` would go through, as far as the record of what has run tells. Changes nothing. @throws UnusableDatabase as `migrate` does */
export async function requireMigratable(db: Database, folders: readonly URL[], { areAll = false }: { readonly areAll?: boolean | undefined }): Promise<void> {
  await missingOf(await readMigrations(folders), { db, areAll });
}

async function missingOf(migrations: readonly Migration[], { db, areAll }: { readonly db: Database; readonly areAll: boolean }): Promise<readonly Migration[]> {
  const done = (await hasRecord(db)) ? await recorded(db) : new Map<string, string>();
  const missing = migrations.filter((one) => isMissing(one, done));
  if (areAll) requireKnown(migrations, done);
  return missing;
}

async function readMigrations(folders: readonly URL[]): Promise<Migration[]> {
  const found = new Map<string, Migration>();
  for (const folder of folders) {
    const names = (await readdir(folder)).filter((name) => name.endsWith('.sql'));
    for (const name of names) {
      const place = `${name} in ${fileURLToPath(folder)}`;
      if (!nameForm.test(name)) throw new Error(`The migration ${place} is not named YYYY-MM-DD-name.sql.`);
      if (found.has(name)) throw new Error(`There is a second migration ${place}.`);
      const text = (await readFile(new URL(name, folder), 'utf8')).replaceAll('\r\n', '\n');
      found.set(name, { name, text, hash: createHash('sha256').update(text).digest('hex') });
    }
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

async function hasRecord(db: Database): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`select to_regclass('migration') is not null as found`.execute(db);
  return rows[0]!.found;
}

async function recorded(db: Database): Promise<Map<string, string>> {
  const { rows } = await sql<Pick<Migration, 'name' | 'hash'>>`select name, hash from migration`.execute(db);
  return new Map(rows.map(({ name, hash }) => [name, hash]));
}

/** Files of releases never change; those of states between them may, before they are released. */
function isMissing({ name, hash }: Migration, done: ReadonlyMap<string, string>): boolean {
  const known = done.get(name);
  if (known !== undefined && known !== hash)
    throw new UnusableDatabase(
      `The database was made by a state of Dragoman between two releases, which cannot be brought up to date (${name} has changed since). Go back to that state and go on with it, or export what you need there; then start this version with a new data folder (--data) or, where DATABASE_URL is set, with an empty database.`,
    );
  return known === undefined;
}

/** A database that a newer version has migrated may have rules that this one would break. Whoever has it open already goes on. */
function requireKnown(migrations: readonly Migration[], done: ReadonlyMap<string, string>): void {
  const known = new Set(migrations.map(({ name }) => name));
  const newest = [...done.keys()]
    .filter((name) => !known.has(name))
    .toSorted()
    .at(-1);
  if (newest === undefined) return;
  throw new UnusableDatabase(
    `A newer version of Dragoman has migrated the database (${newest}), and this one cannot use it: install the newer version again, or restore the backup from before the upgrade.`,
  );
}

/** @returns false when another process was quicker */
function runOnce(db: Database, migration: Migration): Promise<boolean> {
  return db.transaction().execute(async (tx) => {
    await sql`select pg_advisory_xact_lock(${sql.lit(lockKey)})`.execute(tx);
    // not to_regclass here: it may answer from before the wait for the lock
    await sql`create table if not exists migration (name text primary key, hash text not null, ran_at timestamptz not null default now())`.execute(tx);
    if (!isMissing(migration, await recorded(tx))) return false;
    await sql.raw(migration.text).execute(tx);
    await sql`insert into migration (name, hash) values (${migration.name}, ${migration.hash})`.execute(tx);
    return true;
  });
}

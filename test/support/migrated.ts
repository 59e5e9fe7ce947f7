import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync } from 'node:fs';
import { cp, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** The same on the PostgreSQL server of a run. */
export const migratedName = 'migrated';

/** Set for the tests of a run: a database folder with all tables and no rows. */
const variable = 'MIGRATED_DATABASE';

/**
 * Gives a data folder that has no embedded database yet one with all tables and no rows, as a first start makes it: to unpack and migrate one takes 2 s of CPU
 * time, to copy it 0.03. What a first start does itself is tested by the processes in `test/process`.
 */
export async function withDatabase(data: string): Promise<void> {
  const from = process.env[variable];
  const database = join(data, 'database');
  if (from === undefined || existsSync(database)) return;
  await mkdir(data, { recursive: true, mode: 0o700 });
  await cp(from, database, { recursive: true });
}

/** Puts that database into the folder of a run. It is made where the migrations are new, and kept beside the dependencies. */
export async function provideDatabase(folder: string): Promise<void> {
  const kept = new URL('../../node_modules/.cache/dragoman/', import.meta.url).pathname;
  const made = join(kept, await hashOfMigrations());
  if (!existsSync(made)) {
    const own = join(folder, 'made');
    makeDatabase(own);
    await rm(kept, { recursive: true, force: true }); // those of other migrations
    await mkdir(kept, { recursive: true });
    await cp(own, `${made}.${process.pid}`, { recursive: true });
    await rename(`${made}.${process.pid}`, made);
    await rm(own, { recursive: true });
  }
  await cp(made, join(folder, 'migrated'), { recursive: true });
  process.env[variable] = join(folder, 'migrated', 'database');
}

/** Makes all tables, in a data folder or in a database on a server. */
export function makeDatabase(folder: string, databaseUrl?: string): void {
  const program = new URL('migrated-database.ts', import.meta.url).pathname;
  execFileSync(process.execPath, ['--conditions=dragoman-source', program, folder, ...(databaseUrl === undefined ? [] : [databaseUrl])], { stdio: 'inherit' });
}

async function hashOfMigrations(): Promise<string> {
  const root = new URL('../..', import.meta.url).pathname;
  const hash = createHash('sha256');
  const files = ['src/store/empty-database.br', 'src/app/database.ts', ...globSync('src/**/*.sql', { cwd: root }).toSorted()];
  for (const file of files) hash.update(`${file}\n`).update(await readFile(join(root, file)));
  return hash.digest('hex');
}

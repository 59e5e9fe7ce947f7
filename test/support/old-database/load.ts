/*
 * A database as the release of 2026-11-22 left it: its tables by the migrations of that time (`migrations.json`, with their hashes then), and `data.sql`, what
 * `pg_dump --data-only --inserts` wrote of a server that had served some users. Its month is made the current one.
 */
import { createHash } from 'node:crypto';
import { globSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import pg from 'pg';
import { systemClock } from '#kit/async/clock';
import { openLog } from '#telemetry/log';
import { sql } from 'kysely';
import { kyselyOver } from '../../../src/store/driver.ts';
import { turns } from '../../../src/store/embedded.ts';
import { ensureDatabase } from '../../../src/store/empty-database.ts';
import { openEngine } from '../../../src/store/engine.ts';
import type { Place } from '../databases.ts';

/** The variables that the server was started with. */
export const oldEnvironment = {
  DRAGOMAN_MASTER_KEY: 'dGhlIG1hc3RlciBrZXkgb2YgYW4gb2xkIGluc3RhbGw=',
  DRAGOMAN_ADMIN_API_KEY: 'root'.repeat(16),
};

/** The texts of its API keys. */
export const oldKeys = {
  ann: 'dgm_aggBf0YzPgehDYkdx7LCEZrcOcNUwCczthcN39C0SaJl40KvcTJ0p09pwtx9',
  /** Ann's, for `passthrough` and the model `built-in` alone. */
  scoped: 'dgm_DGlLk6NVVqOpcVOqh9s3KuJ0bk0IiRJT6ilgdO4mWpY16sOXqcHTF0ufe5mf',
  revoked: 'dgm_UKnTBkgcc3vKnNJjkoLsBHyg2PA57EL7uLhsRe0YK48m9HBAww38U1y9sgkn',
  bob: 'dgm_2G8mmpQqwRRypcup4KB7e0tZNN0xrRXrkXOniF6PNEnpFIB5CQhKG0ofb2az',
  suspended: 'dgm_Y7i617oRrehe2IwAHWJq6nNDVG3I5yCrdKVY7fWuEmAnnmlbBQemJ0ffq6wt',
  deleted: 'dgm_1Nq4W12C5qEZICfZo1LkhX4BOp3NUhjO9c0gLh3sInCqYEaPN1F5a0hv4o3v',
};

const root = new URL('../../..', import.meta.url).pathname;

/** Fills an empty database. The server's home is `place.folder`. */
export async function loadOldDatabase({ folder, databaseUrl }: Place): Promise<void> {
  if (databaseUrl !== undefined) {
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    try {
      return await fill((text) => client.query(text));
    } finally {
      await client.end();
    }
  }
  const inside = join(folder, 'data', 'database');
  await mkdir(join(folder, 'data'), { recursive: true, mode: 0o700 });
  await ensureDatabase(inside);
  const engine = await openEngine({ start: { folder: inside, settings: ['timezone=UTC'] }, clock: systemClock, log: openLog('silent') });
  const db = kyselyOver(turns(engine, systemClock)(60));
  try {
    await fill((text) => sql.raw(text).execute(db));
  } finally {
    await engine.close();
  }
}

async function fill(run: (text: string) => Promise<unknown>): Promise<void> {
  const hashes = JSON.parse(await readFile(new URL('migrations.json', import.meta.url), 'utf8')) as Readonly<Record<string, string>>;
  const files = globSync('src/{store,resources/*}/*.sql', { cwd: root }).filter((file) => basename(file) in hashes);
  await run('create table migration (name text primary key, hash text not null, ran_at timestamptz not null default now())');
  for (const file of files.toSorted((a, b) => (basename(a) < basename(b) ? -1 : 1))) {
    const [name, text] = [basename(file), await readFile(join(root, file), 'utf8')];
    if (createHash('sha256').update(text).digest('hex') !== hashes[name]) throw new Error(`${file} is not what it was on 2026-11-22.`);
    await run(text);
    await run(`insert into migration (name, hash) values ('${name}', '${hashes[name]}')`);
  }
  for (const table of ['usage', 'usage_hour', 'spent'])
    for (const ahead of [0, 1]) {
      const [name, month] = [`${table}_${monthAt(ahead).replace('-', '_')}`, monthAt(ahead)];
      await run(`create table ${name} (like ${table} including defaults including constraints)`);
      await run(`alter table ${table} attach partition ${name} for values in ('${month}')`);
    }
  await run(asOfNow(await readFile(new URL('data.sql', import.meta.url), 'utf8')));
}

/** The data with its months, from 2026-10 to 2026-12, in place of the last, the current and the next one. */
function asOfNow(text: string): string {
  return text.replaceAll(/2026([-_])(1[012])/g, (_, sign: string, month: string) => monthAt(Number(month) - 11).replace('-', sign));
}

/** A month as `2026-11`, this many after the current one, UTC. */
export function monthAt(ahead: number): string {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead)).toISOString().slice(0, 7);
}

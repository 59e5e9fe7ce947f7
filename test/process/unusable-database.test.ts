/* A database that the server refuses to open: the doctor finds it, and says what the start says. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { systemClock } from '#kit/async/clock';
import { openStore, type Database } from '#store/open';
import { onBothDatabases, type Place } from '../support/databases.ts';
import { startTestServer } from '../support/server.ts';
import { ofNode, passedOn } from '../support/surroundings.ts';

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

function run(command: readonly string[], { folder, databaseUrl }: Place, env: Readonly<Record<string, string>>) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...ofNode, main, ...command], {
    cwd: folder,
    env: { ...passedOn('HOME'), PORT: '0', ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }), ...env },
    encoding: 'utf8',
    timeout: 60_000,
  });
  return { status, stdout, said: stderr.trim() };
}

function doctor(place: Place, env: Readonly<Record<string, string>> = {}) {
  const { status, stdout } = run(['doctor', '--json'], place, env);
  const { checks } = JSON.parse(stdout) as { checks: readonly { name: string; state: string; says: string }[] };
  const { state, says } = checks.find(({ name }) => name === 'database')!;
  return { status, state, says };
}

/** Works on the database where no server runs. */
async function within({ folder, databaseUrl }: Place, work: (db: Database) => Promise<unknown>) {
  const store = await openStore({ folder: join(folder, 'data'), ...(databaseUrl === undefined ? {} : { databaseUrl }), migrations: [], clock: systemClock });
  try {
    await work(store.db);
  } finally {
    await store.close();
  }
}

onBothDatabases('a database that this version does not open', ({ place }) => {
  test('is found by the doctor with the words of the start: migrated by a newer version, made between releases, sealed with another key', async () => {
    const where = await place();
    await (await startTestServer(where)).close();
    expect(doctor(where)).toMatchObject({ status: 0, state: 'ok' });
    const file = join(where.folder, 'data/master.key');
    const refused = (code: number, words: RegExp, env: Readonly<Record<string, string>> = {}) => {
      const { status, says } = doctor(where, env);
      expect([status, says]).toEqual([1, expect.stringMatching(words)]);
      const served = run(['serve'], where, env);
      expect([served.status, served.said.replace(/^dragoman: /, '')]).toEqual([code, says]);
    };

    refused(2, /^DRAGOMAN_MASTER_KEY does not open what this database has sealed/, { DRAGOMAN_MASTER_KEY: randomBytes(32).toString('base64') });
    renameSync(file, `${file}.aside`);
    refused(2, /^DRAGOMAN_MASTER_KEY is not set, and the file .*master\.key with the key of this database is missing\. Copy/);
    expect(existsSync(file)).toBe(false);
    renameSync(`${file}.aside`, file);

    await within(where, (db) => sql`insert into migration (name, hash) values ('2099-01-01-x.sql', 'x')`.execute(db));
    refused(1, /^A newer version of Dragoman has migrated the database \(2099-01-01-x\.sql\)/);
    await within(where, (db) => sql`delete from migration where name = '2099-01-01-x.sql'`.execute(db));

    await within(where, (db) => sql`update migration set hash = 'x' where name = '2026-12-15-quicker-books.sql'`.execute(db));
    refused(1, /^The database was made by a state of Dragoman between two releases.*new data folder/);
  }, 240_000);
});

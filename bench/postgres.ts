/** A private PostgreSQL: Debian's programs in a temporary folder, with its defaults (fsync on), removed afterwards. */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { cores, freePort, start, until, type Cores } from './processes.ts';

export interface Postgres {
  readonly pid: number;
  /** A new, empty database. */
  database(): Promise<string>;
  stop(): Promise<void>;
}

/** The folder of Debian's newest server, if one is installed. */
export function postgresPrograms(): string | undefined {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root).filter((version) => existsSync(join(root, version, 'bin/initdb'))) : [];
  const newest = versions.toSorted((a, b) => Number(b) - Number(a))[0];
  return newest === undefined ? undefined : join(root, newest, 'bin');
}

interface PostgresOptions {
  readonly core?: Cores;
  readonly settings?: readonly string[];
}

/**
 * Creates and starts a server in the folder. PostgreSQL refuses to run as root: root lends it the user `postgres`.
 *
 * @param settings as `name=value`, in place of the defaults
 */
export async function startPostgres(programs: string, folder: string, { core = cores.others, settings = [] }: PostgresOptions = {}): Promise<Postgres> {
  const place = join(folder, 'postgres');
  mkdirSync(place);
  const password = randomBytes(16).toString('hex');
  const passwordFile = join(place, 'password');
  writeFileSync(passwordFile, password);
  const borrowed = process.getuid?.() === 0 ? ['runuser', '-u', 'postgres', '--'] : [];
  if (borrowed.length > 0) {
    const id = (which: string) => Number(spawnSync('id', [which, 'postgres'], { encoding: 'utf8' }).stdout);
    chmodSync(folder, 0o711);
    for (const path of [place, passwordFile]) chownSync(path, id('-u'), id('-g'));
  }
  const [program, ...words] = [
    ...borrowed,
    join(programs, 'initdb'),
    '-D',
    join(place, 'data'),
    '-U',
    'bench',
    '--auth=scram-sha-256',
    `--pwfile=${passwordFile}`,
    '--encoding=UTF8',
    '--no-locale',
  ];
  const made = spawnSync(program, words, { cwd: place, encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`PostgreSQL could not be created: ${made.stderr}`);

  const port = await freePort();
  const [server, ...options] = [...borrowed, join(programs, 'postgres'), '-D', join(place, 'data'), '-k', place, '-h', '127.0.0.1', '-p', String(port)];
  for (const setting of settings) options.push('-c', setting);
  const running = start({ program: server, words: options, core, folder: place, log: join(folder, 'postgres.log'), ending: 'SIGINT' });
  const url = (name: string) => `postgres://bench:${password}@127.0.0.1:${port}/${name}`;
  const ask = async (sql: string): Promise<true> => {
    const client = new Client(url('postgres'));
    try {
      await client.connect();
      await client.query(sql);
      return true;
    } finally {
      await client.end();
    }
  };
  await until(() => ask('select 1').catch(() => undefined), { what: `PostgreSQL did not start: ${running.lastWords()}`, alive: running.alive });
  const pid = Number(readFileSync(join(place, 'data/postmaster.pid'), 'utf8').split('\n', 1)[0]);
  let databases = 0;
  return {
    pid,
    async database() {
      const name = `bench_${++databases}`;
      await ask(`create database ${name}`);
      return url(name);
    },
    async stop() {
      if (running.alive()) process.kill(pid, 'SIGINT');
      await running.stop();
    },
  };
}

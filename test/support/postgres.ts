/*
 * Vitest's global set-up: one PostgreSQL server for all test files, on a free port, in a temporary folder, without fsync. It runs below a shell that ends
 * it when its input closes, so that it is gone however the run ends. Where PostgreSQL is not installed, the tests on it are skipped.
 */
import { spawn } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { makeDatabase, migratedName } from './migrated.ts';
import { ownPort } from './ports.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Address of a server on which tests may create databases; undefined where there is none. */
    postgres: string | undefined;
  }
}

const script = `
set -e
if [ "$(id -u)" = 0 ]; then chown postgres "$folder"; as="runuser -u postgres --"; else as=""; fi
trap '' INT TERM HUP
$as "$bin/initdb" -D "$folder/data" -U postgres -A trust -E UTF8 --no-locale --no-sync >"$folder/log" 2>&1
$as "$bin/postgres" -D "$folder/data" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=300 -c shared_buffers=128MB \\
  -c fsync=off -c full_page_writes=off -c max_wal_size=4GB -c timezone=Asia/Kolkata >>"$folder/log" 2>&1 &
cat >/dev/null || true
$as "$bin/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true
rm -rf "$folder"
`;

export default async function setUp(project: TestProject): Promise<(() => Promise<void>) | void> {
  const bin = findBin();
  project.provide('postgres', undefined);
  if (!bin) return console.warn('PostgreSQL is not installed here: the tests on it are skipped (apt-get install postgresql).');
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-postgres-'));
  await chmod(folder, 0o755);
  const port = await ownPort();
  const shell = spawn('sh', ['-c', script], { stdio: ['pipe', 'ignore', 'inherit'], env: { ...process.env, bin, folder, port: String(port) }, detached: true });
  const ended = new Promise<void>((resolve) => shell.once('exit', () => resolve()));
  const stop = () => {
    shell.stdin.end();
    return ended;
  };
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  try {
    await Promise.race([answers(url), ended.then(() => Promise.reject(new Error('PostgreSQL does not start.')))]);
    await administer(url, `create database ${migratedName}`);
    makeDatabase(folder, new URL(migratedName, url).href);
  } catch (error) {
    await stop();
    throw error;
  }
  project.provide('postgres', url);
  return stop;
}

/** The folder of the server's programs, which Debian does not put in the path. */
function findBin(): string | undefined {
  const places = [...globSync('/usr/lib/postgresql/*/bin').toSorted(), ...(process.env['PATH'] ?? '').split(':')];
  return places.find((place) => existsSync(join(place, 'initdb')) && existsSync(join(place, 'postgres')));
}

async function answers(url: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    const client = new pg.Client({ connectionString: url });
    try {
      await client.connect();
      return;
    } catch (error) {
      if (tries === 300) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    } finally {
      await client.end();
    }
  }
}

/** A statement that concerns no single database. */
export async function administer(address: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: address });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

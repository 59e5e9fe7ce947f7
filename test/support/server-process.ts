import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { Place } from './databases.ts';
import { withDatabase } from './migrated.ts';
import { providerYaml } from './server.ts';
import { ofNode, passedOn } from './surroundings.ts';

/** The whole server as a process of its own, for tests that kill it. */
export interface ServerProcess {
  readonly url: string;
  readonly key: string;
  readonly pid: number;
  readonly child: ChildProcess;
  /** Replaces the `yaml` part of its settings file and has it reloaded, which takes a moment. */
  reload(yaml: string): Promise<void>;
  /** Kills it, as kill -9 does. */
  kill(): Promise<void>;
  /** Stops it as an operator does. @returns the exit code */
  stop(): Promise<number | null>;
}

const source = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const { isCurrent } = (await import(new URL('../../bin/stamp.js', import.meta.url).href)) as { isCurrent: () => boolean };
/** What `npm start` runs. */
const main = isCurrent() ? fileURLToPath(new URL('../../dist/main.js', import.meta.url)) : source;

/**
 * Starts it in a place, with a scripted upstream as its provider, and waits until it answers. It is stopped when the test ends. `yaml` is added to its settings,
 * `providers` to their providers; `preload` is a module that is loaded first and may talk to the test over the process's channel; `program` runs in place of
 * what `npm start` runs.
 */
export async function startProcess(
  { folder, databaseUrl }: Place,
  upstream: string,
  yaml = '',
  { providers = '', preload, program = main }: { readonly providers?: string; readonly preload?: URL; readonly program?: string } = {},
): Promise<ServerProcess> {
  const key = 'k'.repeat(64);
  const file = join(folder, 'dragoman.yaml');
  const data = join(folder, 'data');
  const settings = (more: string) => writeFile(file, `logLevel: fatal\n${providerYaml(upstream, providers)}${more}`);
  await settings(yaml);
  if (databaseUrl === undefined) await withDatabase(data);
  const ofItsNode = preload ? ['--conditions=dragoman-source', '--import', preload.href] : ofNode; // one that is measured is optimized as everywhere else
  const child = spawn(process.execPath, [...ofItsNode, preload ? source : program], {
    stdio: ['ignore', 'ignore', 'inherit', ...(preload ? ['ipc' as const] : [])],
    env: {
      ...passedOn(),
      DRAGOMAN_CONFIG: file,
      DRAGOMAN_DATA: data,
      DRAGOMAN_ADMIN_API_KEY: key,
      PORT: '0',
      ...(databaseUrl ? { DATABASE_URL: databaseUrl } : {}),
    },
  });
  const ended = once(child, 'exit');
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  onTestFinished(kill);
  const stop = async () => {
    child.kill('SIGTERM');
    const [code] = (await ended) as [number | null];
    return code;
  };
  const reload = async (changed: string) => {
    await settings(changed);
    child.kill('SIGHUP');
  };
  for (;;) {
    const url = await answeringAt(join(data, 'server.json'), child.pid!);
    if (url !== undefined) return { url, key, pid: child.pid!, child, reload, kill, stop };
    if (child.exitCode !== null) throw new Error(`The server ended with ${child.exitCode}.`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** The address at which the process answers, once it does. */
async function answeringAt(file: string, pid: number): Promise<string | undefined> {
  try {
    const said = JSON.parse(await readFile(file, 'utf8')) as { pid: number; url: string };
    if (said.pid !== pid) return undefined;
    return (await fetch(`${said.url}/readyz`)).ok ? said.url : undefined;
  } catch {
    return undefined;
  }
}

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { Agent, request, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { isPortFree, ownPort } from './ports.ts';
import { chat } from './server.ts';
import type { Place } from './databases.ts';

const root = new URL('../..', import.meta.url).pathname;
const key = 'k'.repeat(64);

/** Dragoman with two workers, as `npm start` runs it. */
export interface Cluster {
  readonly port: number;
  readonly url: string;
  /** The first user's key. */
  readonly key: string;
  readonly folder: string;
  readonly databaseUrl: string;
  readonly launcher: ChildProcess;
  /** The parent's process id. */
  readonly parent: number;
  readonly errors: () => string;
  /** The launcher's exit code. */
  readonly ended: Promise<number | null>;
  /** A client with one connection, to a worker other than these processes. */
  client(elsewhere?: readonly number[]): Promise<Client>;
  get(path: string): Promise<Response>;
}

/** One kept-alive connection. */
export interface Client {
  /** The id of the worker's process. */
  readonly worker: number;
  /** Sends a small chat completion. */
  ask(body?: object): Promise<Answer>;
}

interface Answer {
  readonly status: number;
  readonly id: string;
  readonly headers: IncomingMessage['headers'];
  /** Resolves when the first bytes of the body have arrived. */
  readonly begun: Promise<void>;
  /** The whole body. Rejects if the connection is cut. */
  readonly text: Promise<string>;
}

export const settingsFile = (folder: string) => join(folder, 'dragoman.yaml');

/** Starts it in a place with a PostgreSQL database and waits until both workers serve. It is stopped when the test ends. */
export async function startCluster({ folder, databaseUrl }: Place, yaml = ''): Promise<Cluster> {
  const port = await ownPort();
  await writeFile(settingsFile(folder), yaml);
  const launcher = spawn(process.execPath, [join(root, 'bin/dragoman.js')], {
    env: {
      ...process.env,
      PORT: String(port),
      DRAGOMAN_CONFIG: settingsFile(folder),
      DRAGOMAN_DATA: join(folder, 'data'),
      DATABASE_URL: databaseUrl,
      DRAGOMAN_WORKERS: '2',
      DRAGOMAN_ADMIN_API_KEY: key,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  launcher.stdout.on('data', (text) => (output += text));
  launcher.stderr.on('data', (text) => (errors += text));
  const ended = once(launcher, 'exit').then(([code]) => code as number | null);
  onTestFinished(async () => {
    launcher.kill('SIGKILL'); // its parent and workers notice
    await ended;
    await until(() => isPortFree(port));
  });

  const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization: `Bearer ${key}`, connection: 'close' } });
  const serving = async () => /^dragoman_workers 2$/m.test(await (await get('/metrics')).text());
  await until(() => {
    if (launcher.exitCode !== null) throw new Error(`It ended with ${launcher.exitCode}: ${errors}`);
    return serving().catch(() => false);
  }, 100);
  await until(() => output.includes('listening'));
  const { pid: parent } = JSON.parse(readFileSync(join(folder, 'data/server.json'), 'utf8')) as { pid: number };
  const workerOf = (id: string) => new RegExp(`"pid":(\\d+),[^\\n]*${id}`).exec(errors)?.[1];

  return {
    port,
    url: `http://127.0.0.1:${port}`,
    key,
    folder,
    databaseUrl: databaseUrl!,
    launcher,
    parent,
    errors: () => errors,
    ended,
    get,
    async client(elsewhere = []) {
      for (;;) {
        const ask = connection(port);
        const { id, text } = await ask();
        await text;
        const worker = await until(() => Number(workerOf(id)));
        if (!elsewhere.includes(worker)) return { worker, ask };
      }
    },
  };
}

function connection(port: number): Client['ask'] {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return async (body = {}) => {
    const sent = request({ port, host: '127.0.0.1', path: chat, method: 'POST', agent, headers: { authorization: `Bearer ${key}` } });
    sent.end(JSON.stringify({ model: 'built-in', messages: [{ role: 'user', content: 'Say exactly: hello' }], ...body }));
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const begun = once(answer, 'readable').then(() => undefined);
    const text = answer.toArray().then((pieces) => Buffer.concat(pieces as Buffer[]).toString());
    text.catch(() => undefined);
    return { status: answer.statusCode!, id: String(answer.headers['x-request-id']), headers: answer.headers, begun, text };
  };
}

/** Waits up to a minute until the result is truthy. @param pause milliseconds between two looks: what a look costs is taken from those who start meanwhile */
export async function until<Found>(what: () => Found | Promise<Found>, pause = 20): Promise<NonNullable<Found>> {
  for (const end = performance.now() + 60_000; performance.now() < end;) {
    const found = await what();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
  throw new Error('It did not happen.');
}

/** True while the process runs; a zombie does not. */
export function isAlive(pid: number): boolean {
  try {
    if (process.platform === 'linux' && / Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))) return false;
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

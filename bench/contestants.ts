/** Who is measured, and how each is started in front of the same provider. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { cores, freePort, installed, start, until, type Running } from './processes.ts';
import type { Postgres } from './postgres.ts';

export type Name = 'nginx' | 'floor' | 'portkey' | 'dragoman' | 'dragoman, embedded';

/** A contestant that listens. */
export interface Contestant {
  readonly name: Name;
  readonly port: number;
  readonly path: string;
  readonly headers: readonly string[];
  /** The gateway's own process, not that of a launcher. */
  readonly pid: number;
  readonly databasePid: number | undefined;
  /** Of Node's inspector, where it was asked for. */
  readonly inspector: number | undefined;
  stop(): Promise<void>;
}

export interface Place {
  /** Empty, or left by an earlier start of the same contestant. */
  readonly folder: string;
  readonly upstreamPort: number;
  readonly postgres: Postgres | undefined;
  /** A database used before; else a new one. */
  readonly databaseUrl?: string;
  /** Opens Node's inspector, for a profile. */
  readonly inspected?: boolean;
  /** Processes of Dragoman's own that serve; 1 unless said. */
  readonly workers?: number;
  /** Not pinned to the gateway's core. */
  readonly unpinned?: boolean;
}

/** Why a contestant cannot be measured here; `undefined` if it can. */
export function missing(name: Name, postgres: Postgres | undefined): string | undefined {
  switch (name) {
    case 'nginx':
      return installed('nginx') ? undefined : 'nginx is not installed (apt-get install nginx).';
    case 'portkey':
      return existsSync(portkeyServer) ? undefined : 'Portkey is not installed (npm run bench -- --portkey installs it outside the project).';
    case 'dragoman':
      return postgres ? undefined : 'PostgreSQL is not installed (apt-get install postgresql): the rows with DATABASE_URL are missing.';
    case 'floor':
    case 'dragoman, embedded':
      return undefined;
    default:
      return name satisfies never;
  }
}

/** Starts a contestant; it listens, but need not be warm. */
export async function open(name: Name, place: Place): Promise<Contestant> {
  mkdirSync(place.folder, { recursive: true });
  switch (name) {
    case 'nginx':
      return openNginx(place);
    case 'floor':
      return openNode(name, join(import.meta.dirname, 'floor/server.ts'), place, { words: [], headers: [`Authorization: Bearer ${key}`] });
    case 'portkey':
      return openNode(name, portkeyServer, place, {
        words: ['--headless'],
        headers: ['Authorization: Bearer upstream-secret', 'x-portkey-provider: openai', `x-portkey-custom-host: http://127.0.0.1:${place.upstreamPort}/v1`],
      });
    case 'dragoman':
    case 'dragoman, embedded':
      return openDragoman(name, place);
    default:
      return name satisfies never;
  }
}

const chatPath = '/v1/chat/completions';
const key = randomBytes(48).toString('base64url');

async function openNginx({ folder, upstreamPort }: Place): Promise<Contestant> {
  const port = await freePort();
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, nginxSettings({ folder, port, upstreamPort }));
  const running = start({
    program: 'nginx',
    words: ['-c', file, '-p', folder, '-e', join(folder, 'error.log')],
    core: cores.gateway,
    folder,
    log: join(folder, 'log'),
  });
  return listening('nginx', running, { port, path: chatPath, headers: [] });
}

/** One worker that passes bytes on as they come, over kept-alive connections; no log. */
function nginxSettings({ folder, port, upstreamPort }: { folder: string; port: number; upstreamPort: number }): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((what) => `${what}_temp_path ${folder}/${what};`).join(' ');
  return `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off; pid ${folder}/nginx.pid; worker_processes 1; worker_rlimit_nofile 20000;
events { worker_connections 16384; }
http {
  access_log off; ${temporary}
  keepalive_requests 1000000000; client_body_buffer_size 64k;
  upstream provider { server 127.0.0.1:${upstreamPort}; keepalive 64; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / { proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 300s; }
  }
}
`;
}

async function openNode(
  name: Name,
  file: string,
  { folder, upstreamPort, inspected }: Place,
  { words, headers }: { words: string[]; headers: string[] },
): Promise<Contestant> {
  const port = await freePort();
  const inspector = inspected ? await freePort() : undefined;
  const environment = { PORT: String(port), UPSTREAM: `http://127.0.0.1:${upstreamPort}`, KEY: key, NODE_ENV: 'production' };
  const program = [...inspecting(inspector), file, ...words, ...(name === 'portkey' ? [`--port=${port}`] : [])];
  const running = start({ program: process.execPath, words: program, core: cores.gateway, folder, environment, log: join(folder, 'log') });
  return listening(name, running, { port, path: chatPath, headers, ...(inspector && { inspector }) });
}

const portkeyFolder = process.env['DRAGOMAN_BENCH_PORTKEY'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'dragoman-bench/portkey');
const portkeyServer = join(portkeyFolder, 'node_modules/@portkey-ai/gateway/build/start-server.js');

async function openDragoman(name: Name, { folder, upstreamPort, postgres, databaseUrl, inspected, unpinned, workers = 1 }: Place): Promise<Contestant> {
  writeFileSync(join(folder, 'dragoman.yaml'), dragomanSettings(upstreamPort));
  const server = name === 'dragoman' ? postgres : undefined;
  const url = server ? (databaseUrl ?? (await server.database())) : undefined;
  const port = await freePort();
  const inspector = inspected ? await freePort() : undefined;
  const environment = {
    PORT: String(port),
    DRAGOMAN_ADMIN_EMAIL: 'bench@example.com',
    DRAGOMAN_ADMIN_API_KEY: key,
    ...(url && { DATABASE_URL: url, DRAGOMAN_WORKERS: String(workers) }),
  };
  const dragoman = join(import.meta.dirname, '..');
  const words = inspector ? [...inspecting(inspector), '--conditions=source', join(dragoman, 'src/main.ts')] : [join(dragoman, 'bin/dragoman.js')];
  const running = start({
    program: process.execPath,
    words: [...words, 'serve'],
    core: unpinned ? cores.any : cores.gateway,
    folder,
    environment,
    log: join(folder, 'log'),
  });
  const contestant = await listening(name, running, {
    port,
    path: '/server/chatcompat/v1/chat/completions',
    headers: [`Authorization: Bearer ${key}`],
    ...(server && { databasePid: server.pid }),
    ...(inspector && { inspector }),
  });
  const { pid } = JSON.parse(readFileSync(join(folder, 'data/server.json'), 'utf8')) as { pid: number };
  return { ...contestant, pid };
}

function dragomanSettings(upstreamPort: number): string {
  return `providers:
  openai: { dialect: openai-chat, baseUrl: "http://127.0.0.1:${upstreamPort}/v1", apiKeys: [upstream-secret] }
  responses: { dialect: openai-responses, baseUrl: "http://127.0.0.1:${upstreamPort}/v1", apiKeys: [upstream-secret] }
  platform:
    { dialect: gemini, kind: vertex, project: bench, baseUrl: "http://127.0.0.1:${upstreamPort}/{region}/v1", credentials: { accessToken: upstream-secret }, regions: [us-central1] }
models:
  gpt-4o-mini: { targets: [{ provider: openai, model: gpt-4o-mini }] }
  gpt-4o: { targets: [{ provider: responses, model: gpt-4o-mini }] }
  gemini-2.5-flash: { targets: [{ provider: platform, model: gemini-2.5-flash }] }
`;
}

const inspecting = (port: number | undefined) => (port === undefined ? [] : [`--inspect=127.0.0.1:${port}`]);

const question = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello?' }] });

/** Waits until the door gives a real answer. */
async function listening(name: Name, running: Running, contestant: Pick<Contestant, 'port' | 'path' | 'headers'> & Partial<Contestant>): Promise<Contestant> {
  try {
    await until(() => answered(contestant), { what: `${name} gave no answer.`, alive: running.alive });
  } catch (error) {
    await running.stop();
    throw new Error(`${error instanceof Error ? error.message : ''} ${running.lastWords()}`, { cause: error });
  }
  return { databasePid: undefined, inspector: undefined, ...contestant, name, pid: running.pid, stop: running.stop };
}

async function answered({ port, path, headers }: Pick<Contestant, 'port' | 'path' | 'headers'>): Promise<true | undefined> {
  try {
    const sent = headers.map((line) => line.split(': ') as [string, string]);
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body: question, headers: [...sent, ['content-type', 'application/json']] });
    await answer.arrayBuffer();
    return answer.ok ? true : undefined;
  } catch {
    return undefined;
  }
}

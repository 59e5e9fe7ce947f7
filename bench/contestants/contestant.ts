/** What a contestant is, and what starting one takes. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Postgres } from '../postgres.ts';
import { cores, freePort, start, until, type Running } from '../processes.ts';

export type Name = 'nginx' | 'floor' | 'portkey' | 'dragoman' | 'dragoman, embedded' | 'dragoman, before';

/** A program that is measured: one file in this folder. */
export interface Entrant {
  /** Why it cannot be measured on this machine; `undefined` if it can. */
  missing(postgres: Postgres | undefined): string | undefined;
  /** Starts it. It answers when this resolves, but is not warmed up. */
  open(place: Place): Promise<Contestant>;
}

/** A contestant that is running. */
export interface Contestant {
  readonly name: Name;
  readonly port: number;
  readonly path: string;
  readonly headers: readonly string[];
  /** Of the gateway itself, not of a launcher. */
  readonly pid: number;
  /** Of the launcher, where there is one. */
  readonly launcherPid?: number;
  readonly databasePid: number | undefined;
  /** It was started in. */
  readonly folder: string;
  /** The port by which mechanisms are switched off, if it was asked for. */
  readonly ablation?: number;
  stop(): Promise<void>;
}

export interface Place {
  /** Empty, or left by an earlier start of the same contestant. */
  readonly folder: string;
  readonly upstreamPort: number;
  readonly postgres: Postgres | undefined;
  /** The folder of another checkout of Dragoman, installed. */
  readonly before?: string | undefined;
  /** A database used before; absent: a new one. */
  readonly databaseUrl?: string;
  /** Tells `perf` the names of its functions, for a profile. */
  readonly profiled?: boolean;
  /** Runs under Valgrind, which counts its instructions when it is told to. */
  readonly counted?: boolean;
  /** Mechanisms can be switched off while it runs. */
  readonly ablated?: boolean;
  /** How many workers Dragoman runs; absent: 1. */
  readonly workers?: number;
  /** Not pinned to the gateway's core. */
  readonly unpinned?: boolean;
}

export const chatPath = '/v1/chat/completions';

/** The API key of clients, for contestants that check one. */
export const key = randomBytes(48).toString('base64url');

/** Starts a Node program that takes its port, the provider's address and the key from the environment. */
export async function openNode(
  name: Name,
  { file, words, headers }: { readonly file: string; readonly words: (port: number) => readonly string[]; readonly headers: readonly string[] },
  { folder, upstreamPort, profiled, counted }: Place,
): Promise<Contestant> {
  const port = await freePort();
  const running = start({
    ...counting([...naming(profiled), file, ...words(port)], counted),
    core: cores.gateway,
    folder,
    environment: { PORT: String(port), UPSTREAM: `http://127.0.0.1:${upstreamPort}`, KEY: key, NODE_ENV: 'production' },
    log: join(folder, 'log'),
  });
  return answering(name, running, { port, path: chatPath, headers, folder });
}

/** A Node program as it is started, under Valgrind where its instructions are to be counted. Of caches Valgrind knows two levels: these are a core's own. */
export const counting = (words: readonly string[], counted = false) =>
  counted ? { program: 'valgrind', words: [...valgrindOptions, process.execPath, ...words] } : { program: process.execPath, words };

const caches = ['--cache-sim=yes', '--I1=32768,8,64', '--D1=32768,8,64', '--LL=524288,8,64'];
const valgrindOptions = ['--tool=callgrind', '--instr-atstart=no', '--smc-check=all-non-file', ...caches];

export const naming = (profiled = false) => (profiled ? ['--perf-basic-prof'] : []);

/** Waits until it has answered a chat completion; ends it where it does not. */
export async function answering(name: Name, running: Running, contestant: Address & Partial<Contestant>): Promise<Contestant> {
  try {
    await until(() => isAnswered(contestant), { what: `${name} gave no answer.`, alive: running.alive, seconds: startSeconds });
  } catch (error) {
    await running.stop();
    throw new Error(`${error instanceof Error ? error.message : ''} ${running.lastWords()}`, { cause: error });
  }
  return { databasePid: undefined, ...contestant, name, pid: running.pid, stop: running.stop };
}

/** Under Valgrind a start takes half a minute, and some more beside other work. */
const startSeconds = 400;

type Address = Pick<Contestant, 'port' | 'path' | 'headers' | 'folder'>;

const question = JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello?' }] });

async function isAnswered({ port, path, headers }: Address): Promise<true | undefined> {
  try {
    const sent = headers.map((line) => line.split(': ') as [string, string]);
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body: question, headers: [...sent, ['content-type', 'application/json']] });
    await answer.arrayBuffer();
    return answer.ok ? true : undefined;
  } catch {
    return undefined;
  }
}

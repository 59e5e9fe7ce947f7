import { trimEnd } from '#kit/text/trim-end';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings, type SettingsArgs } from '#config/index';
import { providerModules } from '#providers/modules';
import type { NounRoute } from '#http/noun-route';
import { localTokenFile } from '#app/local-token';
import { CliError } from './cli-error.ts';
import { closedText, isClosed } from '#store/private-folder';

/** Where a command has its work done: a running server, or the data folder where none runs. The same addresses with the same checks. */
export interface AdminClient {
  /** @throws Refused in the server's words */
  ask(method: NounRoute['method'], path: string, body?: object): Promise<unknown>;
  /** Somebody else works here too, so there may be news. */
  readonly isServer: boolean;
  /** Where the server is. */
  readonly url?: string;
  close(): Promise<void>;
}

/** What a command is told of where to go. */
export interface AdminClientOptions extends Pick<SettingsArgs, 'config' | 'data' | 'databaseUrl'> {
  readonly url?: string;
  readonly key?: string;
}

const patienceMilliseconds = 30_000;

/**
 * The server that is named, else the one that runs on the data folder, else the folder.
 *
 * @param begins a folder in which nothing is yet is taken too
 * @throws Refused, BadSettings
 */
export async function openDesk(options: AdminClientOptions, begins: boolean): Promise<AdminClient> {
  const server = await serverDesk(options);
  if (server) return server;
  const { url: _url, key: _key, ...args } = options;
  const { settings } = readSettings({ kinds: providerModules, args });
  if (isClosed(settings.data)) throw new CliError(closedText(settings.data), 403);
  if (!begins && !settings.databaseUrl && !existsSync(join(settings.data, 'database')))
    throw new CliError(
      `There is nothing of Dragoman in ${settings.data} yet: start the server once, or name another folder with --data or a server with --url.`,
      404,
    );
  const { localAdmin } = await import('./local-admin.ts'); // the database, which nobody who asks a server needs to load
  return localAdmin(settings);
}

/** The server that is named, else the one that runs on the data folder. @returns nothing where none runs. @throws Refused, BadSettings */
export async function serverDesk({ url, key, ...args }: AdminClientOptions): Promise<(AdminClient & { readonly url: string }) | undefined> {
  if (url !== undefined) {
    if (key === undefined) throw new CliError('--url needs --key: the API key of an administrator at that server.', 400);
    return deskAt(url, key);
  }
  const { settings } = readSettings({ kinds: providerModules, args });
  const server = serverOn(settings.data);
  if (server && (await answers(server.url))) return deskAt(server.url, key ?? server.token);
  if (key !== undefined) throw new CliError(`No server runs on ${settings.data}: name one with --url, or leave out --key to work on the folder itself.`, 400);
  return undefined;
}

/** What a server that runs, or ran until it was killed, left in its folder. */
function serverOn(folder: string): { url: string; token: string } | undefined {
  try {
    const { pid, url } = JSON.parse(readFileSync(join(folder, 'server.json'), 'utf8')) as { pid: number; url: string };
    process.kill(pid, 0);
    return { url: url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:'), token: readFileSync(localTokenFile(folder), 'utf8').trim() };
  } catch {
    return undefined;
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(5000) });
    return true;
  } catch {
    return false;
  }
}

function deskAt(given: string, key: string): AdminClient & { readonly url: string } {
  const url = trimEnd(given, '/');
  return {
    isServer: true,
    url,
    async ask(method, path, body) {
      const answer = await fetched(`${url}${path}`, {
        method,
        headers: { 'x-access-tokens': key, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        redirect: 'error', // a key is for one server
        signal: AbortSignal.timeout(patienceMilliseconds),
      });
      const said = (await answer.json().catch(() => undefined)) as { message?: unknown } | undefined;
      if (answer.ok && said !== undefined) return said;
      const isOurs = typeof said?.message === 'string';
      if (answer.status === 404 && isOurs && String(said.message).startsWith('There is nothing at this address.'))
        throw new CliError('This is not the key of an administrator.', 403);
      throw new CliError(isOurs ? String(said.message) : `${url} answered ${answer.status}, and not as Dragoman does.`, isOurs ? answer.status : 502);
    },
    close: async () => {},
  };
}

async function fetched(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new CliError(`The server does not answer: ${cause instanceof Error ? cause.message : String(cause)}.`, 503);
  }
}

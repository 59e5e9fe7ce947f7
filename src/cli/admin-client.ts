import { trimEnd } from '#kit/text/trim-end';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { keyInEnvironment, readDataFolder, readSettings, type Settings, type SettingsArgs } from '#config/index';
import type { NounRoute } from '#http/noun-route';
import { reachableHere } from '#http/own-address';
import { actingHeader, localTokenFile } from '#app/local-token';
import { CliError } from './cli-error.ts';
import { closedText, isClosed } from '#store/private-folder';

/** Administration for commands: over HTTP at a running server, or in the data folder itself where none runs. Both have the same routes and checks. */
export interface AdminClient {
  /** @throws CliError with the server's message, or Fault */
  ask(method: NounRoute['method'], path: string, body?: object): Promise<unknown>;
  /** A file that the server makes, piece by piece. @throws as `ask` */
  download(path: string): Promise<AsyncIterable<Uint8Array | string>>;
  /** True for a running server, whose data others change too. */
  readonly isServer: boolean;
  /** The base address of the server; absent for a data folder. */
  readonly url?: string;
  /** Whether the server has no model of this name for the user with this e-mail address; absent for a data folder. */
  readonly lacksModel?: (name: string, email: string) => Promise<boolean>;
  close(): Promise<void>;
}

/** The options that choose a server or a data folder. */
export interface AdminClientOptions extends Pick<SettingsArgs, 'config' | 'data' | 'databaseUrl'> {
  readonly url?: string;
  readonly key?: string;
}

const timeoutMilliseconds = 30_000;

/**
 * A client of the server at `--url`, else of the server that runs on the data folder, else of the folder itself.
 * @param creates whether a data folder that does not exist yet is created
 * @throws CliError, BadSettings
 */
export async function openAdminClient(options: AdminClientOptions, creates: boolean): Promise<AdminClient> {
  const remote = await remoteAdmin(options);
  if (remote) return remote;
  const { url: _url, key: _key, ...args } = options;
  const { providerModules } = await import('#providers/modules'); // this and the database are nothing that a client of a server needs
  const { settings } = readSettings({ kinds: providerModules, args, asksProviders: false });
  if (isClosed(settings.data)) throw new CliError(closedText(settings.data), 403);
  if (!creates && !hasData(settings))
    throw new CliError(`${settings.data} holds no Dragoman data yet. Start the server once, or choose another folder with --data or a server with --url.`, 404);
  const { localAdmin } = await import('./local-admin.ts');
  return localAdmin(settings);
}

/** Whether there is a database: a server of PostgreSQL, or an embedded one whose making was finished. */
export const hasData = ({ databaseUrl, data }: Pick<Settings, 'databaseUrl' | 'data'>): boolean =>
  databaseUrl !== undefined || existsSync(join(data, 'database', 'PG_VERSION'));

/** A client of the server at `--url`, else of the server that runs on the data folder; `undefined` where none runs. @throws CliError, BadSettings */
export async function remoteAdmin(options: AdminClientOptions): Promise<(AdminClient & { readonly url: string }) | undefined> {
  const server = await serverFor(options);
  return server && adminAt(server.url, server.key);
}

/** A server, with the credential for it. */
export interface KnownServer {
  readonly url: string;
  readonly key: string;
  /** The credential is the local token. */
  readonly isLocal: boolean;
}

/** The server at `--url`, else the one that runs on the data folder; `undefined` where none runs. @throws CliError, BadSettings */
export async function serverFor({ url, key: given, ...args }: AdminClientOptions): Promise<KnownServer | undefined> {
  const key = given === '-' ? keyFromInput() : given;
  if (url !== undefined) {
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) throw new CliError('--url must be the address of a server, such as http://127.0.0.1:8080.', 400);
    const known = key ?? keyInEnvironment();
    if (known === undefined)
      throw new CliError(
        '--url needs an API key for that server, for administration that of an administrator: set DRAGOMAN_KEY, or add --key (--key - reads it from the standard input).',
        400,
      );
    return { url: trimEnd(url, '/'), key: known, isLocal: false };
  }
  const data = readDataFolder({ args });
  const server = serverOn(data);
  if (server && (await isReachable(server.url))) return { url: server.url, key: key ?? server.token, isLocal: key === undefined };
  if (key !== undefined)
    throw new CliError(`No server is running on ${data}. Add --url to use a server, or leave out --key to work on the data folder itself.`, 400);
  return undefined;
}

/** The first line of the standard input. */
function keyFromInput(): string {
  const key = readFileSync(0, 'utf8').split('\n', 1)[0]!.trim();
  if (key === '') throw new CliError('--key -: the standard input has no key.', 400);
  return key;
}

/** Address and token of the server that runs on a data folder, as it wrote them there. The server may have been killed since. */
function serverOn(folder: string): { url: string; token: string } | undefined {
  try {
    const { pid, url } = JSON.parse(readFileSync(join(folder, 'server.json'), 'utf8')) as { pid: number; url: string };
    process.kill(pid, 0);
    return { url: reachableHere(url), token: readFileSync(localTokenFile(folder), 'utf8').trim() };
  } catch {
    return undefined;
  }
}

async function isReachable(url: string): Promise<boolean> {
  try {
    await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(5000) });
    return true;
  } catch {
    return false;
  }
}

export function adminAt(url: string, key: string): AdminClient & { readonly url: string } {
  return {
    isServer: true,
    url,
    async ask(method, path, body) {
      const response = await fetched(`${url}${path}`, {
        method,
        headers: { 'x-access-tokens': key, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        redirect: 'error', // the key is for this server alone
        signal: AbortSignal.timeout(timeoutMilliseconds),
      });
      const answer = await response.json().catch(() => undefined);
      if (response.ok && answer !== undefined) return answer;
      throw refusalIn(url, response.status, answer);
    },
    async download(path) {
      const response = await fetched(url + path, { headers: { 'x-access-tokens': key }, redirect: 'error' });
      if (response.ok && response.body) return response.body;
      throw refusalIn(url, response.status, await response.json().catch(() => undefined));
    },
    async lacksModel(name, email) {
      const headers = { 'x-access-tokens': key, [actingHeader]: email };
      const response = await fetched(`${url}/v1/models/${encodeURIComponent(name)}`, { headers, redirect: 'error' });
      await response.body?.cancel();
      return response.status === 404;
    },
    close: async () => {},
  };
}

function refusalIn(url: string, status: number, answer: unknown): CliError {
  const said = (answer as { message?: unknown } | undefined)?.message;
  const message = typeof said === 'string' ? said : undefined;
  if (status === 404 && message?.startsWith('There is nothing at this address.')) return new CliError('This key does not belong to an administrator.', 403);
  if (message === undefined) return notDragoman(url, status);
  return new CliError(message, status);
}

/** What answered is no Dragoman, or not its base address. */
export function notDragoman(url: string, status: number): CliError {
  const { pathname } = new URL(url);
  const hint = pathname === '/' ? '' : `: leave out ${pathname} unless a proxy in front of the server needs it`;
  return new CliError(`${url} returned ${status}, but not a Dragoman error. Check the address${hint}.`, 502);
}

/** @throws CliError where the server does not respond */
export async function fetched(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new CliError(`${new URL(url).origin} does not respond: ${cause instanceof Error ? cause.message : String(cause)}.`, 503);
  }
}

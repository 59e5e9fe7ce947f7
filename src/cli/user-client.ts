import { actingHeader } from '#app/local-token';
import { adminAt, fetched, notDragoman, serverFor, type AdminClientOptions } from './admin-client.ts';
import { allOf, type ShownUser } from './admin-command.ts';
import { CliError } from './cli-error.ts';
import { badKey } from '#core/fault';
import { isObject } from '#core/json';

export interface UserOptions extends AdminClientOptions {
  /** Whom the operator of the server's own machine acts for. */
  readonly email?: string;
  readonly json?: true;
}

/** Requests of a user to a running server. */
export interface UserClient {
  /** @throws CliError with the server's message */
  send(method: string, path: string, init?: { readonly body?: string | FormData; readonly headers?: Readonly<Record<string, string>> }): Promise<Response>;
  /** The same for JSON. */
  ask<Answer>(method: string, path: string, body?: object): Promise<Answer>;
}

/**
 * A client for the user whose key it is; with the local token for the one with `--email`, else for the first administrator.
 * @throws CliError where no server runs, or `--email` comes with a key
 */
export async function openUserClient({ email, ...options }: UserOptions): Promise<UserClient> {
  const server = await serverFor(options);
  if (!server) throw new CliError('No server is running on the data folder: start one, or choose one with --url.', 409);
  const { url, key, isLocal } = server;
  if (!isLocal && email !== undefined) throw new CliError("--email is for the machine that the server runs on, without --key: a key is its user's.", 400);
  const own = { 'x-access-tokens': key, ...(isLocal ? { [actingHeader]: email ?? (await firstAdministrator(url, key)) } : {}) };
  const send: UserClient['send'] = async (method, path, { body, headers } = {}) => {
    const response = await fetched(`${url}${path}`, {
      method,
      headers: { ...own, ...headers },
      ...(body === undefined ? {} : { body }),
      redirect: 'error', // the key is for this server alone
    });
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    const refusal = isJson
      ? refusalIn(
          await response
            .clone()
            .json()
            .catch(() => undefined),
        )
      : undefined;
    if (response.ok && !refusal) return response;
    const { message, status } = refusal ?? {};
    if (status === 401) throw new CliError(badKey().message, 401); // the native interface has other words for it
    if (status !== undefined && typeof message === 'string') throw new CliError(message, status);
    throw notDragoman(url, response.status);
  };
  return {
    send,
    async ask<Answer>(method: string, path: string, body?: object) {
      const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
      return (await (await send(method, path, sent)).json()) as Answer;
    },
  };
}

/** A refusal by its body: with `compat.nativeErrors: envelope` the native interface refuses with 200. */
function refusalIn(body: unknown): { readonly message: unknown; readonly status: number } | undefined {
  return isObject(body) && 'error_ref' in body && typeof body['status'] === 'number' ? { message: body['message'], status: body['status'] } : undefined;
}

async function firstAdministrator(url: string, key: string): Promise<string> {
  for await (const { role, status, email } of allOf<ShownUser>(adminAt(url, key), '/server/admin/users'))
    if (role === 'admin' && status === 'active') return email;
  throw new CliError('There is no active administrator: name a user with --email.', 404);
}

import type { Command } from 'commander';
import { Fault } from '#core/fault';
import type { AdminClient, AdminClientOptions } from './admin-client.ts';
import { CliError } from './cli-error.ts';

export interface AdminOptions extends AdminClientOptions {
  readonly json?: true;
}

interface AdminCommand<Options> {
  readonly name: string;
  readonly description: string;
  /** Required options: flags and their description. */
  readonly needs?: Readonly<Record<string, string>>;
  /** Optional ones. */
  readonly takes?: Readonly<Record<string, string>>;
  /** The options whose field in a request has another name, by that name. */
  readonly fields?: Readonly<Record<string, `--${string}`>>;
  /** Whether it creates the data folder where there is none. */
  readonly creates?: true;
  readonly run: (admin: AdminClient, options: Options) => Promise<void>;
}

/** Adds a command that works through an `AdminClient`, with the options that all of them share. */
export function adminCommand<Options extends AdminOptions>(
  parent: Command,
  { name, description, needs, takes, fields = {}, creates, run }: AdminCommand<Options>,
): void {
  const command = parent.command(name).description(description);
  for (const [flags, meaning] of Object.entries(needs ?? {})) command.requiredOption(flags, meaning);
  for (const [flags, meaning] of Object.entries(takes ?? {})) command.option(flags, meaning);
  sharedOptions(command).action(async (options: Options) => {
    const { openAdminClient } = await import('./admin-client.ts'); // loaded here so that `serve` does not wait for it
    const admin = await openAdminClient(options, creates ?? false);
    try {
      await run(admin, options);
    } catch (error) {
      const flags = command.options.flatMap((one) => (one.long === undefined ? [] : [[one.attributeName(), one.long] as const]));
      throw asTyped(error, new Map([...flags, ...Object.entries(fields)]));
    } finally {
      await admin.close();
    }
  });
}

/** Which of these models the server does not have for a user; where none runs, nothing is known of that. */
export async function unknownModels({ lacksModel }: AdminClient, models: readonly string[], email = ''): Promise<readonly string[]> {
  const unknown: string[] = [];
  for (const name of models) if (name !== '' && name !== '*' && email !== '' && (await lacksModel?.(name, email))) unknown.push(name);
  return unknown;
}

/** The error, with the option that was typed where it begins with the field of a request: `--scopes must be …`. */
function asTyped(error: unknown, flags: ReadonlyMap<string, string>): unknown {
  if (!(error instanceof CliError || error instanceof Fault)) return error;
  const [start = '', field = ''] = /^([a-z]\w*)(?:\[\d+\])?(?= )/i.exec(error.message) ?? [];
  const flag = flags.get(field);
  return flag === undefined ? error : new CliError(flag + error.message.slice(start.length), error.status);
}

/** Adds the options that choose a server or a data folder, and `--json`. @param key what `--key` is */
export function sharedOptions(command: Command, key = "An administrator's API key, for use with --url"): Command {
  return command
    .option('--json', 'Print JSON.')
    .option('--url <address>', 'Address of the server. Default: the one running on the data folder; if none is, the folder itself.')
    .option('--key <key>', `${key}; - reads it from the standard input. Default: the environment's DRAGOMAN_KEY.`)
    .option('--config <file>', 'Settings file. Default: ./dragoman.yaml, if it exists.')
    .option('--data <folder>', 'Data folder. Default: ./data, unless set elsewhere.')
    .option('--database-url <url>', 'PostgreSQL 15 or newer, if the data is there.');
}

/** All items of a list, fetched page by page. */
export async function* allOf<Item>(admin: AdminClient, path: string, query: Readonly<Record<string, string>> = {}): AsyncGenerator<Item> {
  let cursor: string | null = null;
  do {
    const search = new URLSearchParams({ ...query, limit: '200', ...(cursor === null ? {} : { cursor }) });
    const page = (await admin.ask('GET', `${path}?${search.toString()}`)) as { items: Item[]; nextCursor: string | null };
    yield* page.items;
    cursor = page.nextCursor;
  } while (cursor !== null);
}

export interface ShownUser {
  readonly id: number;
  readonly email: string;
  readonly plan: string;
  readonly role: string;
  readonly status: string;
}

/** The user with this e-mail address, whatever its case. @throws CliError where there is none */
export async function userOf(admin: AdminClient, email: string): Promise<ShownUser> {
  for await (const user of allOf<ShownUser>(admin, '/server/admin/users', { query: email })) if (user.email.toLowerCase() === email.toLowerCase()) return user;
  throw new CliError(`There is no user ${email}.`, 404);
}

import type { Command } from 'commander';
import type { AdminClient, AdminClientOptions } from './admin-client.ts';
import { CliError } from './cli-error.ts';

export interface AdminOptions extends AdminClientOptions {
  readonly json?: true;
}

interface Described<Options> {
  readonly name: string;
  readonly description: string;
  /** Flags and what they mean. */
  readonly needs?: Readonly<Record<string, string>>;
  readonly takes?: Readonly<Record<string, string>>;
  /** May it be the first thing that is ever done in a data folder? */
  readonly begins?: true;
  readonly does: (admin: AdminClient, options: Options) => Promise<void>;
}

/** A command that asks a server or a data folder: what all of them are told, and how they end. */
export function adminCommand<Options extends AdminOptions>(parent: Command, { name, description, needs, takes, begins, does }: Described<Options>): void {
  const command = parent.command(name).description(description);
  for (const [flags, meaning] of Object.entries(needs ?? {})) command.requiredOption(flags, meaning);
  for (const [flags, meaning] of Object.entries(takes ?? {})) command.option(flags, meaning);
  deskOptions(command).action(async (options: Options) => {
    const { openDesk } = await import('./admin-client.ts'); // what `serve` does not need, it does not wait for
    const admin = await openDesk(options, begins ?? false);
    try {
      await does(admin, options);
    } finally {
      await admin.close();
    }
  });
}

/** Where a command has its work done, and how it says so. */
export function deskOptions(command: Command): Command {
  return command
    .option('--json', 'Prints JSON.')
    .option('--url <address>', 'The server to ask; absent: the one that runs on the data folder, or the folder itself where none runs.')
    .option('--key <key>', "An administrator's API key, for a server elsewhere.")
    .option('--config <file>', 'The settings file; ./dragoman.yaml if it is there.')
    .option('--data <folder>', 'The data folder; ./data if nothing else is set.')
    .option('--database-url <url>', 'PostgreSQL 15 or newer, where that holds the data.');
}

/** All items of a list, page by page. */
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

/** @throws Refused where nobody has the address */
export async function userOf(admin: AdminClient, email: string): Promise<ShownUser> {
  for await (const user of allOf<ShownUser>(admin, '/server/admin/users', { query: email })) if (user.email.toLowerCase() === email.toLowerCase()) return user;
  throw new CliError(`There is no user ${email}.`, 404);
}

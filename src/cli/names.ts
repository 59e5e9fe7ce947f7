import type { AdminClient } from './admin-client.ts';
import { allOf, type ShownUser } from './admin-command.ts';

/** The e-mail addresses of users by their IDs, each asked for once; of a user who is gone, the ID. */
export function emailsOf(admin: AdminClient): (id: number) => Promise<string> {
  const known = new Map<number, Promise<string>>();
  const ask = async (id: number) => {
    try {
      return ((await admin.ask('GET', `/server/admin/users/${id}`)) as ShownUser).email;
    } catch {
      return String(id);
    }
  };
  return (id) => {
    const email = known.get(id) ?? ask(id);
    known.set(id, email);
    return email;
  };
}

/** What a table shows in place of an ID. */
export type Names = (id: unknown) => string;

type Named = { readonly id: number; readonly name: string };
type Sum = Readonly<Record<string, unknown>>;

/** The names for the columns `user`, `team` and `key` of a table of usage, as far as it has them. @param sums what was used, by what is asked for */
export async function namesOf(admin: AdminClient, groups: readonly string[], sums: (groupBy: string) => Promise<readonly Sum[]>): Promise<Map<string, Names>> {
  const names = new Map<string, Names>();
  const show = (group: string, found: ReadonlyMap<unknown, string>) => names.set(group, (id) => found.get(id) ?? String(id));
  if (groups.includes('user')) {
    const users = await Array.fromAsync(allOf<ShownUser>(admin, '/server/admin/users'));
    show('user', new Map(users.map(({ id, email }) => [id, email])));
  }
  if (groups.includes('team')) {
    const teams = await Array.fromAsync(allOf<Named>(admin, '/server/admin/teams'));
    show('team', new Map<unknown, string>([[null, '–'], ...teams.map(({ id, name }) => [id, name] as const)]));
  }
  if (groups.includes('key')) {
    const owners = new Set((await sums('user')).map(({ user }) => user));
    const found = new Map<unknown, string>();
    for (const owner of owners) for (const { id, name } of await keysOf(admin, owner)) found.set(id, `${name} (${id})`);
    show('key', found);
  }
  return names;
}

async function keysOf(admin: AdminClient, user: unknown): Promise<readonly Named[]> {
  try {
    return await Array.fromAsync(allOf<Named>(admin, `/server/admin/users/${String(user)}/keys`));
  } catch {
    return []; // of a user who is gone
  }
}

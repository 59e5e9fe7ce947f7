import type { ApiKeys } from './resources/api-keys/store.ts';
import type { Users } from './resources/users/store.ts';

export interface FirstUser {
  readonly email: string;
  /** In clear, this once. */
  readonly key: string;
}

const defaultEmail = 'admin@localhost';

/** The administrator whom an empty house gets, with a key; a house that has users gets nobody. */
export async function firstUser({
  users,
  keys,
  email = defaultEmail,
  key,
}: {
  users: Users;
  keys: ApiKeys;
  email?: string | undefined;
  key?: string | undefined;
}): Promise<FirstUser | undefined> {
  if (!(await users.none())) return undefined;
  const user = await users.add({ email, role: 'admin', plan: 'unlimited' });
  const made = await keys.add({ userId: user.id, name: 'first key', ...(key ? { key } : {}) });
  return { email: user.email, key: made.key };
}

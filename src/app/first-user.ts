import { operatorHere as by } from './local-token.ts';
import { openApiKeys } from '#resources/api-keys/store';
import { audit } from '#resources/audit/store';
import { openUsers, shownUser, userWith, type User } from '#resources/users/store';
import type { Access, Store } from '#store/open';
import { Fault } from '#core/fault';

export interface FirstUser {
  readonly email: string;
  /** In plain text; only its digest is stored. */
  readonly key: string;
  /** It is the operator's own, of DRAGOMAN_ADMIN_API_KEY. */
  readonly isGiven: boolean;
}

const defaultEmail = 'admin@localhost';

/**
 * Adds an administrator with a key to a database without one, in one transaction. A user whom the command line gave the same address before becomes it.
 * @returns `undefined` where there is an administrator, or another machine adds one at this moment
 */
export async function firstUser(
  store: Store,
  pepper: Buffer,
  { email = defaultEmail, key }: { email?: string | undefined; key?: string | undefined },
): Promise<FirstUser | undefined> {
  if (await openUsers(store).hasAdministrator()) return undefined;
  try {
    return await store.transaction(async (inside) => {
      const user = await administrator(inside, email.toLowerCase());
      const name = 'first key';
      const made = await openApiKeys(inside, pepper).add({ userId: user.id, name, ...(key ? { key } : {}) });
      if (!made) return undefined;
      await audit(inside, { by, action: 'key.create', target: { kind: 'key', id: made.id }, after: { userId: user.id, name } });
      await inside.publish('api-keys', null);
      return { email: user.email, key: made.key, isGiven: key !== undefined };
    });
  } catch (error) {
    if (error instanceof Fault && error.code === 'conflict') return undefined;
    throw error;
  }
}

async function administrator(inside: Access, email: string): Promise<User> {
  const users = openUsers(inside);
  const id = await userWith(inside, email);
  const changed = id === null ? undefined : await users.change(id, { role: 'admin', status: 'active' });
  const user = changed?.after ?? (await users.add({ email, role: 'admin', plan: 'unlimited' }));
  const target = { kind: 'user', id: user.id };
  const after = shownUser(user);
  await audit(inside, changed ? { by, action: 'user.change', target, before: shownUser(changed.before), after } : { by, action: 'user.add', target, after });
  return user;
}

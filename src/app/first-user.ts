import { operatorHere as by } from './local-token.ts';
import { openApiKeys } from '#resources/api-keys/store';
import { audit } from '#resources/audit/store';
import { openUsers } from '#resources/users/store';
import type { Store } from '#store/open';
import { Fault } from '#core/fault';

export interface FirstUser {
  readonly email: string;
  /** In plain text; only its digest is stored. */
  readonly key: string;
  /** It is the operator's own, of DRAGOMAN_ADMIN_API_KEY. */
  readonly isGiven: boolean;
}

const defaultEmail = 'admin@localhost';

/** Adds an administrator with a key to a database without users, in one transaction. @returns `undefined` where there are users, or another machine adds one at this moment */
export async function firstUser(
  store: Store,
  pepper: Buffer,
  { email = defaultEmail, key }: { email?: string | undefined; key?: string | undefined },
): Promise<FirstUser | undefined> {
  if (!(await openUsers(store).none())) return undefined;
  try {
    return await store.transaction(async (inside) => {
      const user = await openUsers(inside).add({ email, role: 'admin', plan: 'unlimited' });
      const name = 'first key';
      const made = await openApiKeys(inside, pepper).add({ userId: user.id, name, ...(key ? { key } : {}) });
      if (!made) return undefined;
      const { limits: _, ...after } = user;
      await audit(inside, { by, action: 'user.add', target: { kind: 'user', id: user.id }, after });
      await audit(inside, { by, action: 'key.create', target: { kind: 'key', id: made.id }, after: { userId: user.id, name } });
      await inside.publish('api-keys', null);
      return { email: user.email, key: made.key, isGiven: key !== undefined };
    });
  } catch (error) {
    if (error instanceof Fault && error.code === 'conflict') return undefined;
    throw error;
  }
}

import { openApiKeys } from './resources/api-keys/store.ts';
import { openUsers } from './resources/users/store.ts';
import type { Store } from './store/open.ts';
import { Fault } from './model/fault.ts';

export interface FirstUser {
  readonly email: string;
  /** In clear, this once. */
  readonly key: string;
}

const defaultEmail = 'admin@localhost';

/** The administrator whom an empty house gets, with a key, both or neither; a house that has users, or gets one from another machine at this moment, gets nobody. */
export async function firstUser(
  store: Store,
  pepper: Buffer,
  { email = defaultEmail, key }: { email?: string | undefined; key?: string | undefined },
): Promise<FirstUser | undefined> {
  if (!(await openUsers(store).none())) return undefined;
  try {
    return await store.transaction(async (inside) => {
      const user = await openUsers(inside).add({ email, role: 'admin', plan: 'unlimited' });
      const made = await openApiKeys(inside, pepper).add({ userId: user.id, name: 'first key', ...(key ? { key } : {}) });
      await inside.publish('api-keys', null);
      return made && { email: user.email, key: made.key };
    });
  } catch (error) {
    if (error instanceof Fault && error.code === 'conflict') return undefined;
    throw error;
  }
}

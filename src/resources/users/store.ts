import type { Generated } from 'kysely';
import { Fault } from '#model/fault';
import type { Access } from '#store/open';

export interface User {
  readonly id: number;
  readonly email: string;
  readonly role: 'user' | 'admin';
  readonly plan: string;
  readonly status: 'active' | 'suspended';
}

type Tables = {
  users: {
    id: Generated<number>;
    email: string;
    role: User['role'];
    plan: string;
    status: Generated<User['status']>;
  };
};

const columns = ['id', 'email', 'role', 'plan', 'status'] as const;

export interface Users {
  /** @throws Fault `conflict` when the address is taken */
  add(user: { email: string; role: User['role']; plan: string }): Promise<User>;
  /** True while there is not one. */
  none(): Promise<boolean>;
}

export function openUsers(store: Access): Users {
  const db = store.db.$extendTables<Tables>();
  return {
    async add({ email, role, plan }) {
      const user = await db
        .insertInto('users')
        .values({ email: email.toLowerCase(), role, plan })
        .onConflict((conflict) => conflict.doNothing())
        .returning(columns)
        .executeTakeFirst();
      if (!user) throw new Fault('conflict', 'There is a user with this e-mail address already.', { field: 'email' });
      return { ...user, id: Number(user.id) };
    },
    async none() {
      return (await db.selectFrom('users').select('id').limit(1).executeTakeFirst()) === undefined;
    },
  };
}

import type { Generated } from 'kysely';
import { Fault } from '#model/fault';
import type { Caller } from '#model/generate';
import type { Access } from '#store/open';
import { digestOf, isKey, newKey, shownOf } from './key.ts';

type Tables = {
  api_keys: {
    id: Generated<number>;
    user_id: number;
    name: string;
    digest: Buffer;
    shown: string;
    scopes: readonly string[] | null;
    expires_at: Date | null;
    revoked_at: Date | null;
  };
  users: { id: number; email: string; role: 'user' | 'admin'; plan: string; status: string };
};

export interface ApiKeys {
  /**
   * Makes a key, or takes the given one (64 characters of [A-Za-z0-9_-]). It is shown here and never again.
   *
   * @throws Fault `conflict` when the given key is in use
   */
  add(key: { userId: number; name: string; scopes?: readonly string[]; key?: string }): Promise<{ id: number; key: string }>;
  /** Whose keys these are, in their order; undefined for each that is not good. @throws Fault `overloaded` while the database is away */
  find(keys: readonly string[]): Promise<readonly (Found | undefined)[]>;
}

export interface Found {
  readonly caller: Caller;
  /** Milliseconds since 1970. */
  readonly expiresAt: number | undefined;
}

/** @param pepper 32 bytes, the same on every machine */
export function openApiKeys(store: Access, pepper: Buffer): ApiKeys {
  const db = store.db.$extendTables<Tables>();
  return {
    async add({ userId, name, scopes, key = newKey() }) {
      const row = await db
        .insertInto('api_keys')
        .values({ user_id: userId, name, digest: digestOf(key, pepper), shown: shownOf(key), scopes: scopes ?? null, expires_at: null, revoked_at: null })
        .onConflict((conflict) => conflict.doNothing())
        .returning('id')
        .executeTakeFirst();
      if (!row) throw new Fault('conflict', 'This key is in use already.', { field: 'key' });
      return { id: Number(row.id), key };
    },
    async find(keys) {
      const digests = keys.map((key) => (isKey(key) ? digestOf(key, pepper) : undefined));
      const asked = digests.filter((digest) => digest !== undefined);
      if (asked.length === 0) return keys.map(() => undefined);
      const rows = await db
        .selectFrom('api_keys')
        .innerJoin('users', 'users.id', 'api_keys.user_id')
        .select(['digest', 'api_keys.id as keyId', 'api_keys.name as keyName', 'scopes', 'expires_at', 'users.id as userId', 'email', 'role', 'plan'])
        .where('digest', 'in', asked)
        .where('revoked_at', 'is', null)
        .where('status', '=', 'active')
        .execute();
      const found = new Map(rows.map((row) => [Buffer.from(row.digest).toString('base64'), row]));
      return digests.map((digest) => {
        const row = digest && found.get(digest.toString('base64'));
        if (!row) return undefined;
        const { keyName, email, role, plan, scopes } = row;
        const caller = { userId: Number(row.userId), email, role, plan, teamIds: [], keyId: Number(row.keyId), keyName, ...(scopes ? { scopes } : {}) };
        return { caller, expiresAt: row.expires_at?.getTime() };
      });
    },
  };
}

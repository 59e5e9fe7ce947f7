import { sql, type Generated } from 'kysely';
import { Fault } from '#core/fault';
import type { Caller } from '#core/context';
import { areLimits, type Plan } from '#core/plan';
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
    models: readonly string[] | null;
    created_at: Generated<Date>;
    expires_at: Date | null;
    revoked_at: Date | null;
  };
  users: { id: number; email: string; role: 'user' | 'admin'; plan: string; status: string; limits: Plan; removed_at: Date | null };
};

/** What is shown of a key. */
export interface ApiKey {
  readonly id: number;
  readonly name: string;
  /** Its first and last characters. */
  readonly shown: string;
  /** Absent members narrow nothing. */
  readonly scopes: readonly string[] | null;
  readonly models: readonly string[] | null;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
}

export interface NewKey {
  readonly userId: number;
  readonly name: string;
  readonly scopes?: readonly string[] | undefined;
  readonly models?: readonly string[] | undefined;
  readonly expiresAt?: Date | undefined;
  /** 64 characters of [A-Za-z0-9_-]; absent: a new one is made. */
  readonly key?: string | undefined;
}

const shownColumns = ['id', 'name', 'shown', 'scopes', 'models', 'created_at as createdAt', 'expires_at as expiresAt'] as const;

export interface ApiKeys {
  /**
   * Makes a key, or takes the given one. It is shown here and never again.
   *
   * @returns nothing where there is no such user
   * @throws Fault `conflict` when the given key is in use
   */
  add(key: NewKey): Promise<{ id: number; key: string } | undefined>;
  /** A user's keys that were not revoked, by id, those behind `after`. */
  list(asked: { userId: number; after: number; limit: number }): Promise<readonly ApiKey[]>;
  hasUser(id: number): Promise<boolean>;
  /** From now on the key is nobody's. To be called in a transaction. @returns nothing where the user has no such key */
  revoke(userId: number, id: number): Promise<ApiKey | undefined>;
  /** Whose keys these are, in their order; undefined for each that is not good. @throws Fault `overloaded` while the database is away */
  find(keys: readonly string[]): Promise<readonly (Found | undefined)[]>;
  /** Whose keys those with these ids are, of the good ones. @throws Fault `overloaded` */
  callers(keyIds: readonly number[]): Promise<ReadonlyMap<number, Found>>;
}

export interface Found {
  readonly caller: Caller;
  /** Milliseconds until it expires, by the database's clock: 0 or less for one that has. */
  readonly expiresIn: number | undefined;
}

/** @param pepper 32 bytes, the same on every machine */
export function openApiKeys(access: Access, pepper: Buffer): ApiKeys {
  const db = access.db.$extendTables<Tables>();
  const good = () =>
    db
      .selectFrom('api_keys')
      .innerJoin('users', 'users.id', 'api_keys.user_id')
      .select(['digest', 'api_keys.id as keyId', 'api_keys.name as keyName', 'scopes', 'models'])
      .select(sql<number | null>`(extract(epoch from expires_at - now()) * 1000)::double precision`.as('expiresIn'))
      .select(['users.id as userId', 'email', 'role', 'plan', 'limits'])
      .select(sql<number[]>`array(select team_id from team_members where user_id = users.id order by team_id)`.as('teamIds'))
      .where('revoked_at', 'is', null)
      .where('status', '=', 'active');
  return {
    async add({ userId, name, scopes, models, expiresAt, key }) {
      const made = key ?? newKey();
      // from users, and locked: whoever deletes the user at this moment deletes this key too
      const { rows } = await sql<{ id: number }>`
        insert into api_keys (user_id, name, digest, shown, scopes, models, expires_at)
        select id, ${name}, ${digestOf(made, pepper)}, ${shownOf(made)}, ${scopes ?? null}::text[], ${models ?? null}::text[], ${expiresAt ?? null}::timestamptz
        from users where id = ${userId} and removed_at is null for key share
        on conflict do nothing returning id`.execute(db);
      if (rows[0]) return { id: rows[0].id, key: made };
      if (key !== undefined) throw new Fault('conflict', 'This key is in use already.', { field: 'key' });
      return undefined;
    },
    list: ({ userId, after, limit }) =>
      db
        .selectFrom('api_keys')
        .select(shownColumns)
        .where('user_id', '=', userId)
        .where('revoked_at', 'is', null)
        .where('id', '>', after)
        .orderBy('id')
        .limit(limit)
        .execute(),
    hasUser: async (id) => (await db.selectFrom('users').select('id').where('id', '=', id).where('removed_at', 'is', null).executeTakeFirst()) !== undefined,
    async revoke(userId, id) {
      const key = await db
        .updateTable('api_keys')
        .set({ revoked_at: sql`now()` })
        .where('id', '=', id)
        .where('user_id', '=', userId)
        .where('revoked_at', 'is', null)
        .returning(shownColumns)
        .executeTakeFirst();
      if (key) await access.publish('api-keys', { userId });
      return key;
    },
    async find(keys) {
      const digests = keys.map((key) => (isKey(key) ? digestOf(key, pepper) : undefined));
      const asked = digests.filter((digest) => digest !== undefined);
      if (asked.length === 0) return keys.map(() => undefined);
      const rows = await good().where('digest', 'in', asked).execute();
      const found = new Map(rows.map((row) => [Buffer.from(row.digest).toString('base64'), row]));
      return digests.map((digest) => {
        const row = digest && found.get(digest.toString('base64'));
        return row && foundOf(row);
      });
    },
    async callers(keyIds) {
      const rows = await good()
        .where(sql<boolean>`api_keys.id = any(${keyIds}::bigint[])`)
        .execute();
      return new Map(rows.map((row) => [row.keyId, foundOf(row)]));
    },
  };
}

interface Row extends Omit<Caller, 'limits' | 'scopes' | 'models' | 'expires'> {
  readonly limits: Plan;
  readonly scopes: readonly string[] | null;
  readonly models: readonly string[] | null;
  readonly expiresIn: number | null;
}

function foundOf({ userId, email, role, plan, limits, teamIds, keyId, keyName, scopes, models, expiresIn }: Row): Found {
  const own = areLimits(limits) && Object.keys(limits).length === 0 ? {} : { limits };
  const narrowed = { ...(scopes ? { scopes } : {}), ...(models ? { models } : {}), ...(expiresIn === null ? {} : { expires: true as const }) };
  const caller = { userId, email, role, plan, ...own, teamIds, keyId, keyName, ...narrowed };
  return { caller, expiresIn: expiresIn ?? undefined };
}

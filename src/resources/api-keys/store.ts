import { sql } from 'kysely';
import { Fault } from '#core/fault';
import type { Access } from '#store/open';
import { foundKey, keyColumns, type Found, type KeyRow } from '../callers.ts';
import { shownColumns, type ApiKey, type KeyRights } from '../api-key.ts';
import { digestOf, isKey, newKey, shownOf } from './key.ts';

export type { Found } from '../callers.ts';

export interface NewKey extends Partial<KeyRights> {
  readonly userId: number;
  readonly name: string;
  /** 64 characters of [A-Za-z0-9_-]; absent: a new one is made. */
  readonly key?: string | undefined;
}

/** A limit that is null is none. */
export interface KeyChange extends Partial<Omit<KeyRights, 'limits'>> {
  readonly name?: string;
  readonly limits?: object;
}

/** A key with its text, which is known at this moment only. */
export interface ClearKey {
  readonly id: number;
  readonly key: string;
}

/** Most keys of a user that were not revoked. */
export const mostKeys = 100;

export interface ApiKeys {
  /**
   * Makes a key, or takes the given one. It is shown here and never again. To be called in a transaction.
   * @returns nothing where there is no such user
   * @throws Fault `conflict` when the given key is in use, or the user has as many as there may be
   */
  add(key: NewKey): Promise<ClearKey | undefined>;
  /** A user's keys that were not revoked, by id, those behind `after`. */
  list(asked: { userId: number; after: number; limit: number }): Promise<readonly ApiKey[]>;
  one(userId: number, id: number): Promise<ApiKey | undefined>;
  hasUser(id: number): Promise<boolean>;
  /** To be called in a transaction. @returns the key as it was and is; nothing where the user has no such key */
  change(userId: number, id: number, change: KeyChange): Promise<{ readonly before: ApiKey; readonly after: ApiKey } | undefined>;
  /**
   * Gives a key another text. Those before it are good for `graceSeconds` more, or as long as they were. To be called in a transaction.
   * @returns nothing where the user has no such key
   */
  rotate(
    userId: number,
    id: number,
    graceSeconds: number,
  ): Promise<(ClearKey & { readonly before: ApiKey; readonly after: ApiKey; readonly oldUntil: Date }) | undefined>;
  /** From now on the key is nobody's. To be called in a transaction. @returns nothing where the user has no such key */
  revoke(userId: number, id: number): Promise<ApiKey | undefined>;
  /** Whose keys these are, in their order; undefined for each that is not good. @throws Fault `overloaded` while the database is away */
  find(keys: readonly string[]): Promise<readonly (Found | undefined)[]>;
  /** Whose keys those with these ids are, of the good ones. @throws Fault `overloaded` */
  callers(keyIds: readonly number[]): Promise<ReadonlyMap<number, Found>>;
}

/** @param pepper 32 bytes, the same on every machine */
export function openApiKeys(access: Access, pepper: Buffer): ApiKeys {
  const { db } = access;
  const changed = (userId: number) => access.publish('api-keys', { userId });
  const one = async (userId: number, id: number, lock = sql``): Promise<ApiKey | undefined> => {
    const { rows } = await sql<ApiKey>`
      select ${shownColumns} from api_keys where id = ${id} and user_id = ${userId} and revoked_at is null ${lock}`.execute(db);
    return rows[0];
  };
  return {
    async add({ userId, name, scopes, models, mcpTools, expiresAt, limits, key }) {
      // Locked: whoever deletes the user at this moment deletes this key too, and of two who make the last key one comes second.
      const { rows: users } = await sql`select from users where id = ${userId} and removed_at is null for no key update`.execute(db);
      if (users.length === 0) return undefined;
      const { rows: count } = await sql<{ keys: number }>`
        select count(*)::int as keys from api_keys where user_id = ${userId} and revoked_at is null`.execute(db);
      if (count[0]!.keys >= mostKeys) throw new Fault('conflict', `A user has at most ${mostKeys} keys: revoke one that is not needed any more.`);
      const made = key ?? newKey();
      const { rows } = await sql<{ id: number }>`
        insert into api_keys (user_id, name, digest, shown, scopes, models, mcp_tools, limits, expires_at)
        values (${userId}, ${name}, ${digestOf(made, pepper)}, ${shownOf(made)}, ${scopes ?? null}::text[], ${models ?? null}::text[],
          ${mcpTools ?? null}::text[], ${JSON.stringify(limits ?? {})}::jsonb, ${expiresAt ?? null}::timestamptz)
        on conflict do nothing returning id`.execute(db);
      if (!rows[0]) throw new Fault('conflict', 'This key is in use already.', { field: 'key' });
      return { id: rows[0].id, key: made };
    },
    async list({ userId, after, limit }) {
      const { rows } = await sql<ApiKey>`
        select ${shownColumns} from api_keys where user_id = ${userId} and revoked_at is null and id > ${after} order by id limit ${limit}`.execute(db);
      return rows;
    },
    one: (userId, id) => one(userId, id),
    async hasUser(id) {
      const { rows } = await sql`select from users where id = ${id} and removed_at is null`.execute(db);
      return rows.length > 0;
    },
    async change(userId, id, change) {
      const before = await one(userId, id, sql`for update`);
      if (!before) return undefined;
      const { name, scopes, models, mcpTools, expiresAt } = { ...before, ...change };
      await sql`
        update api_keys set name = ${name}, scopes = ${scopes}::text[], models = ${models}::text[], mcp_tools = ${mcpTools}::text[],
          limits = jsonb_strip_nulls(limits || ${JSON.stringify(change.limits ?? {})}::jsonb), expires_at = ${expiresAt}::timestamptz
        where id = ${id}`.execute(db);
      const after = await one(userId, id);
      await changed(userId);
      return { before, after: after! };
    },
    async rotate(userId, id, graceSeconds) {
      const before = await one(userId, id, sql`for update`);
      if (!before) return undefined;
      const key = newKey();
      const oldUntil = await withText(access, { id, digest: digestOf(key, pepper), shown: shownOf(key) }, graceSeconds);
      const after = await one(userId, id);
      await changed(userId);
      return { id, key, before, after: after!, oldUntil };
    },
    async revoke(userId, id) {
      const { rows } = await sql<ApiKey>`
        update api_keys set revoked_at = now() where id = ${id} and user_id = ${userId} and revoked_at is null returning ${shownColumns}`.execute(db);
      if (rows[0]) await changed(userId);
      return rows[0];
    },
    find: (keys) => findAll(access, keys, pepper),
    async callers(keyIds) {
      const { rows } = await sql<KeyRow>`
        select ${keyColumns()} from api_keys join users on users.id = user_id
        where api_keys.id = any(${keyIds}::bigint[]) and revoked_at is null and status = 'active'`.execute(db);
      return new Map(rows.map((row) => [row.keyId, foundKey(row)]));
    },
  };
}

/** Gives a key another text. @returns until when the one before is good */
async function withText({ db }: Access, { id, digest, shown }: { id: number; digest: Buffer; shown: string }, graceSeconds: number): Promise<Date> {
  const until = sql`now() + make_interval(secs => ${graceSeconds}::double precision)`;
  await sql`update api_key_former set until = least(until, ${until}) where key_id = ${id}`.execute(db);
  const { rows } = await sql<{ until: Date }>`
    insert into api_key_former (digest, key_id, version, until) select digest, id, version, ${until} from api_keys where id = ${id}
    returning until`.execute(db);
  await sql`delete from api_key_former where key_id = ${id} and until <= now() - interval '1 day'`.execute(db);
  await sql`update api_keys set digest = ${digest}, shown = ${shown}, version = version + 1 where id = ${id}`.execute(db);
  return rows[0]!.until;
}

async function findAll({ db }: Access, keys: readonly string[], pepper: Buffer): Promise<readonly (Found | undefined)[]> {
  const digests = keys.map((key) => (isKey(key) ? digestOf(key, pepper) : undefined));
  const asked = digests.filter((digest) => digest !== undefined);
  if (asked.length === 0) return keys.map(() => undefined);
  const { rows } = await sql<KeyRow & { digest: Buffer }>`
      select given.digest, ${keyColumns(sql`given.until`)}
      from (select digest, id, null::timestamptz as until from api_keys where digest = any(${asked}::bytea[])
        union all select digest, key_id, until from api_key_former where digest = any(${asked}::bytea[])) as given
      join api_keys on api_keys.id = given.id join users on users.id = user_id
      where revoked_at is null and status = 'active'`.execute(db);
  const found = new Map(rows.map((row) => [Buffer.from(row.digest).toString('base64'), row]));
  return digests.map((digest) => {
    const row = digest && found.get(digest.toString('base64'));
    return row && foundKey(row);
  });
}

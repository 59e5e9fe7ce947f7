import { createHmac } from 'node:crypto';
import { sql } from 'kysely';
import type { AccessToken, Caller } from '#core/context';
import type { Access } from '#store/open';
import { foundKey, foundUser, keyColumns, userColumns, type Found, type KeyRow, type UserRow } from '../callers.ts';

/** Whose token it is. The id says with which text of the key, or which password, it was had. */
export interface Holder extends Pick<Caller, 'userId' | 'keyId'> {
  readonly tokenId: string;
}

/** Who an e-mail address and a secret belong to. */
export interface Owner {
  readonly userId: number;
  readonly keyId: number;
  readonly version: number;
}

/** What is known of a pair of address and secret. Both are looked for whatever is found of the other, so that all wrong pairs take as long. */
export interface Pair {
  /** The user with the address, also one who is suspended. */
  readonly userId: number | null;
  readonly isActive: boolean;
}

export interface TokenStore {
  /** Whose these tokens are, by token id, of the good ones. @throws Fault `overloaded` */
  callers(holders: readonly Holder[]): Promise<ReadonlyMap<string, Found>>;
  /** Of one whose key or password is asked about without a token: the user alone. */
  user(userId: number): Promise<Found | undefined>;
  byKey(email: string, digest: Buffer): Promise<Pair & { readonly owner: Owner | undefined }>;
  byPassword(email: string): Promise<Pair & { readonly sealed: string | null; readonly version: number }>;
  /** The token is no longer good, on any machine. */
  end(token: AccessToken, userId: number): Promise<void>;
}

export const tokenId = (version: number, chance: string) => `${version}.${chance}`;

/** The number before the dot: of the key's text, or of the password. */
const versionIn = (id: string) => (/^\d{1,9}\./.test(id) ? Number.parseInt(id, 10) : -1);

export const digestOf = (secret: string, pepper: Buffer) => createHmac('sha256', pepper).update(secret).digest();

export function openTokenStore({ db, publish }: Access): TokenStore {
  const notEnded = sql`not exists (select from ended_token where ended_token.id = asked.token)`;
  const askedFor = (holders: readonly Holder[]) => sql`
    unnest(${holders.map(({ tokenId: id }) => id)}::text[], ${holders.map(({ userId }) => userId)}::bigint[],
      ${holders.map(({ keyId }) => keyId)}::bigint[], ${holders.map(({ tokenId: id }) => versionIn(id))}::int[]) as asked(token, owner, key, number)`;
  return {
    async callers(holders) {
      const [byKey, byPassword] = [holders.filter(({ keyId }) => keyId !== 0), holders.filter(({ keyId }) => keyId === 0)];
      const found = new Map<string, Found>();
      if (byKey.length > 0) {
        const { rows } = await sql<KeyRow & { token: string }>`
          select asked.token, ${keyColumns(sql`former.until`)}
          from ${askedFor(byKey)}
          join api_keys on api_keys.id = asked.key and api_keys.user_id = asked.owner
          join users on users.id = asked.owner
          left join api_key_former former on former.key_id = asked.key and former.version = asked.number
          where revoked_at is null and status = 'active' and (asked.number = api_keys.version or former.until > now()) and ${notEnded}`.execute(db);
        for (const row of rows) found.set(row.token, foundKey(row));
      }
      if (byPassword.length > 0) {
        const { rows } = await sql<UserRow & { token: string }>`
          select asked.token, ${userColumns} from ${askedFor(byPassword)} join users on users.id = asked.owner
          where status = 'active' and (asked.number = password_version or asked.token = password_kept) and ${notEnded}`.execute(db);
        for (const row of rows) found.set(row.token, foundUser(row));
      }
      return found;
    },
    async user(userId) {
      const { rows } = await sql<UserRow>`select ${userColumns} from users where id = ${userId} and status = 'active'`.execute(db);
      return rows[0] && foundUser(rows[0]);
    },
    async byKey(email, digest) {
      const { rows } = await sql<{ userId: number | null; status: string | null; owner: number | null; keyId: number; version: number; isGood: boolean }>`
        select users.id as "userId", users.status, key.*
        from (values (1)) as one
        left join users on lower(users.email) = ${email} and users.removed_at is null
        left join lateral (
          select api_keys.user_id as owner, api_keys.id as "keyId", given.version,
            revoked_at is null and coalesce(expires_at > now(), true) and coalesce(given.until > now(), true) as "isGood"
          from (select id, version, null::timestamptz as until from api_keys where digest = ${digest}
            union all select key_id, version, until from api_key_former where digest = ${digest}) as given
          join api_keys on api_keys.id = given.id) as key on true`.execute(db);
      const { userId, status, owner, keyId, version, isGood } = rows[0]!;
      const isActive = status === 'active';
      return { userId, isActive, owner: isActive && userId !== null && owner === userId && isGood ? { userId, keyId, version } : undefined };
    },
    async byPassword(email) {
      const { rows } = await sql<{ userId: number | null; status: string | null; sealed: string | null; version: number }>`
        select users.id as "userId", users.status, users.password as sealed, coalesce(users.password_version, 0) as version
        from (values (1)) as one left join users on lower(users.email) = ${email} and users.removed_at is null`.execute(db);
      const { userId, status, sealed, version } = rows[0]!;
      return { userId, isActive: status === 'active', sealed, version };
    },
    async end({ id, expiresAt }, userId) {
      await sql`insert into ended_token (id, until) values (${id}, ${new Date(expiresAt)}) on conflict do nothing`.execute(db);
      await sql`delete from ended_token where until < now() - interval '1 minute'`.execute(db);
      await publish('api-keys', { userId });
    },
  };
}

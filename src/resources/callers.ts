import { sql } from 'kysely';
import type { Caller } from '#core/context';
import { isEmpty } from '#core/json';
import { areLimits, type Plan } from '#core/plan';

export interface Found {
  readonly caller: Caller;
  /** Milliseconds until it expires, by the database's clock: 0 or less for one that has. */
  readonly expiresIn: number | undefined;
}

/** A user as the columns below give it. */
export interface UserRow extends Pick<Caller, 'userId' | 'email' | 'role' | 'plan' | 'teamIds'> {
  readonly limits: Plan;
}

export interface KeyRow extends UserRow, Pick<Caller, 'keyId' | 'keyName'> {
  readonly keyLimits: Plan;
  readonly scopes: readonly string[] | null;
  readonly models: readonly string[] | null;
  readonly mcpTools: readonly string[] | null;
  /** Milliseconds since 1970. */
  readonly expiresAt: number | null;
  readonly expiresIn: number | null;
}

export const userColumns = sql`users.id as "userId", email, role, plan, users.limits,
  array(select team_id from team_members where user_id = users.id order by team_id) as "teamIds"`;

/** @param until when the credential itself ends, besides its key; null: never */
export const keyColumns = (until = sql<Date | null>`null::timestamptz`) => sql`${userColumns},
  api_keys.id as "keyId", api_keys.name as "keyName", scopes, models, mcp_tools as "mcpTools", api_keys.limits as "keyLimits",
  (extract(epoch from least(expires_at, ${until})) * 1000)::double precision as "expiresAt",
  (extract(epoch from least(expires_at, ${until}) - now()) * 1000)::double precision as "expiresIn"`;

export function foundUser({ userId, email, role, plan, limits, teamIds }: UserRow): Found {
  return { caller: { userId, email, role, plan, ...(areNone(limits) ? {} : { limits }), teamIds, keyId: 0, keyName: '' }, expiresIn: undefined };
}

export function foundKey({ keyId, keyName, keyLimits, scopes, models, mcpTools, expiresAt, expiresIn, ...user }: KeyRow): Found {
  const { caller } = foundUser(user);
  const narrowed = {
    ...(scopes ? { scopes } : {}),
    ...(models ? { models } : {}),
    ...(mcpTools ? { mcpTools } : {}),
    ...(expiresAt === null ? {} : { expiresAt }),
  };
  return { caller: { ...caller, keyId, keyName, ...(areNone(keyLimits) ? {} : { keyLimits }), ...narrowed }, expiresIn: expiresIn ?? undefined };
}

/** Limits that are none at all: a damaged value is not taken for that. */
export const areNone = (limits: Plan) => areLimits(limits) && isEmpty(limits);

import { sql } from 'kysely';
import type { Plan } from '#core/plan';

/** What a key may do; absent members narrow nothing. */
export interface KeyRights {
  readonly scopes: readonly string[] | null;
  readonly models: readonly string[] | null;
  readonly mcpTools: readonly string[] | null;
  readonly expiresAt: Date | null;
  readonly limits: Plan;
}

/** What is shown of a key. */
export interface ApiKey extends KeyRights {
  readonly id: number;
  readonly userId: number;
  readonly name: string;
  /** Its first and last characters. */
  readonly shown: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
}

/** An `ApiKey` of the table `api_keys`. */
export const shownColumns = sql`id, user_id as "userId", name, shown, scopes, models, mcp_tools as "mcpTools", limits, created_at as "createdAt",
  expires_at as "expiresAt", last_used_at as "lastUsedAt"`;

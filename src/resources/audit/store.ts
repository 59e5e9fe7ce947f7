import { isDeepStrictEqual } from 'node:util';
import { sql } from 'kysely';
import type { Audit } from '#store/auditing';
import type { Access } from '#store/open';

/** A change as it is read again. */
export interface AuditRow {
  readonly id: number;
  readonly at: Date;
  /** Null: whoever works on the machine itself. */
  readonly userId: number | null;
  readonly keyId: number | null;
  readonly action: string;
  readonly targetKind: string;
  readonly targetId: string | null;
  readonly changed: Changed;
  readonly requestId: string | null;
  readonly address: string | null;
}

/** By member. Of a list the removed items are in `from` and the added ones in `to`. */
export type Changed = Readonly<Record<string, { readonly from?: unknown; readonly to?: unknown }>>;

export interface AuditAsked {
  /** Only those before this id; 0: from the newest on. */
  readonly before: number;
  readonly limit: number;
  readonly userId?: number | undefined;
  readonly action?: string | undefined;
  readonly targetKind?: string | undefined;
  readonly targetId?: string | undefined;
}

/** What was there before and after and is the same is no change. */
export const audit: Audit = async ({ db }, { by, action, target, before, after }) => {
  const changed = changedIn(before ?? {}, after ?? {});
  if (before && after && Object.keys(changed).length === 0) return;
  await sql`
    insert into audit (user_id, key_id, action, target_kind, target_id, changed, request_id, address)
    values (${by.userId || null}, ${by.keyId || null}, ${action}, ${target.kind}, ${target.id === null ? null : String(target.id)},
      ${JSON.stringify(changed)}::jsonb, ${by.requestId}, ${by.address})`.execute(db);
};

/** Newest first. */
export async function auditTrail({ db }: Access, { before, limit, userId, action, targetKind, targetId }: AuditAsked): Promise<readonly AuditRow[]> {
  const conditions = [sql`true`];
  if (before > 0) conditions.push(sql`id < ${before}`);
  if (userId !== undefined) conditions.push(userId === 0 ? sql`user_id is null` : sql`user_id = ${userId}`);
  if (action !== undefined) conditions.push(sql`action = ${action}`);
  if (targetKind !== undefined) conditions.push(sql`target_kind = ${targetKind}`);
  if (targetId !== undefined) conditions.push(sql`target_id = ${targetId}`);
  const { rows } = await sql<AuditRow>`
    select id, at, user_id as "userId", key_id as "keyId", action, target_kind as "targetKind", target_id as "targetId", changed,
      request_id as "requestId", address
    from audit where ${sql.join(conditions, sql` and `)} order by id desc limit ${limit}`.execute(db);
  return rows;
}

/** The members that differ; the id is the target's. */
function changedIn(before: object, after: object): Changed {
  const [was, is] = [new Map<string, unknown>(Object.entries(before)), new Map<string, unknown>(Object.entries(after))];
  const changed: Record<string, { from?: unknown; to?: unknown }> = {};
  for (const name of new Set([...was.keys(), ...is.keys()])) {
    const [from, to] = [was.get(name), is.get(name)];
    if (name === 'id' || isDeepStrictEqual(from, to)) continue;
    changed[name] = Array.isArray(from) && Array.isArray(to) ? { from: without(from, to), to: without(to, from) } : { from, to };
  }
  return changed;
}

function without(list: readonly unknown[], others: readonly unknown[]): readonly unknown[] {
  const gone = new Set(others);
  return list.filter((one) => !gone.has(one));
}

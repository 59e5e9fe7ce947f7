import { sql } from 'kysely';
import type { TakenCalls, WaitingCalls } from '#core/conversation';
import { openedJson, type Sealer } from '#kit/crypto/sealing';
import type { Store } from '#store/open';

/** Calls that wait for the approval of their user. */
export interface WaitingStore {
  /** @param conversation tells one conversation from another. @returns false where they are too large to be kept */
  keep(userId: number, conversation: string, waiting: WaitingCalls): Promise<boolean>;
  /**
   * Takes what was kept with all of these calls, in the last hour. It may be taken again until it is over, and with these calls alone. Undefined: there is no
   * such thing.
   */
  take(userId: number, conversation: string, ids: readonly string[]): Promise<TakenCalls | undefined>;
  /** An answer came of what was taken: nobody takes it again, nor what waited before in the same conversation for calls with these ids. */
  over(userId: number, id: number): Promise<void>;
  /** Deletes what has waited longer than its hour, some at a time. @returns false where there may be more */
  forgetOld(): Promise<boolean>;
}

const hours = 1;
const mostBytes = 8_388_608;
/** Of a user; older ones are forgotten. */
const mostKept = 50;

const contextOf = (userId: number) => `mcp-waiting/${userId}`;

export interface WaitingDeps {
  readonly store: Store;
  readonly seal: Sealer;
}

const forgottenAtOnce = 10_000;

export function openWaiting({ store, seal }: WaitingDeps): WaitingStore {
  return {
    async keep(userId, conversation, waiting) {
      const text = Buffer.from(JSON.stringify(waiting));
      if (text.length > mostBytes) return false;
      await sql`
        insert into mcp_waiting (user_id, conversation, calls, sealed)
        values (${userId}, ${conversation}, ${waiting.calls.map(({ id }) => id)}::text[], ${seal.seal(text, contextOf(userId))})`.execute(store.db);
      await sql`
        delete from mcp_waiting where user_id = ${userId}
          and id <= (select id from mcp_waiting where user_id = ${userId} order by id desc offset ${mostKept} limit 1)`.execute(store.db);
      return true;
    },
    async take(userId, conversation, ids) {
      if (ids.some((id) => id.includes('\0'))) return undefined; // the database refuses these, and finds nothing less
      const approved = [...ids].toSorted();
      const { rows } = await sql<{ id: number; sealed: Buffer }>`
        update mcp_waiting set approved = ${approved}::text[] where id = (
          select id from mcp_waiting where user_id = ${userId} and conversation = ${conversation} and calls @> ${approved}::text[]
            and (approved is null or approved = ${approved}::text[]) and created_at >= now() - make_interval(hours => ${hours})
          order by id desc limit 1 for update) returning id::float8 as id, sealed`.execute(store.db);
      const [row] = rows;
      return row && { ...(openedJson(seal, row.sealed, contextOf(userId)) as WaitingCalls), id: row.id };
    },
    async over(userId, id) {
      await sql`
        delete from mcp_waiting as one using mcp_waiting as taken
        where taken.user_id = ${userId} and taken.id = ${id} and one.user_id = taken.user_id and one.conversation = taken.conversation
          and (one.id = taken.id or (one.id < taken.id and one.calls && taken.approved))`.execute(store.db);
    },
    async forgetOld() {
      const gone = await sql`
        delete from mcp_waiting where id in (
          select id from mcp_waiting where created_at < now() - make_interval(hours => ${hours}) limit ${forgottenAtOnce})`.execute(store.db);
      return (gone.numAffectedRows ?? 0n) < forgottenAtOnce;
    },
  };
}

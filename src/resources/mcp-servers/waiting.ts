import { sql } from 'kysely';
import type { WaitingCalls } from '#core/conversation';
import type { Clock } from '#kit/async/clock';
import type { Sealer } from '#kit/crypto/sealing';
import type { Store } from '#store/open';

/** Calls that wait for the approval of their user. */
export interface WaitingStore {
  /** @param conversation tells one conversation from another. @returns false where they are too large to be kept */
  keep(userId: number, conversation: string, waiting: WaitingCalls): Promise<boolean>;
  /** Takes what was kept with all of these calls, in the last hour: once. Undefined: there is no such thing. */
  take(userId: number, conversation: string, ids: readonly string[]): Promise<WaitingCalls | undefined>;
  close(): void;
}

const hours = 1;
const mostBytes = 8_388_608;
/** Of a user; older ones are forgotten. */
const mostKept = 50;

const contextOf = (userId: number) => `mcp-waiting/${userId}`;

export interface WaitingDeps {
  readonly store: Store;
  readonly seal: Sealer;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
}

const sweepMilliseconds = 600_000;

/** What waits longer than its hour is deleted within ten minutes. */
export function openWaiting({ store, seal, clock, log }: WaitingDeps): WaitingStore {
  let cancel = clock.after(sweepMilliseconds, sweep);
  function sweep(): void {
    cancel = clock.after(sweepMilliseconds, sweep);
    sql`delete from mcp_waiting where id in (select id from mcp_waiting where created_at < now() - make_interval(hours => ${hours}) limit 10000)`
      .execute(store.db)
      .catch((error: unknown) => log('Calls that waited too long for their approval could not be deleted.', error));
  }
  return {
    close: () => cancel(),
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
      const { rows } = await sql<{ sealed: Buffer }>`
        delete from mcp_waiting where id = (
          select id from mcp_waiting where user_id = ${userId} and conversation = ${conversation} and calls @> ${[...ids]}::text[]
            and created_at >= now() - make_interval(hours => ${hours})
          order by id desc limit 1 for update) returning sealed`.execute(store.db);
      const [row] = rows;
      return row && (JSON.parse(seal.open(row.sealed, contextOf(userId)).toString()) as WaitingCalls);
    },
  };
}

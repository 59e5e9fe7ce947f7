import { sql } from 'kysely';
import type { Store } from '#store/open';
import { firstOf, inPieces, rowsChanged } from '#store/pieces';

/** Where the last look ended: an entry, as text, for a Date knows no microseconds. */
interface Cursor {
  readonly expires: string;
  readonly userId: number;
  readonly id: string;
}

interface Batch {
  readonly gone: number;
  readonly seen: number;
  readonly last: Cursor | null;
}

const seenAtOnce = 1000;
const goneAtOnce = 1000;
const mostPieces = 500;

/**
 * Deletes what is older than the retention and not needed by something younger, in pieces. It looks through the old entries from the youngest on, some at a
 * time, and goes on from there in the next round: what is old but needed for long would be looked at each time else, and be all that is looked at.
 * @returns a round; it answers false where there may be more
 */
export function openPurge(store: Store): () => Promise<boolean> {
  let from: Cursor | undefined;

  const conversations = sql`
    delete from conversation where ctid = any(array(
      select ctid from conversation where expires_at <= now() limit ${goneAtOnce} for update skip locked))`;

  /** @returns 0 at the end of the old entries */
  async function entries(): Promise<number> {
    const behind = from ? sql`and (expires_at, user_id, id) < (${from.expires}::timestamptz, ${from.userId}, ${from.id})` : sql``;
    const unneeded = sql`
      select old.ctid as place, old.bytes from stored_response old join seen using (user_id, id)
      where not exists (select from stored_response younger where younger.user_id = old.user_id and younger.previous_id = old.id)
        and not exists (select from conversation where conversation.user_id = old.user_id and conversation.head = old.id)
      for update of old skip locked`;
    const { rows } = await sql<Batch>`
      with seen as materialized (
        select user_id, id, expires_at from stored_response where expires_at <= now() ${behind}
        order by expires_at desc, user_id desc, id desc limit ${seenAtOnce}
      ), gone as (
        delete from stored_response where ctid = any(array(${firstOf(unneeded)})) returning 1
      )
      select (select count(*) from gone)::int as gone, (select count(*) from seen)::int as seen, (
        select json_build_object('expires', expires_at::text, 'userId', user_id, 'id', id) from seen order by expires_at, user_id, id limit 1
      ) as last`.execute(store.db);
    const { gone, seen, last } = rows[0]!;
    if (gone > 0) return gone; // what stands before them may be unneeded too
    from = seen < seenAtOnce ? undefined : (last ?? undefined);
    return from ? 1 : 0;
  }

  return async () => {
    const hasConversations = !(await inPieces(() => rowsChanged(conversations, store.db), { size: goneAtOnce, most: mostPieces }));
    const hasEntries = !(await inPieces(entries, { size: 1, most: mostPieces }));
    return !hasConversations && !hasEntries;
  };
}

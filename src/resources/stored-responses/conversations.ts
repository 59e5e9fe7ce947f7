import { sql } from 'kysely';
import { randomText } from '#kit/crypto/ids';
import { Fault } from '#core/fault';
import type { Conversation, Conversations } from '#core/stored-responses';
import { secondsAhead } from '#store/database-clock';
import { isStorable } from './storable-id.ts';
import type { ResponseStore, StoredDeps } from './store.ts';
import { sealedJson, openedJson } from '#kit/crypto/sealing';

interface Row {
  readonly id: string;
  readonly head: string | null;
  readonly metadata: Buffer;
  readonly created_at: Date;
}

const daySeconds = 86_400;

export function openConversations<Body>({ store, seal, retentionDays }: StoredDeps, responses: ResponseStore<Body>): Conversations<Body> {
  const expiry = () => secondsAhead(retentionDays() * daySeconds);
  const sealed = (userId: number, id: string, metadata: object) => sealedJson(seal, metadata, contextOf(userId, id));

  return {
    async make(userId, metadata) {
      const id = `conv_${randomText(22)}`;
      const { rows } = await sql<Pick<Row, 'created_at'>>`
        insert into conversation (user_id, id, metadata, created_at, expires_at)
        values (${userId}, ${id}, ${sealed(userId, id, metadata)}, now(), ${expiry()}) returning created_at`.execute(store.db);
      return { id, head: null, metadata, createdAt: rows[0]!.created_at };
    },

    async find(userId, id) {
      if (!isStorable(id)) return undefined;
      const { rows } = await sql<Row>`select id, head, metadata, created_at from conversation where user_id = ${userId} and id = ${id}`.execute(store.db);
      const [row] = rows;
      if (!row) return undefined;
      const metadata = openedJson(seal, row.metadata, contextOf(userId, id)) as Conversation['metadata'];
      return { id, head: row.head, metadata, createdAt: row.created_at };
    },

    async describe(userId, id, metadata) {
      const changed = await sql`update conversation set metadata = ${sealed(userId, id, metadata)} where user_id = ${userId} and id = ${id}`.execute(store.db);
      return changed.numAffectedRows === 1n;
    },

    async remove(userId, id) {
      const gone = await sql`delete from conversation where user_id = ${userId} and id = ${id}`.execute(store.db);
      return gone.numAffectedRows === 1n;
    },

    async count(userId) {
      const { rows } = await sql<{ count: number }>`select count(*)::int8 as count from conversation where user_id = ${userId}`.execute(store.db);
      return rows[0]!.count;
    },

    removeEntry: (conversationId, userId, id, left) =>
      store.transaction(async (inside) => {
        await sql`select 1 from conversation where user_id = ${userId} and id = ${conversationId} for update`.execute(inside.db);
        const { rows } = await sql`
          with recursive chain as (
            select head as id from conversation where user_id = ${userId} and id = ${conversationId}
            union
            select previous_id from stored_response join chain using (id) where user_id = ${userId}
          )
          select 1 from chain where id = ${id}`.execute(inside.db);
        return rows.length > 0 ? responses.change(userId, id, left, inside) : responses.remove(userId, id, inside);
      }),

    add(conversationId, { previousId: _, ...entry }, { statuses, field } = {}) {
      const { userId } = entry;
      return store.transaction(async (inside) => {
        // Locked: whoever adds meanwhile, on whichever machine, waits and goes on from this entry.
        const { rows: found } = await sql<Pick<Row, 'head'>>`
          select head from conversation where user_id = ${userId} and id = ${conversationId} for update`.execute(inside.db);
        if (!found[0]) throw new Fault('conflict', 'The conversation was deleted in the meantime.', { field: 'conversation' });
        const { head } = found[0];
        if (head !== null) {
          // Locked: who deletes the head waits for us, or is waited for.
          const { rows } = await sql`select 1 from stored_response where user_id = ${userId} and id = ${head} for key share`.execute(inside.db);
          if (rows.length === 0) throw new Fault('not-found', 'What the conversation goes on from was deleted.', { field: 'conversation' });
        }
        await sql`
          update conversation set head = ${entry.id}, expires_at = ${expiry()} where user_id = ${userId} and id = ${conversationId}`.execute(inside.db);
        const added = { ...entry, ...(head === null ? {} : { previousId: head }) };
        if (field !== undefined) await responses.requireRoom(added, field, inside);
        if (!statuses) await responses.keep(added, inside);
        else if (!(await responses.renew(added, statuses, inside)))
          throw new Fault('conflict', 'The response was ended or deleted meanwhile.', { field: 'conversation' });
      });
    },
  };
}

const contextOf = (userId: number, id: string) => `conversation/${userId}/${id}`;

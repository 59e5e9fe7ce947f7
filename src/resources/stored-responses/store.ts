import { sql } from 'kysely';
import type { NeededMemory } from '#kit/memory/byte-budget';
import type { Clock } from '#kit/async/clock';
import type { Sealer } from '#kit/crypto/sealing';
import { Fault } from '#core/fault';
import type { Database } from '#store/driver';
import type { Access, Store } from '#store/open';
import { secondsAhead } from '#store/database-clock';
import { batched } from '#store/batch';
import { openPurge } from './purge.ts';
import { openRoom } from './room.ts';

/** A response of a user, or what else stands in a conversation. */
export interface Entry<Body> {
  readonly userId: number;
  readonly id: string;
  /** The entry it goes on from. */
  readonly previousId?: string;
  readonly status: string;
  /** Items of its input and output. */
  readonly items: number;
  /** What was asked and answered: JSON, sealed at rest. */
  readonly body: Body;
}

/** Another user's entry is not there. */
export interface StoredResponses<Body> {
  /** Makes it or writes it anew. @throws Fault `overloaded` */
  keep(entry: Entry<Body>, inside?: Access): Promise<void>;
  /** Writes it anew while its status is one of these. @returns false where it is another, or the entry was deleted: then nothing has changed */
  renew(entry: Entry<Body>, statuses: readonly string[], inside?: Access): Promise<boolean>;
  /** @param memory where what is read counts */
  find(userId: number, id: string, memory?: NeededMemory): Promise<Entry<Body> | undefined>;
  /**
   * An entry with everything that it goes on from, oldest first.
   * @param field what the client calls the id
   * @param memory where what is read counts
   * @throws Fault `not-found`, also where an older one was deleted; `invalid` beyond 500 items or 32 MiB
   */
  chain(userId: number, id: string, field: string, memory?: NeededMemory): Promise<readonly Entry<Body>[]>;
  /** About how many bytes of memory an entry takes with everything that it goes on from. */
  bytes(userId: number, id: string): Promise<number>;
  /** @returns false when it was not there */
  remove(userId: number, id: string): Promise<boolean>;
  /** Is there room for more of this user? At once where it is known. @throws Fault `rate-limited` where there is none, `overloaded` */
  enter(userId: number): void | Promise<void>;
  /** Deletes what is older than the retention and not needed by something younger. @returns false where there may be more: the next round should come soon */
  purge(): Promise<boolean>;
}

const mostItems = 500;
const mostBytes = 32 * 2 ** 20;
const daySeconds = 86_400;
/** What is read, and what is made of it. */
const copies = 2;

export interface StoredDeps {
  readonly store: Store;
  readonly seal: Sealer;
  readonly clock: Clock;
  readonly retentionDays: () => number;
  /** Bytes of a user. */
  readonly mostBytes: () => number;
}

type Sealed = Omit<Entry<unknown>, 'body'> & { readonly body: Buffer };

const writing = {
  most: 100,
  bytes: { most: 8 * 2 ** 20, of: ({ body }: Sealed) => body.length },
  mostWaiting: 10_000,
  crowded: 'Too many responses are being kept.',
};

interface Row {
  readonly id: string;
  readonly previous_id: string | null;
  readonly status: string;
  readonly items: number;
  readonly body: Buffer;
}

/** What is read of each entry of a chain before their bodies are. */
interface Link {
  readonly id: string;
  readonly previous_id: string | null;
  readonly items: number;
  readonly bytes: number;
}

/** The responses that are kept. `Body` is whatever its owner writes: it comes back as it went in. */
export function openStoredResponses<Body>({ store, seal, clock, retentionDays, mostBytes: most }: StoredDeps): StoredResponses<Body> {
  const expiry = () => secondsAhead(retentionDays() * daySeconds);
  const entryOf = (userId: number, { id, previous_id: previousId, status, items, body }: Row): Entry<Body> => ({
    userId,
    id,
    ...(previousId === null ? {} : { previousId }),
    status,
    items,
    body: JSON.parse(seal.open(body, contextOf(userId, id)).toString('utf8')) as Body,
  });
  const read = async (userId: number, ids: readonly string[], memory?: NeededMemory): Promise<Entry<Body>[]> => {
    const { rows } = await sql<Row>`
      select id, previous_id, status, items, body from stored_response where user_id = ${userId} and id = any(${ids}::text[])`.execute(store.db);
    for (const { body } of rows) memory?.need(copies * body.length);
    return rows.map((row) => entryOf(userId, row));
  };
  /** An entry and what it goes on from, oldest first, as far as a chain may reach. */
  const linksOf = async (userId: number, id: string): Promise<readonly Link[]> => {
    const { rows } = await sql<Link>`
      with recursive chain as (
        select id, previous_id, items, bytes, 1 as length from stored_response where user_id = ${userId} and id = ${id}
        union all
        select older.id, older.previous_id, older.items, older.bytes, chain.length + 1
        from stored_response older join chain on older.id = chain.previous_id
        where older.user_id = ${userId} and chain.length <= ${mostItems}
      )
      select id, previous_id, items, bytes from chain order by length desc`.execute(store.db);
    return rows;
  };
  const bytesOf = (links: readonly Link[]) => links.reduce((sum, { bytes }) => sum + bytes, 0);
  const sealedOf = ({ body, ...entry }: Entry<Body>): Sealed => ({
    ...entry,
    body: seal.seal(Buffer.from(JSON.stringify(body)), contextOf(entry.userId, entry.id)),
  });
  const write = async (entries: readonly Sealed[], db: Database, more = sql``): Promise<void> => {
    const expires = expiry();
    const rows = entries.map(
      ({ userId, id, previousId = null, status, items, body }) =>
        sql`(${userId}, ${id}, ${previousId}, ${status}, ${items}, ${body}, ${body.length}, ${expires})`,
    );
    await sql`
      insert into stored_response (user_id, id, previous_id, status, items, body, bytes, expires_at) values ${sql.join(rows)}
      on conflict (user_id, id) do update set
        status = excluded.status, items = excluded.items, body = excluded.body, bytes = excluded.bytes, expires_at = excluded.expires_at
      ${more}`.execute(db);
  };
  /**
   * An answer that a server has committed outlives us, so nobody waits for its disk: `returning` sets that for this one transaction. The embedded database would
   * lose it with us.
   */
  const withoutDisk = store.kind === 'server' ? sql`returning set_config('synchronous_commit', 'off', true)` : sql``;
  /** Many answers end at once: they are written in one statement, whose commit is most of the cost. One that cannot be written takes no other with it. */
  const keepTogether = batched({
    async ask(entries: readonly Sealed[]): Promise<readonly (Error | undefined)[]> {
      const all = await problemOf(write(entries, store.db, withoutDisk));
      if (all === undefined || entries.length === 1 || isAway(all)) return entries.map(() => all);
      const problems: (Error | undefined)[] = [];
      for (const entry of entries) problems.push(await problemOf(write([entry], store.db, withoutDisk)));
      return problems;
    },
    clock,
    ...writing,
  });

  const room = openRoom({
    async used(userId) {
      const { rows } = await sql<{ bytes: number }>`
        select coalesce(sum(bytes), 0)::int8 as bytes from stored_response where user_id = ${userId}`.execute(store.db);
      return rows[0]!.bytes;
    },
    most,
    clock,
  });

  return {
    enter: (userId) => room.enter(userId),

    async keep(entry, inside) {
      const sealed = sealedOf(entry);
      room.took(entry.userId, sealed.body.length);
      if (inside) return write([sealed], inside.db);
      const problem = await keepTogether(sealed);
      if (problem) throw problem;
    },

    async renew(entry, statuses, { db } = store) {
      const { userId, id, status, items, body } = sealedOf(entry);
      const renewed = await sql`
        update stored_response set status = ${status}, items = ${items}, body = ${body}, bytes = ${body.length}, expires_at = ${expiry()}
        where user_id = ${userId} and id = ${id} and status = any(${statuses}::text[])`.execute(db);
      const isRenewed = renewed.numAffectedRows === 1n;
      if (isRenewed) room.took(userId, body.length);
      return isRenewed;
    },

    async find(userId, id, memory) {
      const [entry] = await read(userId, [id], memory);
      return entry;
    },

    async chain(userId, id, field, memory) {
      const rows = await linksOf(userId, id);
      const items = rows.reduce((sum, row) => sum + row.items, 0);
      const bytes = bytesOf(rows);
      if (rows.length > mostItems || items > mostItems || bytes > mostBytes)
        throw new Fault('invalid', `What ${field} goes on from is longer than ${mostItems} items or 32 MiB: begin a new conversation.`, { field });
      if (rows.length === 0) throw new Fault('not-found', `${field} names nothing that is kept for you.`, { field });
      if (rows[0]!.previous_id !== null) throw new Fault('not-found', `Something that ${field} goes on from was deleted.`, { field });
      memory?.need(copies * bytes);
      const entries = new Map(
        (
          await read(
            userId,
            rows.map((row) => row.id),
          )
        ).map((entry) => [entry.id, entry]),
      );
      return rows.flatMap((row) => entries.get(row.id) ?? []);
    },

    bytes: async (userId, id) => copies * bytesOf(await linksOf(userId, id)),

    async remove(userId, id) {
      const gone = await sql`delete from stored_response where user_id = ${userId} and id = ${id}`.execute(store.db);
      room.forget(userId);
      return gone.numAffectedRows === 1n;
    },

    purge: openPurge(store),
  };
}

const isAway = (problem: Error) => problem instanceof Fault && problem.code === 'overloaded';

/** What went wrong, if anything did. */
const problemOf = (work: Promise<void>): Promise<Error | undefined> => work.then(() => undefined).catch((error: Error) => error);

const contextOf = (userId: number, id: string) => `stored-response/${userId}/${id}`;

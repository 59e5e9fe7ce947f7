import { sql, type RawBuilder } from 'kysely';
import type { StoredEntry } from '#core/stored-responses';
import type { NeededMemory } from '#kit/memory/byte-budget';
import { envelopeBytes, openedJson, type Sealer } from '#kit/crypto/sealing';
import type { Database } from '#store/driver';
import type { Store } from '#store/open';
import { secondsAhead } from '#store/database-clock';

/** An entry whose body is text, about to be sealed and written. */
export interface SerializedEntry extends Omit<StoredEntry<unknown>, 'body' | 'text'> {
  /** JSON. */
  readonly plain: string;
  /** Bytes of the sealed body. */
  readonly bytes: number;
}

interface Row {
  readonly id: string;
  readonly previous_id: string | null;
  readonly status: string;
  readonly items: number;
  readonly body: Buffer;
}

/** What is read of each entry of a chain before the bodies. */
export interface Link {
  readonly id: string;
  readonly previous_id: string | null;
  readonly items: number;
  readonly bytes: number;
}

export interface EntryTableDeps {
  readonly store: Pick<Store, 'db' | 'kind'>;
  readonly seal: Sealer;
  readonly retentionDays: () => number;
}

const daySeconds = 86_400;
/** Memory for what is read, and for what is made of it. */
export const copies = 2;

/** The table of kept responses. `Body` is whatever its owner writes: it comes back as it went in. */
export class EntryTable<Body> {
  readonly #deps: EntryTableDeps;
  /**
   * An answer that a server has committed outlives this process, so its disk is not waited for: `returning` sets that for this one transaction. The embedded
   * database would lose it with the process.
   */
  readonly #withoutDisk;

  constructor(deps: EntryTableDeps) {
    this.#deps = deps;
    this.#withoutDisk = deps.store.kind === 'server' ? sql`returning set_config('synchronous_commit', 'off', true)` : sql``;
  }

  serialized({ body, text: plain = JSON.stringify(body), ...entry }: StoredEntry<Body>): SerializedEntry {
    return { ...entry, plain, bytes: Buffer.byteLength(plain) + envelopeBytes };
  }

  /**
   * Inserts entries, or replaces those that are there. They are sealed together, and go as one value of which each row takes its part: a list of them would be
   * written out in hexadecimal digits.
   */
  async write(entries: readonly SerializedEntry[], db: Database, more = sql``): Promise<void> {
    const sealed = this.#deps.seal.sealAll(entries.map(({ userId, id, plain }) => ({ plain, context: contextOf(userId, id) })));
    const column = <Value>(of: (entry: SerializedEntry) => Value) => entries.map(of);
    let end = 0;
    const starts = column(({ bytes }) => (end += bytes) - bytes + 1);
    await sql`
      insert into stored_response (user_id, id, previous_id, status, items, body, bytes, expires_at)
      select user_id, id, previous_id, status, items, substring(${sealed}::bytea from start for bytes), bytes, ${this.#expiry}
      from unnest(${column(({ userId }) => userId)}::bigint[], ${column(({ id }) => id)}::text[], ${column(({ previousId }) => previousId)}::text[],
        ${column(({ status }) => status)}::text[], ${column(({ items }) => items)}::int[], ${starts}::int[], ${column(({ bytes }) => bytes)}::int[])
        as given(user_id, id, previous_id, status, items, start, bytes)
      on conflict (user_id, id) do update set
        status = excluded.status, items = excluded.items, body = excluded.body, bytes = excluded.bytes, expires_at = excluded.expires_at
      ${more}`.execute(db);
  }

  /** As `write`, in a transaction of its own that does not wait for the disk of a server. */
  writeSoon(entries: readonly SerializedEntry[]): Promise<void> {
    return this.write(entries, this.#deps.store.db, this.#withoutDisk);
  }

  /** Replaces an entry while its status is one of these. @returns whether it did */
  async renew({ userId, id, previousId, status, items, plain, bytes }: SerializedEntry, statuses: readonly string[], db: Database): Promise<boolean> {
    const body = this.#deps.seal.sealAll([{ plain, context: contextOf(userId, id) }]);
    const renewed = await sql`
      update stored_response set
        previous_id = ${previousId ?? null}, status = ${status}, items = ${items}, body = ${body}, bytes = ${bytes}, expires_at = ${this.#expiry}
      where user_id = ${userId} and id = ${id} and status = any(${statuses}::text[])`.execute(db);
    return renewed.numAffectedRows === 1n;
  }

  async read(userId: number, ids: readonly string[], memory?: NeededMemory): Promise<StoredEntry<Body>[]> {
    return this.#read(userId, ids, this.#deps.store.db, sql``, memory);
  }

  /** One entry, which stays as it is until the transaction ends. */
  async lock(userId: number, id: string, db: Database): Promise<StoredEntry<Body> | undefined> {
    return (await this.#read(userId, [id], db, sql`for update`))[0];
  }

  async #read(userId: number, ids: readonly string[], db: Database, how: RawBuilder<unknown>, memory?: NeededMemory): Promise<StoredEntry<Body>[]> {
    const { rows } = await sql<Row>`
      select id, previous_id, status, items, body from stored_response where user_id = ${userId} and id = any(${ids}::text[]) ${how}`.execute(db);
    for (const { body } of rows) memory?.need(copies * body.length);
    return rows.map((row) => this.#entryOf(userId, row));
  }

  /** An entry and what it goes on from, oldest first. @param most entries; one more shows that there are more */
  async links(userId: number, id: string, most: number, db = this.#deps.store.db): Promise<readonly Link[]> {
    const { rows } = await sql<Link>`
      with recursive chain as (
        select id, previous_id, items, bytes, 1 as length from stored_response where user_id = ${userId} and id = ${id}
        union all
        select older.id, older.previous_id, older.items, older.bytes, chain.length + 1
        from stored_response older join chain on older.id = chain.previous_id
        where older.user_id = ${userId} and chain.length <= ${most}
      )
      select id, previous_id, items, bytes from chain order by length desc`.execute(db);
    return rows;
  }

  async used(userId: number): Promise<number> {
    const { rows } = await sql<{ bytes: number }>`
      select coalesce(sum(bytes), 0)::int8 as bytes from stored_response where user_id = ${userId}`.execute(this.#deps.store.db);
    return rows[0]!.bytes;
  }

  /** @returns whether it was there */
  async remove(userId: number, id: string, db: Database): Promise<boolean> {
    const gone = await sql`delete from stored_response where user_id = ${userId} and id = ${id}`.execute(db);
    return gone.numAffectedRows === 1n;
  }

  get #expiry() {
    return secondsAhead(this.#deps.retentionDays() * daySeconds);
  }

  #entryOf(userId: number, { id, previous_id: previousId, status, items, body }: Row): StoredEntry<Body> {
    return {
      userId,
      id,
      ...(previousId === null ? {} : { previousId }),
      status,
      items,
      body: openedJson(this.#deps.seal, body, contextOf(userId, id)) as Body,
    };
  }
}

const contextOf = (userId: number, id: string) => `stored-response/${userId}/${id}`;

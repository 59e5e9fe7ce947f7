import { createHmac } from 'node:crypto';
import { sql } from 'kysely';
import { openedText, type Sealer } from '#kit/crypto/sealing';
import { secondsAhead } from '#store/database-clock';
import type { Store } from '#store/open';
import { firstOf, inPieces, rowsChanged } from '#store/pieces';

/** Thoughts as a row: JSON text under a name of a user's. */
export interface ThoughtRow {
  readonly userId: number;
  readonly name: string;
  readonly text: string;
}

export interface ThoughtTableDeps {
  readonly store: Pick<Store, 'db' | 'kind'>;
  readonly seal: Sealer;
  /** 32 bytes, the same on every machine. */
  readonly pepper: Buffer;
}

/** What may be in the table, in bytes. */
export interface ThoughtRoom {
  readonly each: number;
  readonly all: number;
}

const keptSeconds = 24 * 3600;
const readBytes = 16 * 2 ** 20;
const purgeRows = 500;
const mostPieces = 500;

/** The table of kept thoughts. Names are digests and texts are sealed there; all times are by the database's clock. */
export class ThoughtTable {
  readonly #deps: ThoughtTableDeps;
  /** What a server has committed outlives this process: its disk is not waited for. */
  readonly #withoutDisk;

  constructor(deps: ThoughtTableDeps) {
    this.#deps = deps;
    this.#withoutDisk = deps.store.kind === 'server' ? sql`returning set_config('synchronous_commit', 'off', true)` : sql``;
  }

  /** Writes them for a day, over what is there; for users that are gone nothing. */
  async write(rows: readonly ThoughtRow[]): Promise<void> {
    const last = new Map(rows.map((row) => [`${row.userId} ${row.name}`, row]));
    const values = [...last.values()].map(({ userId, name, text }) => {
      const digest = this.#digest(userId, name);
      return sql`(${userId}::bigint, ${digest}::bytea, ${this.#deps.seal.seal(Buffer.from(text), contextOf(userId, digest))}::bytea)`;
    });
    await sql`
      insert into kept_thoughts (user_id, name, kept, bytes, expires_at)
      select users.id, given.name, given.kept, length(given.kept), ${secondsAhead(keptSeconds)}
      from (values ${sql.join(values)}) as given (user_id, name, kept) join users on users.id = given.user_id
      on conflict (user_id, name) do update set kept = excluded.kept, bytes = excluded.bytes, expires_at = excluded.expires_at
      ${this.#withoutDisk}`.execute(this.#deps.store.db);
  }

  /** The texts under these names, as many of the newest as fit into 16 MiB. */
  async read(userId: number, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const asked = new Map(names.map((name) => [this.#digest(userId, name).toString('hex'), name]));
    const digests = [...asked.keys()].map((hex) => Buffer.from(hex, 'hex'));
    const { rows } = await sql<{ name: Buffer; kept: Buffer }>`
      select name, kept from (
        select name, kept, sum(bytes) over (order by expires_at desc, name) as so_far from kept_thoughts
        where user_id = ${userId} and name = any(${digests}::bytea[]) and expires_at > now()
      ) as newest where so_far <= ${readBytes}`.execute(this.#deps.store.db);
    const found = new Map<string, string>();
    for (const { name, kept } of rows) {
      const text = openedText(this.#deps.seal, kept, contextOf(userId, name)); // what another master key has sealed is as good as gone
      if (text !== undefined) found.set(asked.get(name.toString('hex'))!, text);
    }
    return found;
  }

  /** Deletes what is older than a day, and the oldest of what is more than there is room for. */
  async purge({ each, all }: ThoughtRoom): Promise<void> {
    const old = sql`select ctid as place, bytes from kept_thoughts where expires_at <= now() limit ${purgeRows} for update skip locked`;
    const ofUsers = sql`
      select place, bytes from (
        select ctid as place, bytes, sum(bytes) over (partition by user_id order by expires_at desc, name) as so_far from kept_thoughts
        where user_id in (select user_id from kept_thoughts group by user_id having sum(bytes) > ${each})
      ) as newest where so_far > ${each} limit ${purgeRows}`;
    const ofAll = sql`
      select place, bytes from (
        select ctid as place, bytes, sum(bytes) over (order by expires_at desc, user_id, name) as so_far from kept_thoughts
        where (select sum(bytes) from kept_thoughts) > ${all}
      ) as newest where so_far > ${all} limit ${purgeRows}`;
    for (const rows of [old, ofUsers, ofAll]) {
      const some = sql`delete from kept_thoughts where ctid = any(array(${firstOf(rows)}))`;
      await inPieces(() => rowsChanged(some, this.#deps.store.db), { size: 1, most: mostPieces });
    }
  }

  #digest(userId: number, name: string): Buffer {
    return createHmac('sha256', this.#deps.pepper).update(`${userId} ${name}`).digest();
  }
}

const contextOf = (userId: number, digest: Buffer) => `kept-thoughts/${userId}/${digest.toString('hex')}`;

import { sql, type RawBuilder } from 'kysely';
import { Fault } from '#core/fault';
import { unknownThing } from '#http/noun-route';
import { forgetGrants, includes, type Reader, type Right } from '#store/grants';
import type { Access } from '#store/open';

/** What is kept of every such thing; `right` is what its reader may do with it. */
export interface OwnRow {
  readonly id: number;
  readonly owner: number;
  readonly right: Right | 'owner';
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** A row as it is read: with the level of the reader's right (`levelOf`). */
export type RowOf<Thing extends OwnRow> = Omit<Thing, 'right'> & { readonly level: number };

/** How things that users own and share are kept: one row each, in a table that is named as their kind in `grants`. */
export interface OwnRowsDeps<Thing extends OwnRow> {
  readonly kind: 'agent' | 'persona' | 'plugin' | 'secret';
  /** Most of a user. */
  readonly most: number;
  /** Reads those that the reader may use. */
  readonly read: (reader: Reader, where: RawBuilder<unknown>, access?: Pick<Access, 'db'>) => Promise<readonly Thing[]>;
}

/** What the stores of such things have in common. */
export interface OwnRows<Thing> {
  /** The things of a user and those shared with them, by id, those behind `after`. */
  list(reader: Reader, asked: { readonly after: number; readonly limit: number }): Promise<readonly Thing[]>;
  /** @throws Fault `not-found` for one that the reader may not use */
  one(reader: Reader, id: number): Promise<Thing>;
  /** The id, for who may say who else uses it. @throws Fault `not-found`, `forbidden` */
  administered(reader: Reader, id: number): Promise<number>;
  /** Locks it, within a transaction. @returns its owner, undefined where it is not there */
  lock(inside: Access, id: number): Promise<number | undefined>;
}

/** What such a store is made of. */
export interface OwnRowsInside<Thing> extends OwnRows<Thing> {
  one(reader: Reader, id: number, access?: Pick<Access, 'db'>): Promise<Thing>;
  /** One that the reader may change; locked, where it is read within a transaction. @throws Fault `not-found`; `forbidden` where it is shared for use only */
  editable(reader: Reader, id: number, inside?: Access): Promise<Thing>;
  /** The same thing. @throws Fault `forbidden` where it is shared for use only */
  checkEditable(thing: Thing): Thing;
  /** Locks a user's row: two requests at once make no more than one may. @throws Fault `not-found`; `conflict` where the user has as many as a user may have */
  checkRoom(inside: Access, userId: number): Promise<void>;
  /** @throws Fault `not-found`; `forbidden` where it is another's */
  remove(inside: Access, reader: Reader, id: number): Promise<Thing>;
}

export function ownRows<Thing extends OwnRow>({ kind, most, read }: OwnRowsDeps<Thing>): OwnRowsInside<Thing> {
  const table = sql.table(kind);
  const idColumn = sql.ref(`${kind}.id`);
  const one = async (reader: Reader, id: number, access?: Pick<Access, 'db'>): Promise<Thing> => {
    const [thing] = await read(reader, sql`${idColumn} = ${id}`, access);
    if (!thing) throw unknownThing(kind);
    return thing;
  };
  /** Locks the row before it is read: a locking join that had to wait would pair the new row with older rows of other tables. */
  const locked = async (reader: Reader, id: number, inside: Access) => {
    await sql`select from ${table} where id = ${id} for update`.execute(inside.db);
    return one(reader, id, inside);
  };
  const checkEditable = (thing: Thing): Thing => {
    if (!includes(thing.right, 'edit')) throw new Fault('forbidden', `This ${kind} is shared with you to be used, not to be changed.`);
    return thing;
  };
  return {
    list: (reader, { after, limit }) => read(reader, sql`${idColumn} > ${after} order by ${idColumn} limit ${limit}`),
    one: (reader, id, access) => one(reader, id, access),
    editable: async (reader, id, inside) => checkEditable(await (inside ? locked(reader, id, inside) : one(reader, id))),
    checkEditable,
    async checkRoom({ db }, userId) {
      const user = await sql`select from users where id = ${userId} and removed_at is null for no key update`.execute(db);
      if (user.rows.length === 0) throw unknownThing('user');
      const { rows } = await sql<{ count: number }>`select count(*)::int as count from ${table} where owner_id = ${userId}`.execute(db);
      if (rows[0]!.count >= most) throw new Fault('conflict', `A user has at most ${most} ${kind}s: delete one first.`);
    },
    async remove(inside, reader, id) {
      const thing = await locked(reader, id, inside);
      if (thing.right !== 'owner') throw new Fault('forbidden', `Only its owner deletes ${kind === 'agent' ? 'an' : 'a'} ${kind}.`);
      await sql`delete from ${table} where id = ${id}`.execute(inside.db);
      await forgetGrants(inside, kind, [id]);
      return thing;
    },
    async administered(reader, id) {
      if (!includes((await one(reader, id)).right, 'admin')) throw new Fault('forbidden', `You may use this ${kind}, and not say who else may.`);
      return id;
    },
    async lock({ db }, id) {
      const { rows } = await sql<{ owner: number }>`select owner_id as owner from ${table} where id = ${id} for update`.execute(db);
      return rows[0]?.owner;
    },
  };
}

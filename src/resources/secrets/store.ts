import { sql, type RawBuilder } from 'kysely';
import type { Actor } from '#core/audit';
import { Fault } from '#core/fault';
import { secretsIn, withSecrets, type ResolveSecrets } from '#core/secrets';
import { unknownThing } from '#http/noun-route';
import type { Sealer } from '#kit/crypto/sealing';
import type { Audit } from '#store/auditing';
import { allows, isGivenByName, levelOf, rightOf, type Reader } from '#store/grants';
import type { Access, Store } from '#store/open';
import { ownRows, type OwnRow, type OwnRows, type RowOf } from '../own-rows.ts';

/** A secret, without its value, which nothing gives back. */
export interface Secret extends OwnRow {
  readonly name: string;
}

export interface SecretText {
  readonly name: string;
  readonly value: string;
}

export interface SecretStore extends OwnRows<Secret> {
  /** The names of a user's own secrets, sorted. */
  names(userId: number): Promise<readonly string[]>;
  /** @throws Fault `conflict` for a name that the user has, and where they have as many as a user may have */
  add(userId: number, text: SecretText, by: Actor): Promise<Secret>;
  /** @throws Fault `not-found`; `forbidden` where it is shared with the reader for use only; `conflict` for a name that its owner has */
  change(reader: Reader, id: number, text: SecretText, by: Actor): Promise<Secret>;
  /** @throws Fault `not-found`; `forbidden` where it is another's */
  remove(reader: Reader, id: number, by: Actor): Promise<Secret>;
  /** A user's own secret of a name comes before one that is shared with them; of several shared ones the oldest counts, and those that everybody has come last. */
  readonly resolve: ResolveSecrets;
}

/** Most secrets of a user. */
export const mostSecrets = 1000;

/** As `grants.kind`. */
export const kind = 'secret';

const thing = { id: sql.ref('secret.id'), owner: sql.ref('secret.owner_id') };
const contextOf = (owner: number, name: string) => `user-secret/${owner}/${name}`;

const inTrail = ({ name, owner, updatedAt }: Secret) => ({ name, owner, updatedAt: updatedAt.toISOString() });

export interface SecretStoreDeps {
  readonly store: Store;
  readonly seal: Sealer;
  readonly audit: Audit;
}

export function openSecrets({ store, seal, audit }: SecretStoreDeps): SecretStore {
  const read = async (reader: Reader, where: RawBuilder<unknown>, { db }: Pick<Access, 'db'> = store): Promise<readonly Secret[]> => {
    const { rows } = await sql<RowOf<Secret>>`
      select id, owner_id as owner, name, created_at as "createdAt", updated_at as "updatedAt", ${levelOf(kind, reader, thing)} as level
      from secret where ${allows(kind, 'read', reader, thing)} and ${where}`.execute(db);
    return rows.map(({ level, ...row }) => ({ ...row, right: rightOf(level) }));
  };
  const things = ownRows({ kind, most: mostSecrets, read });
  const sealed = (owner: number, { name, value }: SecretText) => seal.seal(Buffer.from(value), contextOf(owner, name));
  const refuseTwice = async ({ db }: Access, owner: number, name: string, except = 0) => {
    const { rows } = await sql`select from secret where owner_id = ${owner} and name = ${name} and id <> ${except}`.execute(db);
    if (rows.length > 0) throw new Fault('conflict', `There is a secret ${name} already.`, { field: 'name' });
  };
  return {
    ...things,
    async names(userId) {
      const { rows } = await sql<{ name: string }>`select name from secret where owner_id = ${userId} order by name collate "C"`.execute(store.db);
      return rows.map(({ name }) => name);
    },
    add: (userId, text, by) =>
      store.transaction(async (inside) => {
        await things.checkRoom(inside, userId);
        await refuseTwice(inside, userId, text.name);
        const made = await sql<{ id: number }>`
          insert into secret (owner_id, name, sealed) values (${userId}, ${text.name}, ${sealed(userId, text)}) returning id`.execute(inside.db);
        const { id } = made.rows[0]!;
        await audit(inside, { by, action: 'secret.create', target: { kind, id }, after: { name: text.name, owner: userId } });
        return things.one({ userId, teamIds: [] }, id, inside);
      }),
    change: (reader, id, text, by) =>
      store.transaction(async (inside) => {
        const { owner } = things.checkEditable(await things.one(reader, id, inside));
        await sql`select from users where id = ${owner} for no key update`.execute(inside.db); // of two that take the same name at once, one is refused
        const before = await things.editable(reader, id, inside);
        await refuseTwice(inside, before.owner, text.name, id);
        const changed = await sql`
          update secret set name = ${text.name}, sealed = ${sealed(before.owner, text)}, updated_at = clock_timestamp() where id = ${id}`.execute(inside.db);
        if (changed.numAffectedRows === 0n) throw unknownThing(kind);
        const after = await things.one(reader, id, inside);
        // the values are not in the trail: that there is a new one shows by its time
        await audit(inside, { by, action: 'secret.change', target: { kind, id }, before: inTrail(before), after: inTrail(after) });
        return after;
      }),
    remove: (reader, id, by) =>
      store.transaction(async (inside) => {
        const secret = await things.remove(inside, reader, id);
        await audit(inside, { by, action: 'secret.delete', target: { kind, id }, before: { name: secret.name, owner: secret.owner } });
        return secret;
      }),
    resolve: resolving(store, seal),
  };
}

const resolving =
  ({ db }: Pick<Access, 'db'>, seal: Sealer): ResolveSecrets =>
  async (userId, text) => {
    const names = secretsIn(text);
    if (names.length === 0) return text;
    const teams = await sql<{ id: number }>`select team_id as id from team_members where user_id = ${userId}`.execute(db);
    const reader = { userId, teamIds: teams.rows.map(({ id }) => id) };
    const { rows } = await sql<{ owner: number; name: string; sealed: Buffer }>`
      select owner_id as owner, name, sealed from secret
      where name = any(${[...names]}::text[]) and ${allows(kind, 'read', reader, thing)}
        and exists (select from users where users.id = owner_id and removed_at is null)
      order by owner_id <> ${userId}::bigint, not ${isGivenByName(kind, reader, thing)}, id`.execute(db);
    const values = new Map<string, string>();
    for (const { owner, name, sealed: envelope } of rows) if (!values.has(name)) values.set(name, seal.open(envelope, contextOf(owner, name)).toString());
    const missing = names.find((name) => !values.has(name));
    if (missing !== undefined) throw new Fault('invalid', `There is no secret ${missing} that may be used here.`);
    return withSecrets(text, values);
  };

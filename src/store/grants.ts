import { sql, type RawBuilder } from 'kysely';
import type { Caller } from '#core/context';
import type { Access } from '#store/open';

/*
 * Who may do what with a thing: its owner everything, others what the flat table `grants` gives to them, to one of their teams, or to everybody. A right includes
 * those below it. The conditions below go into the statement that reads or searches, so that what a caller must not see is never read.
 */
export type Right = 'read' | 'edit' | 'admin';

const rights: readonly Right[] = ['read', 'edit', 'admin'];

const levels: Readonly<Record<Right, number>> = { read: 1, edit: 2, admin: 3 };

/** Above all rights: only owners delete. */
const ownerLevel = 4;

/** Whose rights are asked for. */
export type Reader = Pick<Caller, 'userId' | 'teamIds'>;

/** The columns by which a thing is known in a statement, such as `sql.ref('datasets.id')`. */
export interface ThingColumns {
  readonly id: RawBuilder<unknown>;
  readonly owner: RawBuilder<unknown>;
}

/** One grant: to one of the three. */
export interface Grant {
  readonly user?: number;
  readonly team?: number;
  readonly everybody?: true;
  readonly right: Right;
}

/** Is the thing the caller's own, or was this right to it, or a higher one, given? */
export const allows = (kind: string, right: Right, reader: Reader, { id, owner }: ThingColumns): RawBuilder<boolean> =>
  sql<boolean>`(${owner} = ${reader.userId}::bigint or ${granted(kind, right, reader, id)})`;

/** The right to a thing, as a number that `rightOf` names; null where there is none. */
export const levelOf = (kind: string, reader: Reader, { id, owner }: ThingColumns): RawBuilder<number | null> => sql<number | null>`
  case when ${owner} = ${reader.userId}::bigint then ${sql.lit(ownerLevel)} else (select max(level)::int from grants where kind = ${sql.lit(kind)} and thing_id = ${id} and ${given(reader)}) end`;

export const rightOf = (level: number): Right | 'owner' => (level >= ownerLevel ? 'owner' : (rights[level - 1] ?? 'read'));

/** Does one right include another? */
export const includes = (has: Right | 'owner', wanted: Right): boolean => has === 'owner' || levels[has] >= levels[wanted];

/**
 * May the caller read (or edit) this file of a dataset? For a statement with the tables `datasets` and `dataset_files`, joined. Grants of a file narrow those of its
 * dataset; who administers the dataset has all of its files. What was deleted nobody may read.
 */
export function readableFiles(reader: Reader, right: Right = 'read'): RawBuilder<boolean> {
  const dataset = sql.ref('datasets.id');
  const owner = sql.ref('datasets.owner_id');
  const file = granted('file', right, reader, sql.ref('dataset_files.id'));
  return sql<boolean>`(datasets.deleted_at is null and dataset_files.deleted_at is null and (
    ${allows('dataset', 'admin', reader, { id: dataset, owner })}
    or (${granted('dataset', right, reader, dataset)} and (not dataset_files.narrowed or ${file}))))`;
}

const granted = (kind: string, right: Right, reader: Reader, id: RawBuilder<unknown>) => sql<boolean>`
  ${id} in (select thing_id from grants where kind = ${sql.lit(kind)} and level >= ${sql.lit(levels[right])} and ${given(reader)})`;

/** Is the right to a thing given by name, to the reader or one of their teams? Else to everybody, which anybody can do with a thing of theirs. */
export const isGivenByName = (kind: string, reader: Reader, { id }: Pick<ThingColumns, 'id'>): RawBuilder<boolean> => sql<boolean>`
  ${id} in (select thing_id from grants where kind = ${sql.lit(kind)} and ${givenByName(reader)})`;

const given = (reader: Reader) => sql<boolean>`(${givenByName(reader)} or everybody)`;

const givenByName = ({ userId, teamIds }: Reader) => sql<boolean>`(user_id = ${userId}::bigint or team_id = any(${[...teamIds]}::bigint[]))`;

/** The grants of a thing: users first, then teams, then everybody; of users and teams that are there. */
export async function grantsOf({ db }: Access, kind: string, thing: number): Promise<readonly Grant[]> {
  const { rows } = await sql<{ userId: number | null; teamId: number | null; level: number }>`
    select user_id as "userId", team_id as "teamId", level from grants
    where kind = ${kind} and thing_id = ${thing}
      and (user_id is null or exists (select from users where id = user_id and removed_at is null))
      and (team_id is null or exists (select from teams where id = team_id))
    order by user_id nulls last, team_id nulls last`.execute(db);
  return rows.map(({ userId, teamId, level }) => ({
    ...(userId === null ? {} : { user: userId }),
    ...(teamId === null ? {} : { team: teamId }),
    ...(userId === null && teamId === null ? { everybody: true } : {}),
    right: rights[level - 1]!,
  }));
}

/** Puts grants in the place of all those of a thing. To be called in a transaction that has locked the thing. Of several to the same one the highest counts. */
export async function setGrants({ db }: Access, kind: string, thing: number, grants: readonly Grant[]): Promise<void> {
  await sql`delete from grants where kind = ${kind} and thing_id = ${thing}`.execute(db);
  if (grants.length === 0) return;
  await sql`
    insert into grants (kind, thing_id, user_id, team_id, everybody, level)
    select ${kind}, ${thing}::bigint, user_id, team_id, everybody, max(level) from unnest(
      ${grants.map(({ user }) => user ?? null)}::bigint[], ${grants.map(({ team }) => team ?? null)}::bigint[],
      ${grants.map(({ everybody = false }) => everybody)}::boolean[], ${grants.map(({ right }) => levels[right])}::smallint[]
    ) as given (user_id, team_id, everybody, level) group by user_id, team_id, everybody`.execute(db);
}

/** Gives one user a right to a thing, or another one than before. To be called in a transaction. */
export async function grantTo({ db }: Access, kind: string, thing: number, userId: number, right: Right): Promise<void> {
  await sql`
    insert into grants (kind, thing_id, user_id, level) values (${kind}, ${thing}, ${userId}, ${levels[right]})
    on conflict (user_id, kind, thing_id) where user_id is not null do update set level = excluded.level`.execute(db);
}

/** @returns false where there was no such grant */
export async function takeFrom({ db }: Access, kind: string, thing: number, userId: number): Promise<boolean> {
  const gone = await sql`delete from grants where kind = ${kind} and thing_id = ${thing} and user_id = ${userId}`.execute(db);
  return (gone.numAffectedRows ?? 0n) > 0n;
}

/** Takes away all grants of these things, which are gone. */
export async function forgetGrants({ db }: Access, kind: string, things: readonly number[]): Promise<void> {
  await sql`delete from grants where kind = ${kind} and thing_id = any(${[...things]}::bigint[])`.execute(db);
}

import { sql, type Generated } from 'kysely';
import type { Clock } from '#kit/async/clock';
import type { Actor } from '#core/audit';
import { Fault } from '#core/fault';
import { notYet } from '#store/negative-cache';
import type { Audit } from '#store/auditing';
import { openLiveValue } from '#store/live-value';
import type { Access, Store } from '#store/open';
import { isDuplicate } from '#store/sql-error';

export interface Team {
  readonly id: number;
  readonly name: string;
  readonly plan: string;
  /** Ids of users. */
  readonly members: readonly number[];
}

export type TeamChange = Partial<Omit<Team, 'id'>>;

/** Users whose spending counts together as well. */
export interface Teams {
  /**
   * The name of a team's plan, at once, from memory. A team that is gone keeps its plan for the calls that began before.
   * @throws Fault `overloaded` where another process may have made the team a moment ago: the database is being asked
   */
  planOf(id: number): string;
  /** Makes sure that `planOf` knows these. @throws Fault `overloaded` while the database is away */
  meet(ids: readonly number[]): Promise<void>;
  find(id: number): Promise<Team | undefined>;
  /** By id, those behind `after`. */
  list(asked: { after: number; limit: number }): Promise<readonly Team[]>;
  /** @throws Fault `conflict` when the name is taken, `invalid` naming a member that is no user */
  add(team: Omit<Team, 'id'>, by: Actor): Promise<Team>;
  /** @throws as `add` */
  change(id: number, change: TeamChange, by: Actor): Promise<Team | undefined>;
  remove(id: number, by: Actor): Promise<Team | undefined>;
  close(): void;
}

type Tables = {
  teams: { id: Generated<number>; name: string; plan: string };
  team_members: { team_id: number; user_id: number };
};

export interface TeamsDeps {
  readonly store: Store;
  readonly audit: Audit;
  readonly clock: Clock;
  /** Told after each change, when `planOf` knows of it: who is in which team may be another now. */
  readonly changed: () => void;
}

export async function openTeams({ store, audit, clock, changed }: TeamsDeps): Promise<Teams> {
  const target = (id: number) => ({ kind: 'team', id });
  const tables = ({ db }: Access) => db.$extendTables<Tables>();
  const read = async (before: ReadonlyMap<number, string> = new Map()) => {
    const rows = await tables(store).selectFrom('teams').select(['id', 'plan']).execute();
    return new Map([...before, ...rows.map(({ id, plan }) => [id, plan] as const)]);
  };
  const plans = await openLiveValue({ store, topic: 'teams', clock, read, changed });

  const select = (access: Access) =>
    tables(access)
      .selectFrom('teams')
      .select(['id', 'name', 'plan', sql<number[]>`array(select user_id from team_members where team_id = teams.id order by user_id)`.as('members')]);

  async function written<Result>(work: (inside: Access) => Promise<Result>): Promise<Result> {
    try {
      const result = await store.transaction(async (inside) => {
        const done = await work(inside);
        if (done !== undefined) await inside.publish('teams', null);
        return done;
      });
      await plans.upToDate();
      return result;
    } catch (error) {
      throw isDuplicate(error, 'teams_name') ? new Fault('conflict', 'There is a team of this name already.', { field: 'name' }) : error;
    }
  }

  return {
    planOf(id) {
      const plan = plans.value.get(id);
      if (plan !== undefined) return plan;
      void plans.again();
      throw notYet();
    },
    async meet(ids) {
      if (ids.some((id) => !plans.value.has(id)) && !(await plans.again())) throw notYet();
    },
    find: (id) => select(store).where('id', '=', id).executeTakeFirst(),
    list: ({ after, limit }) => select(store).where('id', '>', after).orderBy('id').limit(limit).execute(),
    add: ({ name, plan, members }, by) =>
      written(async (inside) => {
        const { id } = await tables(inside).insertInto('teams').values({ name, plan }).returning('id').executeTakeFirstOrThrow();
        await setMembers(inside, id, members);
        const after = await select(inside).where('id', '=', id).executeTakeFirstOrThrow();
        await audit(inside, { by, action: 'team.add', target: target(id), after });
        return after;
      }),
    change: (id, { name, plan, members }, by) =>
      written(async (inside) => {
        const isThere = await tables(inside).selectFrom('teams').select('id').where('id', '=', id).forUpdate().executeTakeFirst();
        if (!isThere) return undefined;
        const before = await select(inside).where('id', '=', id).executeTakeFirstOrThrow();
        await tables(inside)
          .updateTable('teams')
          .set({ name: name ?? before.name, plan: plan ?? before.plan })
          .where('id', '=', id)
          .execute();
        if (members) await setMembers(inside, id, members);
        const after = await select(inside).where('id', '=', id).executeTakeFirstOrThrow();
        await audit(inside, { by, action: 'team.change', target: target(id), before, after });
        return after;
      }),
    remove: (id, by) =>
      written(async (inside) => {
        const before = await select(inside).where('id', '=', id).forUpdate().executeTakeFirst();
        if (!before) return undefined;
        await tables(inside).deleteFrom('teams').where('id', '=', id).execute();
        await audit(inside, { by, action: 'team.delete', target: target(id), before });
        return before;
      }),
    close: () => plans.close(),
  };
}

async function setMembers({ db }: Access, id: number, members: readonly number[]): Promise<void> {
  const { rows } = await sql<{
    id: number;
  }>`select id from users where id = any(${members}::bigint[]) and removed_at is null order by id for key share`.execute(db);
  const known = new Set(rows.map((row) => row.id));
  const at = members.findIndex((member) => !known.has(member));
  if (at >= 0) throw new Fault('invalid', `members[${at}] must be the id of a user: there is no user ${members[at]}.`, { field: `members[${at}]` });
  await sql`delete from team_members where team_id = ${id} and user_id <> all(${members}::bigint[])`.execute(db);
  await sql`insert into team_members (team_id, user_id) select ${id}, unnest(${[...known]}::bigint[]) on conflict do nothing`.execute(db);
}

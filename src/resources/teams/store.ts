import { sql, type RawBuilder } from 'kysely';
import type { Clock } from '#kit/async/clock';
import type { Actor } from '#core/audit';
import { Fault, invalid } from '#core/fault';
import type { LimitedTeam, Plan } from '#core/plan';
import { notYet } from '#store/negative-cache';
import type { Audit } from '#store/auditing';
import { openLiveValue } from '#store/live-value';
import type { Access, Store } from '#store/open';
import { isDuplicate } from '#store/sql-error';
import { areNone } from '../callers.ts';
import type { LimitsChange } from '../plan-limits.ts';
import type { PlanNames } from '../plan-names.ts';
import { shownColumns, type ApiKey } from '../api-key.ts';

export interface Team {
  readonly id: number;
  readonly name: string;
  readonly plan: string;
  /** Ids of users. */
  readonly members: readonly number[];
  /** Ids of the users who say who its members are, and see their keys and what is charged to it. */
  readonly admins: readonly number[];
  /** Of the team's own: they stand above those of the plan. */
  readonly limits: Plan;
}

/** A limit that is null is the plan's again. */
export interface TeamChange extends Partial<Pick<Team, 'name' | 'plan' | 'members' | 'admins'>> {
  readonly limits?: LimitsChange;
}

/** Users whose spending counts together as well. */
export interface Teams {
  /**
   * The name of a team's plan, at once, from memory. A team that is gone keeps its plan for the calls that began before.
   * @throws Fault `overloaded` where another process may have made the team a moment ago: the database is being asked
   */
  planOf(id: number): string;
  /** The team's own limits, where it has any; what is damaged is given as it is. */
  limitsOf(id: number): Plan | undefined;
  /** As a refusal names it; undefined where it is not known. */
  limited(id: number): LimitedTeam | undefined;
  /** Makes sure that `planOf` knows these. @throws Fault `overloaded` while the database is away */
  meet(ids: readonly number[]): Promise<void>;
  find(id: number): Promise<Team | undefined>;
  /** The team, for one of its administrators. */
  ofAdmin(id: number, userId: number): Promise<Team | undefined>;
  /** The keys of its members that were not revoked, by id, those behind `after`. */
  keys(id: number, asked: { after: number; limit: number }): Promise<readonly ApiKey[]>;
  /** By id, those behind `after`. */
  list(asked: { after: number; limit: number }): Promise<readonly Team[]>;
  /** @throws Fault `conflict` when the name is taken, `invalid` naming a member that is no user */
  add(team: Omit<Team, 'id'>, by: Actor): Promise<Team>;
  /** @throws as `add` */
  change(id: number, change: TeamChange, by: Actor): Promise<Team | undefined>;
  remove(id: number, by: Actor): Promise<Team | undefined>;
  close(): void;
}

export interface TeamsDeps {
  readonly store: Store;
  readonly audit: Audit;
  readonly clock: Clock;
  readonly plans: PlanNames;
  /** Told after each change, when `planOf` knows of it: who is in which team may be another now. */
  readonly changed: () => void;
}

async function read({ db }: Access, where: RawBuilder<unknown>): Promise<readonly Team[]> {
  const { rows } = await sql<Team>`
    select id, name, plan, limits, array(select user_id from team_members where team_id = teams.id order by user_id) as members,
      array(select user_id from team_admins where team_id = teams.id order by user_id) as admins
    from teams where ${where}`.execute(db);
  return rows;
}

const one = async (access: Access, id: number, lock = sql``): Promise<Team | undefined> => (await read(access, sql`id = ${id} ${lock}`))[0];

export async function openTeams({ store, audit, clock, plans: { requirePlan }, changed }: TeamsDeps): Promise<Teams> {
  const target = (id: number) => ({ kind: 'team', id });
  const plans = await openLiveValue({ store, topic: 'teams', clock, read: (before?: ReadonlyMap<number, LimitedTeam>) => readPlans(store, before), changed });

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
      const team = plans.value.get(id);
      if (team !== undefined) return team.plan;
      void plans.again();
      throw notYet();
    },
    limitsOf: (id) => plans.value.get(id)?.limits,
    limited: (id) => plans.value.get(id),
    async meet(ids) {
      if (ids.some((id) => !plans.value.has(id)) && !(await plans.again())) throw notYet();
    },
    find: (id) => one(store, id),
    ofAdmin: (id, userId) => one(store, id, sql`and exists (select from team_admins where team_id = teams.id and user_id = ${userId})`),
    keys: (id, asked) => memberKeys(store, id, asked),
    list: ({ after, limit }) => read(store, sql`id > ${after} order by id limit ${limit}`),
    add: ({ name, plan, members, admins, limits }, by) =>
      written(async (inside) => {
        await requirePlan(inside, plan);
        const { rows } = await sql<{ id: number }>`
          insert into teams (name, plan, limits) values (${name}, ${plan}, ${JSON.stringify(limits)}::jsonb) returning id`.execute(inside.db);
        const { id } = rows[0]!;
        await setUsers(inside, 'members', id, members);
        await setUsers(inside, 'admins', id, admins);
        const after = (await one(inside, id))!;
        await audit(inside, { by, action: 'team.add', target: target(id), after });
        return after;
      }),
    change: (id, { name, plan, members, admins, limits = {} }, by) =>
      written(async (inside) => {
        if (plan !== undefined) await requirePlan(inside, plan);
        await sql`select from teams where id = ${id} for update`.execute(inside.db);
        const before = await one(inside, id);
        if (!before) return undefined;
        await sql`
          update teams set name = ${name ?? before.name}, plan = ${plan ?? before.plan}, limits = jsonb_strip_nulls(limits || ${JSON.stringify(limits)}::jsonb)
          where id = ${id}`.execute(inside.db);
        if (members) await setUsers(inside, 'members', id, members);
        if (admins) await setUsers(inside, 'admins', id, admins);
        const after = (await one(inside, id))!;
        await audit(inside, { by, action: 'team.change', target: target(id), before, after });
        return after;
      }),
    remove: (id, by) =>
      written(async (inside) => {
        const before = await one(inside, id, sql`for update`);
        if (!before) return undefined;
        await sql`delete from teams where id = ${id}`.execute(inside.db);
        await audit(inside, { by, action: 'team.delete', target: target(id), before });
        return before;
      }),
    close: () => plans.close(),
  };
}

async function readPlans({ db }: Store, before: ReadonlyMap<number, LimitedTeam> = new Map()): Promise<ReadonlyMap<number, LimitedTeam>> {
  const { rows } = await sql<Pick<Team, 'id' | 'name' | 'plan' | 'limits'>>`select id, name, plan, limits from teams`.execute(db);
  return new Map([...before, ...rows.map(({ id, limits, ...team }) => [id, { ...team, limits: areNone(limits) ? undefined : limits }] as const)]);
}

async function memberKeys({ db }: Access, teamId: number, { after, limit }: { after: number; limit: number }): Promise<readonly ApiKey[]> {
  const { rows } = await sql<ApiKey>`
    select ${shownColumns} from api_keys
    where user_id in (select user_id from team_members where team_id = ${teamId}) and revoked_at is null and id > ${after}
    order by id limit ${limit}`.execute(db);
  return rows;
}

async function setUsers({ db }: Access, which: 'members' | 'admins', id: number, users: readonly number[]): Promise<void> {
  const { rows } = await sql<{ id: number }>`
    select id from users where id = any(${users}::bigint[]) and removed_at is null order by id for key share`.execute(db);
  const known = new Set(rows.map((row) => row.id));
  const at = users.findIndex((user) => !known.has(user));
  if (at >= 0) throw invalid(`${which}[${at}]`, `must be the id of a user: there is no user ${users[at]}`);
  const table = sql.table(`team_${which}`);
  await sql`delete from ${table} where team_id = ${id} and user_id <> all(${users}::bigint[])`.execute(db);
  await sql`insert into ${table} (team_id, user_id) select ${id}, unnest(${[...known]}::bigint[]) on conflict do nothing`.execute(db);
}

/** The ids of users who are named by id or by e-mail address. @throws Fault `invalid` naming one that is no user */
export async function usersNamed({ db }: Access, named: readonly (number | string)[], field: string): Promise<readonly number[]> {
  const addresses = named.filter((one) => typeof one === 'string').map((one) => one.toLowerCase());
  const { rows } = await sql<{ id: number; email: string }>`
    select id, lower(email) as email from users where lower(email) = any(${addresses}::text[]) and removed_at is null`.execute(db);
  const ids = new Map(rows.map(({ id, email }) => [email, id]));
  return named.map((one, at) => {
    const id = typeof one === 'number' ? one : ids.get(one.toLowerCase());
    if (id === undefined) throw invalid(`${field}[${at}]`, 'must be the id or the e-mail address of a user');
    return id;
  });
}

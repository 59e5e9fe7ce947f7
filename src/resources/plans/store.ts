import { sql } from 'kysely';
import type { Clock } from '#kit/async/clock';
import type { Actor } from '#core/audit';
import { Fault } from '#core/fault';
import { areLimits, type Plan } from '#core/plan';
import { openNegativeCache, notYet } from '#store/negative-cache';
import type { Audit } from '#store/auditing';
import { openLiveValue } from '#store/live-value';
import type { Access, Store } from '#store/open';

/** Where a plan stands: the settings file stands above the database, and both above what is built in. */
export type PlanSource = 'settings' | 'database' | 'built-in';

export interface Plans {
  /** At once, from memory. */
  find(name: string): Plan | undefined;
  /** The same for somebody who has this plan. @throws Fault `overloaded` where another process may have made it a moment ago: the database is being asked */
  of(name: string): Plan | undefined;
  /** Makes sure that `of` knows. @throws Fault `overloaded` while the database is away */
  meet(name: string): Promise<void>;
  /** Is there one, and does it stay until the transaction ends? Asks the database, since another process may just have made or deleted it. */
  hold(inside: Access, name: string): Promise<boolean>;
  list(): readonly { readonly name: string; readonly source: PlanSource; readonly plan: Plan }[];
  /** Makes or replaces one; it holds when this resolves. @throws Fault `conflict` where the plan is not the database's */
  put(name: string, plan: Plan, by: Actor): Promise<void>;
  /** Deletes one that nobody has. @returns what it allowed. @throws Fault `conflict` for one in use, or not the database's; `not-found` */
  remove(name: string, by: Actor): Promise<Plan>;
  /** Those that somebody has and that are not there: a hundred at most. */
  missing(): Promise<readonly MissingPlan[]>;
  close(): void;
}

export interface MissingPlan {
  readonly name: string;
  readonly users: number;
  readonly teams: number;
}

/** The first user's plan needs no entry. */
const unlimited = 'unlimited';

export interface PlansDeps {
  readonly store: Store;
  readonly audit: Audit;
  readonly clock: Clock;
  /** The plans that the settings name; has no prototype. */
  readonly fromSettings: () => Readonly<Record<string, Plan>>;
  readonly newUserPlan: () => string;
}

export async function openPlans({ store, audit, clock, fromSettings, newUserPlan }: PlansDeps): Promise<Plans> {
  const read = async (before: ReadonlyMap<string, Plan> = new Map()) => {
    const { rows } = await sql<{ name: string; limits: Plan }>`select name, limits from plans`.execute(store.db);
    const plans = new Map(rows.filter(({ limits }) => areLimits(limits)).map(({ name, limits }) => [name, limits]));
    for (const name of before.keys()) if (!plans.has(name)) absent.note(name);
    return plans;
  };
  const absent = openNegativeCache(clock, () => stored.again());
  const stored = await openLiveValue({ store, topic: 'plans', clock, read });
  const find = (name: string) => fromSettings()[name] ?? stored.value.get(name) ?? (name === unlimited ? {} : undefined);
  const refuseForeign = (name: string) => {
    if (fromSettings()[name]) throw new Fault('conflict', 'This plan is defined in the settings file: change it there.');
    if (name === unlimited) throw new Fault('conflict', 'The plan "unlimited" is built in: only the settings file can redefine it.');
  };
  return {
    find,
    of(name) {
      const plan = find(name);
      if (plan === undefined && !absent.isCertain(name)) throw notYet();
      return plan;
    },
    async meet(name) {
      if (find(name) === undefined) await absent.ask(name);
    },
    async hold({ db }, name) {
      if (fromSettings()[name] || name === unlimited) return true;
      const { rows } = await sql<{ limits: unknown }>`select limits from plans where name = ${name} for key share`.execute(db);
      return rows.some(({ limits }) => areLimits(limits));
    },
    list() {
      const settings = fromSettings();
      const sources = new Map<string, PlanSource>([[unlimited, 'built-in']]);
      for (const name of stored.value.keys()) sources.set(name, 'database');
      for (const name of Object.keys(settings)) sources.set(name, 'settings');
      return Array.from(sources, ([name, source]) => ({ name, source, plan: settings[name] ?? stored.value.get(name) ?? {} })).toSorted((a, b) =>
        a.name < b.name ? -1 : 1,
      );
    },
    async remove(name, by) {
      refuseForeign(name);
      if (newUserPlan() === name) throw new Fault('conflict', 'This plan is that of new users: change newUsers.plan in the settings first.');
      const gone = await store.transaction(async (inside) => {
        const [found] = (await sql<{ limits: Plan }>`delete from plans where name = ${name} returning limits`.execute(inside.db)).rows;
        if (!found) throw new Fault('not-found', 'There is no such plan.');
        const { rows } = await sql<{ users: number; teams: number }>`
          select (select count(*) from users where plan = ${name} and removed_at is null)::int as users,
            (select count(*) from teams where plan = ${name})::int as teams`.execute(inside.db);
        const { users, teams } = rows[0]!;
        if (users + teams > 0) throw new Fault('conflict', `This plan is in use (users: ${users}, teams: ${teams}): give them another one first.`);
        await audit(inside, { by, action: 'plan.delete', target: { kind: 'plan', id: name }, before: found.limits });
        await inside.publish('plans', null);
        return found.limits;
      });
      await stored.upToDate();
      return gone;
    },
    missing: () => missingIn(store, [unlimited, ...stored.value.keys(), ...Object.keys(fromSettings())]),
    async put(name, plan, by) {
      refuseForeign(name);
      await store.transaction(async (inside) => {
        const { rows } = await sql<{ limits: Plan }>`select limits from plans where name = ${name} for update`.execute(inside.db);
        await sql`
          insert into plans (name, limits) values (${name}, ${JSON.stringify(plan)}::jsonb)
          on conflict (name) do update set limits = excluded.limits, changed_at = now()`.execute(inside.db);
        await audit(inside, { by, action: 'plan.put', target: { kind: 'plan', id: name }, before: rows[0]?.limits, after: plan });
        await inside.publish('plans', null);
      });
      await stored.upToDate();
    },
    close: () => stored.close(),
  };
}

/** @param known all plans that there are */
async function missingIn({ db }: Pick<Store, 'db'>, known: readonly string[]): Promise<readonly MissingPlan[]> {
  const { rows } = await sql<MissingPlan>`
    select plan as name, count(*) filter (where kind = 'user')::int as users, count(*) filter (where kind = 'team')::int as teams
    from (select plan, 'user' as kind from users where removed_at is null union all select plan, 'team' from teams) as owners
    where plan <> all (${known}::text[]) group by plan order by plan limit 100`.execute(db);
  return rows;
}

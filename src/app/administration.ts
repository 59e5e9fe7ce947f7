import type { Settings } from '#config/index';
import type { Database } from './database.ts';
import type { NounRoute } from '#http/noun-route';
import type { Clock } from '#kit/async/clock';
import type { Caller } from '#core/context';
import { planNamesOf } from '#core/plan-names';
import { areLimits, type Plan } from '#core/plan';
import { apiKeyRoutes } from '#resources/api-keys/routes';
import { auditRoutes } from '#resources/audit/routes';
import { audit } from '#resources/audit/store';
import { lessonRoutes } from '#resources/lessons/routes';
import { openLessons, type LessonStore } from '#resources/lessons/store';
import { planRoutes } from '#resources/plans/routes';
import { openPlans } from '#resources/plans/store';
import { teamRoutes } from '#resources/teams/routes';
import { openTeams } from '#resources/teams/store';
import { holderRoutes } from '#resources/usage/holder-routes';
import { openHolders } from '#resources/usage/holders';
import { openLogs } from '#resources/usage/logs';
import { openSums } from '#resources/usage/sums';
import { usageRoutes } from '#resources/usage/routes';
import { askForRemoval } from '#resources/users/removal';
import { userRoutes } from '#resources/users/routes';
import { databaseNow } from '#store/database-clock';
import { jobs } from '#store/jobs';
import { version } from './version.ts';

/** Users, keys, teams and plans: what the ledger asks about them, and what administrators change. */
export interface Administration {
  readonly routes: readonly NounRoute[];
  /** What was learned from refusals of providers. */
  readonly lessons: LessonStore;
  /** The caller's plan with the user's own limits; `undefined`, which allows nothing, for a plan that does not exist. @throws Fault `overloaded` for one that is not in memory yet */
  planOf(caller: Caller): Plan | undefined;
  teamPlan(teamId: number): Plan | undefined;
  /** The residency lists that the caller's calls must not leave, from the plans of the user and of the teams; `undefined` where there is none. */
  residencies(caller: Caller): readonly string[] | undefined;
  /** Makes sure that the plans and teams of a caller are in memory: another process may have just made them. @throws Fault `overloaded` */
  meets(caller: Caller): Promise<void>;
  close(): void;
}

export interface AdministrationDeps {
  readonly database: Database;
  readonly settings: () => Settings;
  readonly clock: Clock;
  /** Called when the members of teams may have changed. */
  readonly teamsChanged: () => void;
  readonly log: (problem: string, cause: unknown) => void;
}

export async function openAdministration({ database, settings, clock, teamsChanged, log }: AdministrationDeps): Promise<Administration> {
  const { store, pepper } = database;
  const plans = await openPlans({ store, audit, clock, fromSettings: () => settings().plans });
  const teams = await openTeams({ store, audit, clock, changed: teamsChanged });
  const lessons = await openLessons({ store, audit, clock, version, log });
  const planNames = planNamesOf(plans);
  const teamPlan = (teamId: number) => plans.of(teams.planOf(teamId));
  return {
    routes: [
      ...userRoutes({
        store,
        audit,
        removal: (userId, inside) => askForRemoval(jobs({ store, clock }), userId, inside),
        plans: planNames,
        newUserPlan: () => settings().newUsers.plan,
      }),
      ...apiKeyRoutes({ store, audit, pepper }),
      ...teamRoutes(teams, planNames),
      ...planRoutes(plans, (name) => Object.values(settings().providers).some(({ residency }) => Object.hasOwn(residency, name))),
      ...usageRoutes({ ...openSums(store), ...openLogs(store) }, () => databaseNow(store.db)),
      ...holderRoutes(openHolders(store), audit),
      ...auditRoutes(store),
      ...lessonRoutes(lessons),
    ],
    lessons,
    planOf({ plan: name, limits }) {
      const plan = plans.of(name);
      if (!plan || limits === undefined) return plan;
      return areLimits(limits) ? { ...plan, ...limits } : undefined;
    },
    teamPlan,
    residencies({ plan, teamIds }) {
      let lists: string[] | undefined;
      const own = plans.of(plan)?.residency;
      if (own !== undefined) lists = [own];
      for (const team of teamIds) {
        const list = teamPlan(team)?.residency;
        if (list !== undefined) lists = [...(lists ?? []), list];
      }
      return lists;
    },
    async meets({ plan, teamIds }) {
      await teams.meet(teamIds);
      for (const name of [plan, ...teamIds.map(teams.planOf)]) await plans.meet(name);
    },
    close() {
      plans.close();
      lessons.close();
      teams.close();
    },
  };
}

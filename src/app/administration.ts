import type { Settings } from '#config/index';
import { sharedTables, type Database } from './database.ts';
import type { NounRoute } from '#http/noun-route';
import type { Clock } from '#kit/async/clock';
import type { AuditEvent } from '#core/audit';
import type { Caller } from '#core/context';
import { planNamesOf } from '#resources/plan-names';
import { areLimits, type LimitedTeam, type Plan } from '#core/plan';
import { openKeyKeeping, type KeyKeeping } from '#resources/api-keys/keeping';
import { apiKeyRoutes } from '#resources/api-keys/routes';
import { auditRoutes } from '#resources/audit/routes';
import { audit } from '#resources/audit/store';
import { lessonRoutes } from '#resources/lessons/routes';
import { openLessons, type LessonStore } from '#resources/lessons/store';
import { planRoutes } from '#resources/plans/routes';
import { openPlans, type Plans } from '#resources/plans/store';
import type { Passwords } from '#resources/passwords';
import type { LoggedRequest, PromptStore } from '#resources/prompt-log/store';
import { teamRoutes } from '#resources/teams/routes';
import { administered, ownTeamRoutes } from '#resources/teams/own-routes';
import { openTeams } from '#resources/teams/store';
import { holderRoutes } from '#resources/usage/holder-routes';
import { openHolders, type Holders } from '#resources/usage/holders';
import { openLogs } from '#resources/usage/logs';
import { openSums } from '#resources/usage/sums';
import { allUsage, ownUsage, usageRoutes, type UsagePlace } from '#resources/usage/routes';
import { askForRemoval, unshare } from '#resources/users/removal';
import { userRoutes } from '#resources/users/routes';
import { databaseNow } from '#store/database-clock';
import type { Access } from '#store/open';
import { jobs } from '#store/jobs';
import { version } from './version.ts';

/** Users, keys, teams and plans: what the ledger asks about them, and what administrators change. */
export interface Administration {
  readonly routes: readonly NounRoute[];
  /** Keys of users, for themselves. */
  readonly keys: KeyKeeping;
  /** What was learned from refusals of providers. */
  readonly lessons: LessonStore;
  readonly holders: Holders;
  readonly plans: Pick<Plans, 'missing'>;
  /** The caller's plan with the user's own limits; `undefined`, which allows nothing, for a plan that does not exist. @throws Fault `overloaded` for one that is not in memory yet */
  planOf(caller: Pick<Caller, 'plan' | 'limits'>): Plan | undefined;
  /** A team's plan with the team's own limits; otherwise as `planOf`. */
  teamPlan(teamId: number): Plan | undefined;
  /** As refusals name it; undefined where it is not known. */
  teamOf(teamId: number): LimitedTeam | undefined;
  /** The lists of the only models that there are for the caller, of the user and of the teams; `undefined` where nothing limits them. */
  modelLists(caller: Caller): readonly ModelNames[] | undefined;
  /** What users may do under `/server/mine`. */
  readonly own: readonly NounRoute[];
  /** The residency lists that the caller's calls must not leave, from the plans of the user and of the teams; `undefined` where there is none. */
  residencies(caller: Caller): readonly string[] | undefined;
  /** Makes sure that the plans and teams of a caller are in memory: another process may have just made them. @throws Fault `overloaded` */
  meets(caller: Caller): Promise<void>;
  close(): void;
}

export interface ModelNames {
  readonly models: readonly string[];
}

export interface AdministrationDeps {
  readonly database: Database;
  readonly settings: () => Settings;
  readonly clock: Clock;
  readonly passwords: Passwords;
  readonly prompts: Pick<PromptStore, 'find'>;
  /** Called when the members of teams may have changed. */
  readonly teamsChanged: () => void;
  readonly log: (problem: string, cause: unknown) => void;
}

export async function openAdministration({ database, settings, clock, passwords, prompts, teamsChanged, log }: AdministrationDeps): Promise<Administration> {
  const { store, pepper } = database;
  const plans = await openPlans({ store, audit, clock, fromSettings: () => settings().plans, newUserPlan: () => settings().newUsers.plan });
  const planNames = planNamesOf(plans);
  const teams = await openTeams({ store, audit, clock, plans: planNames, changed: teamsChanged });
  const holders = openHolders(store);
  const lessons = await openLessons({ store, audit, clock, version, log });
  const keys = openKeyKeeping({ store, audit, pepper });
  const reading = { ...openSums(store), ...openLogs(store) };
  const timeNow = () => databaseNow(store.db);
  const administratorsText = textForAdministrators(prompts, (event) => audit(store, event));
  const teamPlan = (teamId: number) => withOwn(plans.of(teams.planOf(teamId)), teams.limitsOf(teamId));
  const planOf = ({ plan, limits }: Pick<Caller, 'plan' | 'limits'>) => withOwn(plans.of(plan), limits);
  return {
    routes: [
      ...userRoutes({
        store,
        audit,
        passwords,
        removal: removalOf(database, clock),
        plans: planNames,
        newUserPlan: () => settings().newUsers.plan,
      }),
      ...apiKeyRoutes(keys),
      ...teamRoutes(teams),
      ...planRoutes(plans, (name) => Object.values(settings().providers).some(({ residency }) => Object.hasOwn(residency, name))),
      ...usageRoutes(reading, timeNow, { ...allUsage, textOf: administratorsText }),
      ...holderRoutes(holders, audit),
      ...auditRoutes(store),
      ...lessonRoutes(lessons),
    ],
    keys,
    lessons,
    holders,
    plans,
    planOf,
    teamOf: teams.limited,
    modelLists(caller) {
      let lists: ModelNames[] | undefined;
      const add = (limits: Plan | undefined) => {
        if (limits?.models !== undefined) (lists ??= []).push({ models: namesIn(limits.models) });
      };
      add(planOf(caller));
      for (const team of caller.teamIds) add(teamPlan(team));
      return lists;
    },
    own: [
      ...ownTeamRoutes(teams, store),
      ...usageRoutes(reading, timeNow, {
        ...ownUsage,
        textOf: (request, caller, by) => (request.userId === caller.userId ? textOf(prompts, request, false) : administratorsText(request, caller, by)),
      }),
      ...usageRoutes(reading, timeNow, {
        ...ownUsage,
        takesOwner: false,
        root: '/server/mine/teams/:id',
        within: async ({ userId }, params) => ({ team: (await administered(teams, params, userId)).id }),
      }),
    ],
    teamPlan,
    residencies({ plan, teamIds }) {
      let lists: string[] | undefined;
      const add = (list: string | undefined) => {
        if (list !== undefined) (lists ??= []).push(list);
      };
      add(plans.of(plan)?.residency);
      for (const team of teamIds) add(teamPlan(team)?.residency);
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

async function textOf(prompts: Pick<PromptStore, 'find'>, request: LoggedRequest, forAdministrators: boolean) {
  const found = await prompts.find(request, forAdministrators);
  return found && { prompt: found.prompt, response: found.answer };
}

/** What administrators may see of it, and auditors never: each look is in the audit trail. */
const textForAdministrators =
  (prompts: Pick<PromptStore, 'find'>, looked: (event: AuditEvent) => Promise<void>): NonNullable<UsagePlace['textOf']> =>
  async (request, { role }, by) => {
    if (role !== 'admin') return undefined;
    const text = await textOf(prompts, request, true);
    if (text) await looked({ by, action: 'prompts.read', target: { kind: 'request', id: request.requestId } });
    return text;
  };

/** A plan with limits of one's own above its own; what is damaged allows nothing. */
function withOwn(plan: Plan | undefined, own: Plan | undefined): Plan | undefined {
  if (!plan || own === undefined) return plan;
  return areLimits(own) ? { ...plan, ...own } : undefined;
}

/** The names in a list out of the database: of one that is damaged, none. */
const namesIn = (models: unknown): readonly string[] => (Array.isArray(models) ? models.filter((name) => typeof name === 'string') : []);

/** Of a user who was deleted: what they shared is nobody else's at once, and a job removes what is left. */
const removalOf =
  ({ store }: Database, clock: Clock) =>
  async (userId: number, inside: Access): Promise<void> => {
    await unshare(inside, sharedTables, userId);
    await askForRemoval(jobs({ store, clock }), userId, inside);
  };

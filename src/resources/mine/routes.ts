import { Type } from 'typebox';
import type { Caller } from '#core/context';
import type { Plan } from '#core/plan';
import { nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { closed, nullable } from '#http/schemas';
import { databaseNow } from '#store/database-clock';
import type { Store } from '#store/open';
import { ownerOf, ownerQuery } from '../owner.ts';
import { balancesOf, profileOf, type Limited, type Profile, type Reading } from './store.ts';

export interface MineDeps extends Reading {
  readonly store: Store;
  /** What holds of a plan with limits of one's own; nothing for a plan that is not there. */
  readonly limitsOf: (user: Pick<Caller, 'plan' | 'limits'>) => Plan | undefined;
  readonly teamLimits: (teamId: number) => Plan | undefined;
  readonly modelNames: (caller: Caller) => readonly string[];
  /** The datasets that the caller may use, in the words of the native interface. */
  readonly datasetsOf: (caller: Caller) => Promise<readonly object[]>;
}

export const whoami = {
  id: Type.Integer(),
  email: Type.String(),
  role: Type.String(),
  plan: Type.String(),
  status: Type.String(),
  scopes: nullable(Type.Array(Type.String()), { description: 'Of the credential; null: it may do everything.' }),
  teams: Type.Array(Type.Object({ id: Type.Integer(), name: Type.String(), admin: Type.Boolean() })),
  balances: Type.Array(
    Type.Object({
      owner: Type.String({ description: '`user:1`, `team:2` or `key:3`.' }),
      limit: Type.String(),
      model: nullable(Type.String()),
      of: Type.Number(),
      used: Type.Number(),
      left: Type.Number(),
      resetsAt: nullable(Type.String({ description: 'Null for limits of a minute, which count the last 60 seconds, of streams and of storage.' })),
    }),
  ),
};

/** Who asks, with what, and what is left. */
export function mineRoutes(deps: MineDeps): readonly NounRoute[] {
  const common = { scope: 'any', owner: 'caller' } as const;
  return [
    nounRoute('GET', '/server/mine', {
      ...common,
      summary: 'Who you are, and what is left of your limits; for administrators also of another user.',
      query: closed(ownerQuery),
      output: Type.Object(whoami),
      answer: ({ caller, query }) => described(deps, caller, ownerOf(caller, query)),
    }),
  ];
}

const FullUser = Type.Object({
  id: Type.Integer(),
  email: Type.String(),
  max_tokens: Type.Integer({ description: 'Plan tokens of inference in a month.' }),
  max_train_tokens: Type.Integer(),
  force_models: Type.Array(Type.String()),
  enabled_models: Type.Array(Type.String(), { description: 'Names of the models that the caller may ask.' }),
  token_scopes: nullable(Type.String({ description: 'Of the credential, with commas between them.' })),
  plan_type: Type.String(),
  paid: Type.Boolean(),
  role: Type.String(),
  type: Type.String(),
  datasets_with_permissions: Type.Array(Type.Object({}), { description: 'As /user/get-datasets-with-permissions gives them.' }),
  persona_source_list: Type.Array(Type.Unknown()),
  plugin_source_list: Type.Array(Type.Unknown()),
  custom_intro_prompt: Type.String(),
});

/** The same in the words of the native interface. */
export function nativeUserRoutes({ limitsOf, modelNames, datasetsOf }: Pick<MineDeps, 'limitsOf' | 'modelNames' | 'datasetsOf'>): readonly NounRoute[] {
  return [
    nounRoute('POST', '/user/validate_token_with_full_user', {
      scope: 'any',
      owner: 'caller',
      summary: 'Who you are, with your monthly limits and the models that you may ask.',
      output: FullUser,
      async answer({ caller }) {
        const { monthlyTokens = unlimited, monthlyTrainTokens = unlimited } = limitsOf(caller) ?? { monthlyTokens: 0, monthlyTrainTokens: 0 };
        return {
          id: caller.userId,
          email: caller.email,
          max_tokens: monthlyTokens,
          max_train_tokens: monthlyTrainTokens,
          force_models: [],
          enabled_models: modelNames(caller),
          token_scopes: caller.scopes?.join(',') ?? null,
          plan_type: caller.plan,
          paid: true,
          role: caller.role,
          type: 'user',
          datasets_with_permissions: await datasetsOf(caller),
          persona_source_list: [],
          plugin_source_list: [],
          custom_intro_prompt: '',
        };
      },
    }),
  ];
}

/** What is said to be left where nothing limits. */
const unlimited = Number.MAX_SAFE_INTEGER;

/** Who it is, and what is left of the limits. @param userId of somebody else, of whom an administrator asks */
export async function described({ store, limitsOf, teamLimits, modelName, usedRoom, runningStreams }: MineDeps, caller: Caller, userId: number) {
  const profile = await profileOf(store, userId);
  if (!profile) throw unknownThing('user');
  const { limits: own, teams, ...user } = profile;
  const limited = limitedOf(profile, limitsOf({ plan: user.plan, limits: own }), teamLimits);
  const isOwn = userId === caller.userId;
  const { keyId, keyLimits } = isOwn ? caller : { keyId: 0 };
  return {
    ...user,
    scopes: (isOwn ? caller.scopes : undefined) ?? null,
    teams: teams.map(({ member: _, ...team }) => team),
    balances: await balancesOf(
      store,
      { userId, keyId, limited: [...limited, ...(keyLimits ? [{ owner: `key:${keyId}` as const, limits: keyLimits }] : [])] },
      await databaseNow(store.db),
      { modelName, usedRoom, runningStreams },
    ),
  };
}

function limitedOf({ id, teams }: Profile, own: Plan | undefined, teamLimits: MineDeps['teamLimits']): readonly Limited[] {
  const of = (owner: Limited['owner'], limits: Plan | undefined) => (limits ? [{ owner, limits }] : []);
  return [...of(`user:${id}`, own), ...teams.filter(({ member }) => member).flatMap((team) => of(`team:${team.id}`, teamLimits(team.id)))];
}

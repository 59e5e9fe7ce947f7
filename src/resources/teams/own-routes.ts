import { Type } from 'typebox';
import { idIn, nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { closed, nullable, shownAs } from '#http/schemas';
import type { Store } from '#store/open';
import { pageById, pageQuery, pageSchema } from '../pagination.ts';
import { optionalLimits } from '../plan-limits.ts';
import { shownTeam, TeamObject } from './routes.ts';
import { usersNamed, type Team, type Teams } from './store.ts';
import type { ApiKey } from '../api-key.ts';

const MembersPatch = closed({
  members: Type.Array(
    Type.Union([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Type.String({ minLength: 3, maxLength: 254, description: 'E-mail address.' })]),
    { maxItems: 10_000, description: 'All members, by their ids or e-mail addresses.' },
  ),
});

const textOrNull = nullable(Type.String());
const namesOrNull = nullable(Type.Array(Type.String()));

const MemberKeyObject = Type.Object({
  ...optionalLimits,
  id: Type.Integer(),
  userId: Type.Integer(),
  name: Type.String(),
  shown: Type.String({ description: 'Its first and last characters.' }),
  scopes: namesOrNull,
  models: namesOrNull,
  mcpTools: namesOrNull,
  createdAt: Type.String(),
  expiresAt: textOrNull,
  lastUsedAt: textOrNull,
});

const root = '/server/mine/teams/:id';
const common = { scope: 'unscoped', owner: 'caller' } as const;

/** Finds a team for one of its administrators. @throws Fault `not-found` for everybody else, as for one that is not there */
export async function administered(teams: Teams, params: Readonly<Record<string, string>>, userId: number): Promise<Team> {
  const team = await teams.ofAdmin(idIn(params, 'id', 'team'), userId);
  if (!team) throw unknownThing('team');
  return team;
}

/** A team, for its own administrators. */
export function ownTeamRoutes(teams: Teams, store: Store): readonly NounRoute[] {
  return [
    nounRoute('GET', root, {
      ...common,
      summary: 'A team that you administer.',
      output: TeamObject,
      answer: async ({ caller, params }) => shownTeam(await administered(teams, params, caller.userId)),
    }),
    nounRoute('PATCH', root, {
      ...common,
      summary: 'Says who the members are of a team that you administer.',
      input: MembersPatch,
      output: TeamObject,
      async answer({ caller, by, params, input }) {
        const { id } = await administered(teams, params, caller.userId);
        const changed = await teams.change(id, { members: [...new Set(await usersNamed(store, input.members, 'members'))] }, by);
        if (!changed) throw unknownThing('team');
        return shownTeam(changed);
      },
    }),
    nounRoute('GET', `${root}/keys`, {
      ...common,
      summary: 'The keys of the members of a team that you administer.',
      query: closed(pageQuery),
      output: pageSchema(MemberKeyObject),
      async answer({ caller, params, query }) {
        const { id } = await administered(teams, params, caller.userId);
        return pageById('team-keys', query, (after, limit) => teams.keys(id, { after, limit }), shownKey);
      },
    }),
  ];
}

const keyShown = shownAs(MemberKeyObject);
const shownKey = ({ limits, ...key }: ApiKey) => keyShown({ ...limits, ...key });

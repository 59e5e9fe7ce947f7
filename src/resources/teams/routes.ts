import { Type, type Static } from 'typebox';
import { lineField } from '../text-fields.ts';
import { pageById, pageQuery, pageSchema } from '../pagination.ts';
import { changedLimits, optionalLimits } from '../plan-limits.ts';
import { idIn, nounRoute, unknownThing, type NounRoute } from '#http/noun-route';
import { closed } from '#http/schemas';
import type { Team, Teams } from './store.ts';

const name = lineField(100);
const plan = Type.String({ minLength: 1, maxLength: 64, description: 'The name of a plan.' });
const userId = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const members = Type.Array(userId, { maxItems: 10_000, description: 'Ids of users.' });
const admins = Type.Array(userId, {
  maxItems: 100,
  description: 'Ids of the users who say who its members are, and see their keys and what is charged to it.',
});

const NewTeam = closed({ name, plan, members: Type.Optional(members), admins: Type.Optional(admins), ...optionalLimits });
const TeamPatch = closed({
  name: Type.Optional(name),
  plan: Type.Optional(plan),
  members: Type.Optional(members),
  admins: Type.Optional(admins),
  ...changedLimits,
});
export const TeamObject = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  plan,
  members: Type.Array(Type.Integer()),
  admins: Type.Array(Type.Integer()),
  ...optionalLimits,
});

const root = '/server/admin/teams';
const common = { scope: 'admin', owner: 'admin' } as const;

export function teamRoutes(teams: Teams): readonly NounRoute[] {
  return [
    nounRoute('POST', root, {
      ...common,
      summary: 'Makes a team: what its members spend counts against its plan too.',
      input: NewTeam,
      output: TeamObject,
      makes: true,
      async answer({ by, input }) {
        const { name, plan, members = [], admins = [], ...limits } = input;
        return shownTeam(await teams.add({ name, plan, members, admins, limits }, by));
      },
    }),
    nounRoute('GET', root, {
      ...common,
      summary: 'Lists the teams, oldest first.',
      query: closed(pageQuery),
      output: pageSchema(TeamObject),
      answer: ({ query }) => pageById('teams', query, (after, limit) => teams.list({ after, limit }), shownTeam),
    }),
    nounRoute('GET', `${root}/:id`, {
      ...common,
      summary: 'One team.',
      output: TeamObject,
      answer: async ({ params }) => there(await teams.find(idIn(params, 'id', 'team'))),
    }),
    nounRoute('PATCH', `${root}/:id`, {
      ...common,
      summary: "Changes a team; `members` and `admins` are all of them. A limit stands above the plan's; null gives the plan's back.",
      input: TeamPatch,
      output: TeamObject,
      answer: async ({ by, params, input }) => there(await teams.change(idIn(params, 'id', 'team'), changeOf(input), by)),
    }),
    nounRoute('DELETE', `${root}/:id`, {
      ...common,
      summary: 'Deletes a team; its members stay.',
      output: TeamObject,
      answer: async ({ by, params }) => there(await teams.remove(idIn(params, 'id', 'team'), by)),
    }),
  ];
}

function changeOf({ name, plan, members, admins, ...limits }: Static<typeof TeamPatch>) {
  return { ...(name === undefined ? {} : { name }), ...(plan === undefined ? {} : { plan }), ...(members && { members }), ...(admins && { admins }), limits };
}

export const shownTeam = ({ limits, ...team }: Team) => ({ ...team, ...limits });

function there(team: Team | undefined) {
  if (!team) throw unknownThing('team');
  return shownTeam(team);
}

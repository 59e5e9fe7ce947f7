import { Type } from 'typebox';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { closed } from '#http/schemas';
import { Fault, invalid } from '#core/fault';
import { optionalLimits, optionalStorage } from '../plan-limits.ts';
import type { Plans } from './store.ts';

const residency = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: 200,
    description: 'A list of regions under `residency` of a provider: no other place is ever asked for its users, and no provider without regions.',
  }),
);
const PlanInput = closed({ ...optionalLimits, ...optionalStorage, residency });

const PlanObject = Type.Object({
  name: Type.String(),
  source: Type.Enum(['settings', 'database', 'built-in'], { description: 'Where it stands; only those of the database may be put.' }),
  ...optionalLimits,
  ...optionalStorage,
  residency,
});

const root = '/server/admin/plans';
const common = { scope: 'admin', owner: 'admin' } as const;

/** What users and teams may spend, for administrators. @param hasList is there a provider with a list of regions of this name? */
export function planRoutes(plans: Plans, hasList: (name: string) => boolean): readonly NounRoute[] {
  const all = () => plans.list().map(({ name, source, plan }) => ({ name, source, ...plan }));
  return [
    nounRoute('GET', root, {
      ...common,
      summary: 'Lists the plans, those of the settings file too.',
      output: Type.Object({ items: Type.Array(PlanObject) }),
      answer: () => ({ items: all() }),
    }),
    nounRoute('PUT', `${root}/:name`, {
      ...common,
      summary: 'Makes or replaces a plan. A member left out is no limit of that kind, 0 allows nothing.',
      input: PlanInput,
      output: PlanObject,
      async answer({ by, params: { name = '' }, input }) {
        if (!/^[a-z0-9][a-z0-9._-]{0,63}$/i.test(name))
          throw new Fault('invalid', 'The name of a plan has at most 64 letters, digits, ".", "_" and "-".', { field: 'name' });
        if (input.residency !== undefined && !hasList(input.residency)) throw invalid('residency', 'must name a residency list of a provider');
        await plans.put(name, input, by);
        return { name, source: 'database', ...input };
      },
    }),
    nounRoute('DELETE', `${root}/:name`, {
      ...common,
      summary: 'Deletes a plan that no user and no team has.',
      output: PlanObject,
      answer: async ({ by, params: { name = '' } }) => ({ name, source: 'database', ...(await plans.remove(name, by)) }),
    }),
  ];
}

import { Type } from 'typebox';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { Fault } from '#model/fault';
import { optionalLimits } from '#model/limits';
import type { Plans } from './store.ts';

const PlanInput = Type.Object(optionalLimits, { additionalProperties: false });

const PlanObject = Type.Object({
  name: Type.String(),
  source: Type.Enum(['settings', 'database', 'built-in'], { description: 'Where it stands; only those of the database may be put.' }),
  ...optionalLimits,
});

const root = '/server/admin/plans';
const common = { scope: 'admin', owner: 'admin' } as const;

/** What users and teams may spend, for administrators. */
export function planRoutes(plans: Plans): readonly NounRoute[] {
  const all = () => plans.list().map(({ name, source, plan }) => ({ name, source, ...plan }));
  return [
    nounRoute({
      ...common,
      method: 'GET',
      path: root,
      summary: 'Lists the plans, those of the settings file too.',
      output: Type.Object({ items: Type.Array(PlanObject) }),
      answer: () => ({ items: all() }),
    }),
    nounRoute({
      ...common,
      method: 'PUT',
      path: `${root}/:name`,
      summary: 'Makes or replaces a plan. A member left out is no limit of that kind, 0 allows nothing.',
      input: PlanInput,
      output: PlanObject,
      async answer({ by, params: { name = '' }, input }) {
        if (!/^[a-z0-9][a-z0-9._-]{0,63}$/i.test(name))
          throw new Fault('invalid', 'The name of a plan has at most 64 letters, digits, ".", "_" and "-".', { field: 'name' });
        await plans.put(name, input, by);
        return { name, source: 'database', ...input };
      },
    }),
  ];
}

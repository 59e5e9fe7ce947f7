import { Type } from 'typebox';
import type { Check } from './check.ts';
import { examineAll, type DoctorDeps } from './doctor.ts';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { nullable } from '#http/schemas';

const CheckObject = Type.Object({
  name: Type.String({ description: 'database, provider openai, region us-east1 of platform, …' }),
  state: Type.Enum(['ok', 'warning', 'failed', 'skipped']),
  says: Type.String(),
  milliseconds: nullable(Type.Number(), { description: 'How long the check took, where that is of interest.' }),
});

/** The checks that `dragoman doctor` fetches from a running server. Requests that arrive while they run share one run, so that providers are not probed without end. */
export function doctorRoutes(deps: DoctorDeps): readonly NounRoute[] {
  let running: Promise<readonly Check[]> | undefined;
  return [
    nounRoute({
      scope: 'admin',
      owner: 'admin',
      method: 'GET',
      path: '/server/admin/doctor',
      summary: 'Checks the runtime, database, disk, clock, and every provider and region. Costs nothing.',
      output: Type.Object({ items: Type.Array(CheckObject) }),
      answer: async () => ({ items: await (running ??= examineAll(deps).finally(() => (running = undefined))) }),
    }),
  ];
}

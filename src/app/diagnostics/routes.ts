import { Type } from 'typebox';
import type { Check } from './check.ts';
import { type DoctorDeps, examineAll } from './doctor.ts';
import { nounRoute, type NounRoute } from '#http/noun-route';
import { nullable } from '#http/schemas';
import type { RegionState } from '#gateway/routing/regions';
import type { Actor } from '#core/audit';

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
    nounRoute('GET', '/server/admin/doctor', {
      scope: 'admin',
      owner: 'admin',
      summary: 'Checks the runtime, database, disk, clock, and every provider and region. Costs nothing.',
      output: Type.Object({ items: Type.Array(CheckObject) }),
      answer: async () => ({ items: await (running ??= examineAll(deps).finally(() => (running = undefined))) }),
    }),
  ];
}

const Region = Type.Object({
  provider: Type.String(),
  region: Type.String(),
  model: Type.String({ description: "The provider's name for the model." }),
  state: Type.Enum(['ok', 'cooling', 'absent', 'probing']),
  until: nullable(Type.String(), { description: 'When its cooldown ends, in ISO 8601.' }),
  latencyMs: nullable(Type.Number(), { description: 'Moving average of the time to the first event of an answer, in milliseconds.' }),
  successRate: nullable(Type.Number(), { description: 'Moving average of the share of calls that succeeded, from 0 to 1.' }),
});

/** The state of the regions, as this process or all processes of the machine see it. */
interface Regions {
  readonly regions: () => readonly RegionState[] | Promise<readonly RegionState[]>;
  readonly resetRegions: () => void | Promise<void>;
}

/**
 * The state of the regions, and the end of all cooldowns.
 * @param noted records who ends them in the audit trail, before it is done: what cannot be recorded is not done
 */
export function regionRoutes({ regions, resetRegions }: Regions, noted: (by: Actor) => Promise<void>): readonly NounRoute[] {
  const shared = { scope: 'admin', owner: 'admin', output: Type.Object({ items: Type.Array(Region) }) } as const;
  return [
    nounRoute('GET', '/server/admin/regions', {
      ...shared,
      summary: 'Lists the regions with their state.',
      answer: async () => ({ items: await regions() }),
    }),
    nounRoute('POST', '/server/admin/regions/reset', {
      ...shared,
      summary: 'Ends all cooldowns: every region is tried again.',
      async answer({ by }) {
        await noted(by);
        await resetRegions();
        return { items: await regions() };
      },
    }),
  ];
}

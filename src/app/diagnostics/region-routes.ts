import { Type } from 'typebox';
import type { RegionState } from '#gateway/routing/regions';
import type { Actor } from '#core/audit';
import { nounRoute, type NounRoute } from '#http/noun-route';

const Region = Type.Object({
  provider: Type.String(),
  region: Type.String(),
  model: Type.String({ description: "The model's name upstream." }),
  state: Type.Enum(['ok', 'cooling', 'absent', 'probing']),
  until: Type.Union([Type.String(), Type.Null()], { description: 'When it may be asked again, ISO 8601.' }),
  latencyMs: Type.Union([Type.Number(), Type.Null()], { description: 'Moving average of the time until it speaks.' }),
  successRate: Type.Union([Type.Number(), Type.Null()], { description: 'Moving average of the share of calls that it answered, 0 to 1.' }),
});

/** Who knows how the regions stand: this process, or all of the machine. */
export interface Regions {
  readonly regions: () => readonly RegionState[] | Promise<readonly RegionState[]>;
  readonly resetRegions: () => void | Promise<void>;
}

/**
 * The live state of the regions, and the end of all cooldowns.
 *
 * @param noted who ends them is remembered first: what cannot be remembered is not done
 */
export function regionRoutes({ regions, resetRegions }: Regions, noted: (by: Actor) => Promise<void>): readonly NounRoute[] {
  const shared = { scope: 'admin', owner: 'admin', output: Type.Object({ items: Type.Array(Region) }) } as const;
  return [
    nounRoute({
      ...shared,
      method: 'GET',
      path: '/server/admin/regions',
      summary: 'The regions as they stand.',
      answer: async () => ({ items: await regions() }),
    }),
    nounRoute({
      ...shared,
      method: 'POST',
      path: '/server/admin/regions/reset',
      summary: 'Forgets what ails the regions: all are asked again.',
      async answer({ by }) {
        await noted(by);
        await resetRegions();
        return { items: await regions() };
      },
    }),
  ];
}

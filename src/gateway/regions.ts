import { placesOf } from '#model/target';
import type { Health, TargetState } from './health.ts';
import type { Models } from './resolve.ts';

/** One model in one region of a provider, as it stands at the moment. */
export interface RegionState {
  readonly provider: string;
  readonly region: string;
  /** The model's name upstream. */
  readonly model: string;
  readonly state: TargetState['state'];
  /** When it may be asked again, ISO 8601; null where it may. */
  readonly until: string | null;
  readonly latencyMs: number | null;
  readonly successRate: number | null;
}

/** The live state of every region that a model of the settings can be asked for in. */
export function regionStates(models: Models, health: Health): readonly RegionState[] {
  const places = new Map(models.list().flatMap(({ targets }) => placesOf(targets).map((target) => [target.name, target] as const)));
  return [...places.values()].flatMap((target) => {
    const { provider, region, model } = target;
    if (region === undefined) return [];
    const { state, until, latencyMs = null, successRate = null } = health.state(target);
    return [{ provider, region, model, state, until: until === undefined ? null : new Date(until).toISOString(), latencyMs, successRate }];
  });
}

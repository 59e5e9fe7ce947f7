import { placesOf } from '#core/target';
import type { Health, TargetState } from './health.ts';
import type { Models } from '../rules/resolved.ts';

/** The current state of one model in one region of a provider. */
export interface RegionState {
  readonly provider: string;
  readonly region: string;
  /** The model's name upstream. */
  readonly model: string;
  readonly state: TargetState['state'];
  /** When it may be tried again, ISO 8601; null if it may be tried now. */
  readonly until: string | null;
  readonly latencyMs: number | null;
  readonly successRate: number | null;
}

/** The live state of every region of every configured model. */
export function regionStates(models: Models, health: Health): readonly RegionState[] {
  const places = new Map(models.list().flatMap(({ targets }) => placesOf(targets).map((target) => [target.name, target] as const)));
  return [...places.values()].flatMap((target) => {
    const { provider, region, model } = target;
    if (region === undefined) return [];
    const { state, until, latencyMs = null, successRate = null } = health.state(target);
    return [{ provider, region, model, state, until: until === undefined ? null : new Date(until).toISOString(), latencyMs, successRate }];
  });
}

/** Combines the region states of all processes of a machine: a region is in cooldown if it is in any of them, and averages are over all. */
export function statesTogether(processes: readonly (readonly RegionState[])[]): readonly RegionState[] {
  const places = Map.groupBy(processes.flat(), ({ provider, region, model }) => JSON.stringify([provider, region, model]));
  return [...places.values()].map((states) => {
    const worst = states.toSorted((a, b) => gravity[b.state] - gravity[a.state] || (b.until ?? '').localeCompare(a.until ?? ''))[0]!;
    const latency = mean(states.map(({ latencyMs }) => latencyMs));
    const rate = mean(states.map(({ successRate }) => successRate));
    return { ...worst, latencyMs: latency && Math.round(latency), successRate: rate && Math.round(rate * 1000) / 1000 };
  });
}

const gravity: Readonly<Record<RegionState['state'], number>> = { ok: 0, probing: 1, cooling: 2, absent: 3 };

function mean(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((number) => number !== null);
  return known.length === 0 ? null : known.reduce((sum, number) => sum + number, 0) / known.length;
}

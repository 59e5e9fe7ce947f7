import type { Clock } from '#kit/clock';
import type { Fault } from '#model/fault';
import type { Target, WeightedTarget } from '#model/target';

export interface HealthSettings {
  /** First and longest cooldown; 0 switches cooldowns off. */
  readonly cooldownSeconds: number;
  readonly cooldownMaxSeconds: number;
}

/** What we know of the targets: who is cooling down, who lacks a model. */
export interface Health {
  /** False where cooldowns are switched off. */
  readonly cools: boolean;
  /** The order in which to try: weighted targets by lot first, then the others as listed. */
  drawn(targets: readonly WeightedTarget[]): readonly Target[];
  /** Takes the next to try out of `left`: a sound one, else the one whose cooldown ends first, one call at a time each. */
  next(left: Target[]): Target | undefined;
  succeeded(target: Target): void;
  failed(target: Target, fault: Fault): void;
  /** The call ended without telling anything about the target. */
  released(target: Target): void;
  /** Seconds until the first of these may be asked again. */
  wait(targets: readonly Target[]): number;
}

interface Ailment {
  /** Monotonic milliseconds. */
  until: number;
  failures: number;
  probing: boolean;
}

const absentSeconds = 600;
/** A longer `Retry-After` is not believed. */
const saneSeconds = 300;

export function openHealth(settings: () => HealthSettings, clock: Clock, chance: () => number): Health {
  const cooling = new Map<string, Ailment>();
  const absent = new Map<string, number>();
  const isAbsent = (target: Target) => (absent.get(target.name) ?? 0) > clock.monotonic();

  return {
    get cools() {
      return settings().cooldownSeconds > 0;
    },
    drawn: (targets) => drawn(targets, chance),
    next(left) {
      const present = left.filter((target) => !isAbsent(target));
      const sound = present.find((target) => !cooling.has(target.name));
      const found =
        sound ?? present.filter((target) => !cooling.get(target.name)!.probing).toSorted((a, b) => cooling.get(a.name)!.until - cooling.get(b.name)!.until)[0];
      if (!found) return undefined;
      const due = sound && present.find((target) => left.indexOf(target) < left.indexOf(sound) && isDue(cooling.get(target.name), clock));
      const target = due ?? found;
      const ailment = cooling.get(target.name);
      if (ailment) ailment.probing = true;
      left.splice(left.indexOf(target), 1);
      return target;
    },
    succeeded(target) {
      cooling.delete(target.name);
      absent.delete(target.name);
    },
    failed(target, fault) {
      const { cooldownSeconds, cooldownMaxSeconds } = settings();
      this.released(target);
      if (fault.details.absent) absent.set(target.name, clock.monotonic() + absentSeconds * 1000);
      if (cooldownSeconds === 0 || !fault.details.elsewhere || fault.code === 'upstream-failed') return;
      const failures = (cooling.get(target.name)?.failures ?? 0) + 1;
      const told = fault.details.retryAfter;
      const seconds = told !== undefined && told > 0 && told <= saneSeconds ? told : Math.min(cooldownSeconds * 2 ** (failures - 1), cooldownMaxSeconds);
      const until = Math.max(cooling.get(target.name)?.until ?? 0, clock.monotonic() + seconds * 1000);
      cooling.set(target.name, { until, failures, probing: false });
    },
    released(target) {
      const ailment = cooling.get(target.name);
      if (ailment) ailment.probing = false;
    },
    wait(targets) {
      const now = clock.monotonic();
      const waits = targets.map((target) => Math.max(cooling.get(target.name)?.until ?? 0, absent.get(target.name) ?? 0) - now);
      return Math.max(1, Math.ceil(Math.min(...waits, absentSeconds * 1000) / 1000));
    },
  };
}

/** A cooldown that is over lets one call through; its result decides. */
function isDue(ailment: Ailment | undefined, clock: Clock): boolean {
  return ailment !== undefined && !ailment.probing && ailment.until <= clock.monotonic();
}

function drawn(targets: readonly WeightedTarget[], chance: () => number): readonly Target[] {
  if (targets.length === 1) return [targets[0]!.target];
  const pool = targets.filter(({ weight }) => weight !== undefined);
  const order: Target[] = [];
  while (pool.length > 0) {
    let lot = chance() * pool.reduce((sum, { weight = 0 }) => sum + weight, 0);
    const at = Math.max(
      0,
      pool.findIndex(({ weight = 0 }) => (lot -= weight) < 0),
    );
    order.push(...pool.splice(at, 1).map(({ target }) => target));
  }
  return [...order, ...targets.filter(({ weight }) => weight === undefined).map(({ target }) => target)];
}

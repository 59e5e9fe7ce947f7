import type { Clock } from '#kit/async/clock';
import type { Fault, FaultCode } from '#core/fault';
import type { KeyCooldowns } from '#core/key-cooldowns';
import type { Target, WeightedTarget } from '#core/target';
import { answeringMilliseconds, remember, secondsOf, type CooldownSettings } from './cooldown.ts';
import { openKeyCooldowns } from './key-cooldowns.ts';
import { openLatencyStats } from './latency-stats.ts';
import { ordered } from './order.ts';

/** The health of the targets: their cooldowns, and the models that they lack. */
export interface Health {
  /** False if cooldowns are disabled. */
  readonly cools: boolean;
  /** The keys in cooldown, whose targets are asked with others. */
  readonly keys: KeyCooldowns;
  /**
   * The order in which to try the targets, as a new list: weighted targets first, in random order by weight, then the others as listed. With an affinity
   * (`affinity.ts`) the random order is fixed for the conversation. If there is a choice, outliers come last.
   */
  ordered(targets: readonly WeightedTarget[], affinity?: number): Target[];
  /**
   * Removes the next target to try from `left`: a healthy one, else the one whose cooldown ends first (`mayBeTried`), else one that lacked the model when last
   * asked, which only moves it behind the others.
   */
  next(left: Target[], userId: number): Trial | undefined;
  /** @param milliseconds until its first event with content */
  succeeded(trial: Trial, milliseconds: number): void;
  failed(trial: Trial, fault: Fault): void;
  /** The call ended without a result for the target's health. */
  released(trial: Trial): void;
  /** Seconds until the first of these may be tried again. */
  wait(targets: readonly Target[]): number;
  state(target: Target): TargetState;
  /** Ends all cooldowns of targets and keys, and forgets missing models. */
  reset(): void;
}

export interface TargetState {
  readonly state: 'ok' | 'cooling' | 'absent' | 'probing';
  /** When it may be tried again: milliseconds since 1970. */
  readonly until?: number;
  /** Moving averages: milliseconds until the first event with content, and the share of successful calls, 0 to 1. Absent before the first call. */
  readonly latencyMs?: number;
  readonly successRate?: number;
}

/** A target that was well cools down, or one that cooled down answers again. */
export type HealthChange = { readonly target: Target } & (
  | { readonly type: 'cooling'; readonly seconds: number; readonly fault: Fault }
  | { readonly type: 'back' }
);

/** One attempt of a call at a target. */
export interface Trial {
  readonly target: Target;
  readonly userId: number;
  /** The state of the target when the attempt started: this attempt shows whether it still holds. */
  readonly probed?: Cooldown;
}

interface Cooldown {
  /** The time of the first of these failures, and the end of the cooldown: monotonic milliseconds. */
  readonly since: number;
  until: number;
  /** Consecutive cooldowns, including the current one. */
  cooldowns: number;
  /** The last failure was a timeout, not a refusal. */
  silent: boolean;
  /** When the last probe began or failed (monotonic milliseconds), and the number of probes in progress. */
  probedAt: number;
  probes: number;
}

/** If no other target is left, one that has failed for `longMilliseconds` is probed once per `apartMilliseconds`, and not by every call. */
const longMilliseconds = 10_000;
const apartMilliseconds = 1000;

const absentSeconds = 600;
/** The longest wait that is reported, in milliseconds. */
const longestWait = 600_000;
/** Faults that concern the target and not the request; and those that start a cooldown. */
const cools: ReadonlySet<FaultCode> = new Set(['rate-limited', 'overloaded', 'timed-out']);
const fails: ReadonlySet<FaultCode> = new Set([...cools, 'upstream-failed']);

/** @param changed told once for each time that a target begins to cool down, and once when it is back */
export function openHealth(settings: () => CooldownSettings, clock: Clock, chance: () => number, changed: (change: HealthChange) => void = () => {}): Health {
  const cooling = new Map<string, Cooldown>();
  const absent = new Map<string, { until: number }>();
  const latency = openLatencyStats(clock);
  const keys = openKeyCooldowns(settings, clock);
  const isAbsent = ({ name }: Target) => (absent.get(name)?.until ?? 0) > clock.monotonic();
  const isDue = (cooldown: Cooldown | undefined) => cooldown?.probes === 0 && cooldown.until <= clock.monotonic();

  const choice = (left: readonly Target[]): Target | undefined => {
    if (absent.size === 0) return among(left);
    return among(left.filter((target) => !isAbsent(target))) ?? among(left.filter(isAbsent));
  };

  const among = (present: readonly Target[]): Target | undefined => {
    for (const target of present) {
      const cooldown = cooling.get(target.name);
      // After a cooldown one call is let through as a probe; its result decides.
      if (!cooldown || (isDue(cooldown) && present.some(({ name }) => !cooling.has(name)))) return target;
    }
    const now = clock.monotonic();
    const open = present.filter(({ name }) => mayBeTried(cooling.get(name)!, now));
    return open.toSorted((a, b) => cooling.get(a.name)!.until - cooling.get(b.name)!.until)[0];
  };

  return {
    get cools() {
      return settings().cooldownSeconds > 0;
    },
    keys,
    ordered: (targets, affinity) => ordered(targets, affinity, { chance, latency, ejects: settings().cooldownSeconds > 0 }),
    next(left, userId) {
      const target = choice(left);
      if (!target) return undefined;
      left.splice(left.indexOf(target), 1);
      const cooldown = cooling.get(target.name);
      if (!cooldown) return { target, userId };
      cooldown.probes++;
      // After a timeout another timeout proves nothing new: each such call waits for its own limit.
      if (cooldown.probes === 1 || cooldown.silent) cooldown.probedAt = clock.monotonic();
      return { target, userId, probed: cooldown };
    },
    succeeded({ target, userId }, milliseconds) {
      latency.answered(target.name, milliseconds, userId);
      if (cooling.delete(target.name)) changed({ type: 'back', target });
      absent.delete(target.name);
    },
    failed(trial, fault) {
      this.released(trial);
      const { name } = trial.target;
      const now = clock.monotonic();
      if (fault.details.exceedsLimit || fault.details.otherKey) return;
      if (fault.details.elsewhere && fails.has(fault.code)) latency.failed(name, trial.userId);
      if (fault.details.absent) remember(absent, name, { until: now + absentSeconds * 1000 }, now);
      if (!this.cools || !fault.details.elsewhere || !cools.has(fault.code)) return;
      const earlier = cooling.get(name);
      const change = cooldownAfter(fault, earlier, earlier === trial.probed, settings(), now);
      if (earlier) {
        Object.assign(earlier, change, { probedAt: now });
      } else {
        remember(cooling, name, { ...change, since: now, probedAt: -Infinity, probes: 0 }, now);
        changed({ type: 'cooling', target: trial.target, seconds: Math.ceil((change.until - now) / 1000), fault });
      }
    },
    released({ probed }) {
      if (probed) probed.probes--;
    },
    wait(targets) {
      const now = clock.monotonic();
      const waits = targets.map(({ name }) => (cooling.get(name)?.until ?? 0) - now);
      return Math.max(1, Math.ceil(Math.min(...waits, longestWait) / 1000));
    },
    state(target) {
      const now = clock.monotonic();
      const cooldown = cooling.get(target.name);
      const until = isAbsent(target) ? absent.get(target.name)!.until : cooldown?.until;
      const state = isAbsent(target) ? 'absent' : !cooldown ? 'ok' : cooldown.probes > 0 ? 'probing' : 'cooling';
      return { state, ...(until === undefined ? {} : { until: clock.now() + Math.max(0, until - now) }), ...latency.of(target.name) };
    },
    reset() {
      cooling.clear();
      absent.clear();
      keys.reset();
    },
  };
}

/** @param wasProbe whether the failed call was a probe */
function cooldownAfter(
  { code, details }: Fault,
  earlier: Cooldown | undefined,
  wasProbe: boolean,
  settings: CooldownSettings,
  now: number,
): Pick<Cooldown, 'until' | 'cooldowns' | 'silent'> {
  // Calls that were in progress together failed together: that counts as one failure.
  const isAnother = earlier === undefined || earlier.until <= now || wasProbe;
  const cooldowns = (earlier?.cooldowns ?? 0) + (isAnother ? 1 : 0);
  return { until: Math.max(earlier?.until ?? 0, now + secondsOf(details, cooldowns, settings) * 1000), cooldowns, silent: code === 'timed-out' };
}

/**
 * Whether a call may try an unhealthy target because no other is left. One probe at a time; but since an answer may take minutes, a probe that has not been
 * refused blocks others only for as long as a refusal takes.
 */
function mayBeTried({ since, until, probedAt, probes }: Cooldown, now: number): boolean {
  if (probes > 0) return now - probedAt >= answeringMilliseconds;
  return until <= now || now - since < longMilliseconds || now - probedAt >= apartMilliseconds;
}

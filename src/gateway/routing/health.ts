import type { Clock } from '#kit/async/clock';
import type { Fault, FaultCode } from '#core/fault';
import type { Target, WeightedTarget } from '#core/target';
import { openLatencyStats } from './latency-stats.ts';
import { ordered } from './order.ts';

export interface HealthSettings {
  /** First and longest cooldown; 0 switches cooldowns off. */
  readonly cooldownSeconds: number;
  readonly cooldownMaxSeconds: number;
}

/** What we know of the targets: who is cooling down, who lacks a model. */
export interface Health {
  /** False where cooldowns are switched off. */
  readonly cools: boolean;
  /**
   * The order in which to try, as a list of its own: weighted targets by lot first, then the others as listed. With an affinity (`affinity.ts`) the lot is the
   * conversation's own, the same each time. Where there is a choice, outliers come last.
   */
  ordered(targets: readonly WeightedTarget[], affinity?: number): Target[];
  /**
   * Takes the next to try out of `left`: a sound one, else the one whose cooldown ends first (`mayBeTried`), else one that lacked the model when it was last asked:
   * that only puts it behind the others.
   */
  next(left: Target[], userId: number): Trial | undefined;
  /** @param milliseconds until it spoke */
  succeeded(trial: Trial, milliseconds: number): void;
  failed(trial: Trial, fault: Fault): void;
  /** The call ended without telling anything about the target. */
  released(trial: Trial): void;
  /** Seconds until the first of these may be asked again. */
  wait(targets: readonly Target[]): number;
  /** What is known of one target, for those who watch. */
  state(target: Target): TargetState;
  /** Forgets what ails the targets. */
  reset(): void;
}

export interface TargetState {
  readonly state: 'ok' | 'cooling' | 'absent' | 'probing';
  /** When it may be asked again: milliseconds since 1970. */
  readonly until?: number;
  /** Moving averages: milliseconds until it speaks, and the share of the calls it answered, 0 to 1. Absent where nobody asked it yet. */
  readonly latencyMs?: number;
  readonly successRate?: number;
}

/** One call's turn at a target. */
export interface Trial {
  readonly target: Target;
  readonly userId: number;
  /** What the target suffered from when its turn came: this call finds out whether it still does. */
  readonly probed?: Cooldown;
}

interface Cooldown {
  /** When the first of these failures came, and when the cooldown is over: monotonic milliseconds. */
  readonly since: number;
  until: number;
  /** Cooldowns one after the other, the present one included. */
  cooldowns: number;
  /** It was silent: what came last was no refusal. */
  silent: boolean;
  /** When the last probe began or failed (monotonic milliseconds), and how many are under way. */
  probedAt: number;
  probes: number;
}

/** A probe that nobody has refused for so long is being answered; longer than it takes to connect. */
const answeringMilliseconds = 5000;
/** Who has failed for so long is, when no other is left, asked this often and not by every call. */
const longMilliseconds = 10_000;
const apartMilliseconds = 1000;

const absentSeconds = 600;
/** Milliseconds, where nobody knows better. */
const longestWait = 600_000;
/** Faults that say something of the target, and not of the request; and those after which it is left alone for a while. */
const cools: ReadonlySet<FaultCode> = new Set(['rate-limited', 'overloaded', 'timed-out']);
const fails: ReadonlySet<FaultCode> = new Set([...cools, 'upstream-failed']);
/** A longer `Retry-After` is not believed. */
const saneSeconds = 300;

export function openHealth(settings: () => HealthSettings, clock: Clock, chance: () => number): Health {
  const cooling = new Map<string, Cooldown>();
  const absent = new Map<string, { until: number }>();
  const latency = openLatencyStats(clock);
  const isAbsent = ({ name }: Target) => (absent.get(name)?.until ?? 0) > clock.monotonic();
  const isDue = (cooldown: Cooldown | undefined) => cooldown?.probes === 0 && cooldown.until <= clock.monotonic();

  const choice = (left: readonly Target[]): Target | undefined => {
    if (absent.size === 0) return among(left);
    return among(left.filter((target) => !isAbsent(target))) ?? among(left.filter(isAbsent));
  };

  const among = (present: readonly Target[]): Target | undefined => {
    for (const target of present) {
      const cooldown = cooling.get(target.name);
      // A cooldown that is over lets one call through; its result decides.
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
    ordered: (targets, affinity) => ordered(targets, affinity, { chance, latency, ejects: settings().cooldownSeconds > 0 }),
    next(left, userId) {
      const target = choice(left);
      if (!target) return undefined;
      left.splice(left.indexOf(target), 1);
      const cooldown = cooling.get(target.name);
      if (!cooldown) return { target, userId };
      cooldown.probes++;
      // Where the last one was silent, silence tells nothing: each call of this kind is waited for anew.
      if (cooldown.probes === 1 || cooldown.silent) cooldown.probedAt = clock.monotonic();
      return { target, userId, probed: cooldown };
    },
    succeeded({ target, userId }, milliseconds) {
      latency.answered(target.name, milliseconds, userId);
      cooling.delete(target.name);
      absent.delete(target.name);
    },
    failed(trial, fault) {
      this.released(trial);
      const { name } = trial.target;
      const now = clock.monotonic();
      if (fault.details.elsewhere && fails.has(fault.code)) latency.failed(name, trial.userId);
      if (fault.details.absent) remember(absent, name, { until: now + absentSeconds * 1000 }, now);
      if (!this.cools || !fault.details.elsewhere || !cools.has(fault.code)) return;
      const earlier = cooling.get(name);
      const change = cooldownAfter(fault, earlier, earlier === trial.probed, settings(), now);
      if (earlier) Object.assign(earlier, change, { probedAt: now });
      else remember(cooling, name, { ...change, since: now, probedAt: -Infinity, probes: 0 }, now);
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
    },
  };
}

/** @param wasProbe did the call that failed find out whether the target still suffers? */
function cooldownAfter(
  { code, details: { retryAfter } }: Fault,
  earlier: Cooldown | undefined,
  wasProbe: boolean,
  { cooldownSeconds, cooldownMaxSeconds }: HealthSettings,
  now: number,
): Pick<Cooldown, 'until' | 'cooldowns' | 'silent'> {
  // Calls that were under way together failed together: that is one failure.
  const isAnother = earlier === undefined || earlier.until <= now || wasProbe;
  const cooldowns = (earlier?.cooldowns ?? 0) + (isAnother ? 1 : 0);
  const isSane = retryAfter !== undefined && retryAfter > 0 && retryAfter <= saneSeconds;
  const seconds = isSane ? retryAfter : Math.min(cooldownSeconds * 2 ** (cooldowns - 1), cooldownMaxSeconds);
  return { until: Math.max(earlier?.until ?? 0, now + seconds * 1000), cooldowns, silent: code === 'timed-out' };
}

/**
 * May a call try it although it is not sound, because no other is left? One at a time; but an answer may take minutes, so that a probe which is not refused
 * holds nobody back for longer than it takes to be.
 */
function mayBeTried({ since, until, probedAt, probes }: Cooldown, now: number): boolean {
  if (probes > 0) return now - probedAt >= answeringMilliseconds;
  return until <= now || now - since < longMilliseconds || now - probedAt >= apartMilliseconds;
}

/** Names of targets may be names that clients chose: neither many nor long ones fill the memory. */
const mostNames = 10_000;
const longestName = 500;

function remember<Known extends { readonly until: number }>(known: Map<string, Known>, name: string, one: Known, now: number): void {
  if (name.length > longestName) return;
  if (known.size >= mostNames) {
    for (const [other, { until }] of known) if (until <= now) known.delete(other);
    for (const other of known.keys()) if (known.size > mostNames / 2) known.delete(other);
  }
  known.set(name, one);
}

import type { Clock } from '#kit/async/clock';
import type { Target } from '#core/target';
import { lotOf } from './affinity.ts';

/**
 * Latency and reliability of the targets: moving averages per user, for the most recent users, and their median. One user's huge prompts do not make a target
 * slow for all.
 */
export interface LatencyStats {
  /** @param milliseconds until its first event with content */
  answered(name: string, milliseconds: number, userId?: number): void;
  failed(name: string, userId?: number): void;
  of(name: string): { readonly latencyMs?: number; readonly successRate?: number };
  /**
   * Fastest first; among targets about as fast as the fastest, the one of the conversation's affinity (`affinity`) first. A target without recent calls goes
   * before all others, so that its latency is measured again.
   */
  sorted(targets: readonly Target[], affinity?: number): readonly Target[];
  /** The names of targets that fail too often or are far slower than the others: never more than half. */
  outliers(targets: readonly Target[]): ReadonlySet<string>;
  /** Whether an outlier should be probed now. True once in a while; the next answer decides. */
  mayReturn(name: string): boolean;
}

/** The averages of one user. */
interface Experience {
  latencyMs?: number;
  successRate: number;
}

interface Speed extends Experience {
  /** The most recent users, the latest last. */
  readonly byUser: Map<number, Experience>;
  /** The last result or probe, monotonic milliseconds. */
  lastAt: number;
  /** Number of results, successful or not. */
  results: number;
  /** A probe is in progress that decides whether it is still an outlier. */
  probed: boolean;
}

/** The weight of the newest call in an average. */
const newest = 0.2;
const freshMilliseconds = 60_000;
/** Clients may choose names of targets: limits on their number and length bound the memory. */
const mostNames = 10_000;
const mostUsers = 8;
const longestName = 500;

/** Results that a target needs before it can be an outlier. */
const enoughCalls = 5;
/** An outlier succeeds in less than this share of its calls, or its latency exceeds that of the others by this factor and by this difference. */
const poorRate = 0.5;
const slowTimes = 3;
const slowMilliseconds = 500;
/** How long an outlier is left without calls before it is probed. */
const asideMilliseconds = 30_000;
/** Two latencies within this factor and difference count as equal. */
const aboutTimes = 1.25;
const aboutMilliseconds = 20;

const none: ReadonlySet<string> = new Set();

export function openLatencyStats(clock: Clock): LatencyStats {
  const known = new Map<string, Speed>();
  const speedOf = (name: string): Speed => {
    let speed = known.get(name);
    if (!speed) {
      if (known.size >= mostNames) known.clear();
      speed = { byUser: new Map(), successRate: 1, lastAt: 0, results: 0, probed: false };
      if (name.length <= longestName) known.set(name, speed);
    }
    speed.lastAt = clock.monotonic();
    speed.results++;
    return speed;
  };
  const rank = (name: string, now: number): number => {
    const speed = known.get(name);
    if (!speed || now - speed.lastAt > freshMilliseconds) return -1;
    return speed.latencyMs ?? Infinity;
  };
  return {
    answered(name, milliseconds, userId = 0) {
      const speed = speedOf(name);
      if (speed.probed) speed.byUser.clear(); // the result of the probe replaces the history
      speed.probed = false;
      const own = experienceOf(speed, userId);
      own.latencyMs = own.latencyMs === undefined ? milliseconds : own.latencyMs + newest * (milliseconds - own.latencyMs);
      own.successRate += newest * (1 - own.successRate);
      sum(speed);
    },
    failed(name, userId = 0) {
      const speed = speedOf(name);
      speed.probed = false;
      const own = experienceOf(speed, userId);
      own.successRate -= newest * own.successRate;
      sum(speed);
    },
    of(name) {
      const speed = known.get(name);
      if (!speed) return {};
      const { latencyMs, successRate } = speed;
      return { ...(latencyMs === undefined ? {} : { latencyMs: Math.round(latencyMs) }), successRate: Math.round(successRate * 1000) / 1000 };
    },
    sorted(targets, affinity) {
      const now = clock.monotonic();
      const ranks = new Map(targets.map(({ name }) => [name, rank(name, now)]));
      const sorted = targets.toSorted((a, b) => difference(ranks.get(a.name)!, ranks.get(b.name)!));
      const quickest = ranks.get(sorted[0]!.name)!;
      if (affinity === undefined || quickest < 0) return sorted;
      const about = sorted.filter(({ name }) => ranks.get(name)! <= quickest * aboutTimes + aboutMilliseconds);
      const first = about.toSorted((a, b) => lotOf(affinity, b.name) - lotOf(affinity, a.name))[0]!;
      return [first, ...sorted.filter((target) => target !== first)];
    },
    outliers(targets) {
      const poor: { readonly name: string; readonly badness: number }[] = [];
      for (const { name } of targets) {
        const speed = known.get(name);
        if (!speed || speed.results < enoughCalls) continue;
        if (speed.successRate < poorRate) poor.push({ name, badness: 1 / speed.successRate });
        else if (speed.latencyMs !== undefined && speed.latencyMs > slowMilliseconds && isSlow(name, speed.latencyMs, targets)) poor.push({ name, badness: 1 });
      }
      if (poor.length === 0) return none;
      const worst = poor.toSorted((a, b) => b.badness - a.badness).slice(0, Math.floor(targets.length / 2));
      return new Set(worst.map(({ name }) => name));
    },
    mayReturn(name) {
      const speed = known.get(name);
      if (!speed || clock.monotonic() - speed.lastAt < asideMilliseconds) return false;
      speed.lastAt = clock.monotonic();
      return (speed.probed = true);
    },
  };

  function isSlow(name: string, latencyMs: number, targets: readonly Target[]): boolean {
    const others = targets.flatMap((other) => (other.name === name ? [] : (known.get(other.name)?.latencyMs ?? []))).toSorted(difference);
    const middle = others[Math.floor((others.length - 1) / 2)];
    return middle !== undefined && latencyMs > middle * slowTimes && latencyMs > middle + slowMilliseconds;
  }
}

function experienceOf({ byUser }: Speed, userId: number): Experience {
  const own = byUser.get(userId) ?? { successRate: 1 };
  if (byUser.size === 1 && byUser.has(userId)) return own; // the order needs no change, which takes 0.5 µs
  byUser.delete(userId);
  byUser.set(userId, own);
  if (byUser.size > mostUsers) byUser.delete(byUser.keys().next().value!);
  return own;
}

/** The median; of two users the better value: it takes two users to make a target look worse to a third. */
function sum(speed: Speed): void {
  const latencies: number[] = [];
  const rates: number[] = [];
  for (const { latencyMs, successRate } of speed.byUser.values()) {
    if (latencyMs !== undefined) latencies.push(latencyMs);
    rates.push(successRate);
  }
  if (latencies.length > 0) speed.latencyMs = sorted(latencies)[Math.floor((latencies.length - 1) / 2)]!;
  speed.successRate = sorted(rates)[Math.floor(rates.length / 2)]!;
}

const sorted = (figures: readonly number[]): readonly number[] => (figures.length > 1 ? figures.toSorted(difference) : figures);

const difference = (a: number, b: number) => (a === b ? 0 : a - b); // works for two infinities too

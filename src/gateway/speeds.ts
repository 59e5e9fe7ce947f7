import type { Clock } from '#kit/clock';
import type { Target } from '#model/target';

/** How quick and how reliable the targets are, as moving averages. */
export interface Speeds {
  /** @param milliseconds until it spoke */
  answered(name: string, milliseconds: number): void;
  failed(name: string): void;
  of(name: string): { readonly latencyMs?: number; readonly successRate?: number };
  /** The quickest first. Who was not heard of for a while goes before all others, so that somebody finds out. */
  sorted(targets: readonly Target[]): readonly Target[];
}

interface Speed {
  latencyMs?: number;
  successRate: number;
  /** Monotonic milliseconds. */
  heardAt: number;
}

/** What the newest call counts in an average. */
const newest = 0.2;
const freshMilliseconds = 60_000;
const mostNames = 10_000;

export function openSpeeds(clock: Clock): Speeds {
  const known = new Map<string, Speed>();
  const speedOf = (name: string): Speed => {
    let speed = known.get(name);
    if (!speed) {
      if (known.size >= mostNames) known.clear();
      known.set(name, (speed = { successRate: 1, heardAt: 0 }));
    }
    speed.heardAt = clock.monotonic();
    return speed;
  };
  const rank = (name: string, now: number): number => {
    const speed = known.get(name);
    if (!speed || now - speed.heardAt > freshMilliseconds) return -1;
    return speed.latencyMs ?? Infinity;
  };
  return {
    answered(name, milliseconds) {
      const speed = speedOf(name);
      speed.latencyMs = speed.latencyMs === undefined ? milliseconds : speed.latencyMs + newest * (milliseconds - speed.latencyMs);
      speed.successRate += newest * (1 - speed.successRate);
    },
    failed(name) {
      const speed = speedOf(name);
      speed.successRate -= newest * speed.successRate;
    },
    of(name) {
      const speed = known.get(name);
      if (!speed) return {};
      const { latencyMs, successRate } = speed;
      return { ...(latencyMs === undefined ? {} : { latencyMs: Math.round(latencyMs) }), successRate: Math.round(successRate * 1000) / 1000 };
    },
    sorted(targets) {
      const now = clock.monotonic();
      const ranks = new Map(targets.map(({ name }) => [name, rank(name, now)]));
      return targets.toSorted((a, b) => {
        const [first, second] = [ranks.get(a.name)!, ranks.get(b.name)!];
        return first === second ? 0 : first - second;
      });
    },
  };
}

import type { Clock } from '#kit/async/clock';
import type { KeyCooldowns } from '#core/key-cooldowns';
import { answeringMilliseconds, remember, secondsOf, type CooldownSettings } from './cooldown.ts';

interface Cooldown {
  /** The end of the cooldown: monotonic milliseconds. */
  until: number;
  /** Consecutive cooldowns, including the current one. */
  times: number;
  /** When the key was used after its cooldown. */
  usedAt: number;
}

interface CooldownsOfModel {
  /** When the last of them ends. */
  until: number;
  readonly byKey: Map<object, Cooldown>;
}

/** Keys cool down by the same rules as targets. `reset` ends all cooldowns. */
export function openKeyCooldowns(settings: () => CooldownSettings, clock: Clock): KeyCooldowns & { reset(): void } {
  const byModel = new Map<string, CooldownsOfModel>();
  const of = (model: string, key: object) => byModel.get(model)?.byKey.get(key);
  return {
    get any() {
      return byModel.size > 0;
    },
    wait(model, key) {
      const cooldown = of(model, key);
      if (!cooldown) return 0;
      return Math.max(0, cooldown.until - clock.monotonic(), cooldown.usedAt + answeringMilliseconds - clock.monotonic());
    },
    used(model, key) {
      const cooldown = of(model, key);
      if (cooldown) cooldown.usedAt = clock.monotonic();
    },
    limited(model, key, { details }) {
      if (settings().cooldownSeconds <= 0) return;
      const now = clock.monotonic();
      const known = byModel.get(model) ?? { until: 0, byKey: new Map<object, Cooldown>() };
      const earlier = known.byKey.get(key);
      // Calls that were in progress together failed together: that counts as one failure.
      const times = (earlier?.times ?? 0) + (earlier === undefined || earlier.until <= now ? 1 : 0);
      const until = Math.max(earlier?.until ?? 0, now + secondsOf(details, times, settings()) * 1000);
      known.byKey.set(key, { until, times, usedAt: -Infinity });
      known.until = Math.max(known.until, until);
      if (!byModel.has(model)) remember(byModel, model, known, now);
    },
    accepted(model, key) {
      const byKey = byModel.get(model)?.byKey;
      // An answer to a call from before the cooldown says nothing about it.
      if (byKey?.get(key)?.usedAt === -Infinity || !byKey?.delete(key)) return;
      if (byKey.size === 0) byModel.delete(model);
    },
    reset: () => byModel.clear(),
  };
}

import type { Clock } from '#kit/async/clock';
import type { RestingKeys } from '#core/resting-keys';
import { answeringMilliseconds, remember, secondsOf, type CooldownSettings } from './cooldown.ts';

interface Rest {
  /** The end of the rest: monotonic milliseconds. */
  until: number;
  /** Consecutive rests, including the current one. */
  times: number;
  /** When it was used after its rest. */
  usedAt: number;
}

interface RestsOfModel {
  /** When the last of them ends. */
  until: number;
  readonly byKey: Map<object, Rest>;
}

/** Keys rest by the same rules by which targets cool down. */
export interface KeyRests extends RestingKeys {
  /** Ends all rests. */
  reset(): void;
}

export function openKeyRests(settings: () => CooldownSettings, clock: Clock): KeyRests {
  const byModel = new Map<string, RestsOfModel>();
  const of = (model: string, key: object) => byModel.get(model)?.byKey.get(key);
  return {
    get any() {
      return byModel.size > 0;
    },
    wait(model, key) {
      const rest = of(model, key);
      if (!rest) return 0;
      return Math.max(0, rest.until - clock.monotonic(), rest.usedAt + answeringMilliseconds - clock.monotonic());
    },
    used(model, key) {
      const rest = of(model, key);
      if (rest) rest.usedAt = clock.monotonic();
    },
    limited(model, key, { details }) {
      if (settings().cooldownSeconds <= 0) return;
      const now = clock.monotonic();
      const known = byModel.get(model) ?? { until: 0, byKey: new Map<object, Rest>() };
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
      // An answer to a call from before the rest says nothing about it.
      if (byKey?.get(key)?.usedAt === -Infinity || !byKey?.delete(key)) return;
      if (byKey.size === 0) byModel.delete(model);
    },
    reset: () => byModel.clear(),
  };
}

import type { Clock } from '#kit/async/clock';

/** Several keys of one provider, used in turn; one that was refused is set aside for a while. */
export interface KeyRing {
  /** The keys to try for one request, in order. Those set aside come last. */
  inTurn(): readonly string[];
  setAside(key: string): void;
}

const asideMilliseconds = 60_000;

export function keyRing(keys: readonly string[], clock: Clock): KeyRing {
  const aside = new Map<string, number>();
  let turn = 0;
  return {
    inTurn() {
      if (keys.length < 2) return keys;
      const first = turn++ % keys.length;
      const now = clock.monotonic();
      const rotated = [...keys.slice(first), ...keys.slice(0, first)];
      const isAside = (key: string) => (aside.get(key) ?? 0) > now;
      return [...rotated.filter((key) => !isAside(key)), ...rotated.filter(isAside)];
    },
    setAside: (key) => void aside.set(key, clock.monotonic() + asideMilliseconds),
  };
}

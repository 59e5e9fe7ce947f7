import type { FaultDetails } from '#core/fault';

export interface CooldownSettings {
  /** First and longest cooldown; 0 disables cooldowns. */
  readonly cooldownSeconds: number;
  readonly cooldownMaxSeconds: number;
}

/** A longer `Retry-After` is ignored. */
const saneSeconds = 300;

/** Seconds of a cooldown: as the answer says, else twice as long each time. @param times consecutive cooldowns, including this one */
export function secondsOf({ retryAfter }: FaultDetails, times: number, { cooldownSeconds, cooldownMaxSeconds }: CooldownSettings): number {
  const isSane = retryAfter !== undefined && retryAfter > 0 && retryAfter <= saneSeconds;
  return isSane ? retryAfter : Math.min(cooldownSeconds * 2 ** (times - 1), cooldownMaxSeconds);
}

/** A call that has not been refused within this time (milliseconds) is being answered; longer than it takes to connect. */
export const answeringMilliseconds = 5000;

/** Clients may choose names of targets and models: limits on their number and length bound the memory. */
const mostNames = 10_000;
const longestName = 500;

/** Sets an entry of a map whose names clients may choose. @param now as `until`: monotonic milliseconds */
export function remember<Known extends { readonly until: number }>(known: Map<string, Known>, name: string, one: Known, now: number): void {
  if (name.length > longestName) return;
  if (known.size >= mostNames) {
    for (const [other, { until }] of known) if (until <= now) known.delete(other);
    for (const other of known.keys()) if (known.size > mostNames / 2) known.delete(other);
  }
  known.set(name, one);
}

import type { Clock } from '#kit/async/clock';
import { secondsLeft } from './limit-words.ts';
import type { Hold, Lack } from './local-lease.ts';

/** A hold that cannot be taken. */
export interface Obstacle {
  readonly hold: Hold;
  readonly lack: Lack;
}

const gravity: Record<Lack, number> = { elsewhere: 0, here: 1, minute: 2, spent: 3 };

/** Of two that are equally grave, the one that takes longer to come back. */
export function graver(one: Obstacle | undefined, other: Obstacle, clock: Clock): Obstacle {
  if (!one || gravity[other.lack] > gravity[one.lack]) return other;
  return other.lack === one.lack && secondsUntil(other.hold, clock) > secondsUntil(one.hold, clock) ? other : one;
}

/** Seconds until what a hold lacks may be there again; for streams, of which nobody knows when they end, the least there is. */
export function secondsUntil({ lease: { account, limit, minute }, least }: Hold, clock: Clock): number {
  if (minute) return minute.wait(limit, clock.monotonic(), least);
  if (account.kind === 'streams') return limit > 0 ? 1 : 60;
  return secondsLeft(account, clock.now());
}

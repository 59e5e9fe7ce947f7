import type { Clock } from '#kit/async/clock';
import { Fault } from '#core/fault';
import type { Claims, Used } from './claims.ts';

/** How much one user may have kept at a time. */
export interface Room {
  /** Counts a new key. @throws Fault `rate-limited` when the user has as many as may be, or as many bytes of answers */
  enter(userId: number): Promise<void>;
  /** Counts an answer's bytes. */
  took(userId: number, bytes: number): void;
}

const mostKeys = 50_000;
const mostBytes = 256 * 2 ** 20;
/** Read anew after so long, which is when the other machines' share is seen. */
const freshMilliseconds = 60_000;
const retrySeconds = 60;

export function openRoom(claims: Pick<Claims, 'used'>, clock: Clock): Room {
  let known = new Map<number, Used>();
  let freshUntil = 0;
  const add = (userId: number, { keys, bytes }: Used) => {
    const before = known.get(userId);
    if (before) known.set(userId, { keys: before.keys + keys, bytes: before.bytes + bytes });
  };
  return {
    async enter(userId) {
      if (clock.monotonic() > freshUntil) {
        known = new Map();
        freshUntil = clock.monotonic() + freshMilliseconds;
      }
      if (known.has(userId)) add(userId, { keys: 1, bytes: 0 });
      else known.set(userId, await claims.used(userId)); // the new one is among them
      const { keys, bytes } = known.get(userId)!;
      if (keys > mostKeys || bytes > mostBytes)
        throw new Fault('rate-limited', 'Too many answers are kept under idempotency keys of this user: send the request without one, or later.', {
          retryAfter: retrySeconds,
        });
    },
    took: (userId, bytes) => add(userId, { keys: 0, bytes }),
  };
}

import type { Clock } from '#kit/async/clock';
import { Fault } from '#core/fault';

/** How much may be kept for one user. */
export interface Room {
  /** At once where it is known. @throws Fault `rate-limited` where as many bytes are kept as may be, `overloaded` */
  enter(userId: number): void | Promise<void>;
  /** Counts what was kept. */
  took(userId: number, bytes: number): void;
  /** Something of the user's was deleted. */
  forget(userId: number): void;
}

export interface RoomDeps {
  /** The bytes that are kept for a user. */
  readonly used: (userId: number) => Promise<number>;
  readonly most: () => number;
  readonly clock: Clock;
}

interface Known {
  bytes: number;
  readonly readAt: number;
}

/** Read anew after so long, which is when the other machines' share and what has expired is seen. */
const freshMilliseconds = 60_000;
/** An older count refuses no request: a replaced entry is counted twice until the sum is read again. */
const exactMilliseconds = 5000;
const retrySeconds = 60;
const mostKnown = 50_000;

export function openRoom({ used, most, clock }: RoomDeps): Room {
  const known = new Map<number, Known>();
  const reading = new Map<number, Promise<Known>>();

  async function read(userId: number): Promise<Known> {
    const now = { bytes: await used(userId), readAt: clock.monotonic() };
    if (known.size >= mostKnown) known.clear();
    known.set(userId, now);
    return now;
  }

  async function look(userId: number): Promise<void> {
    let one = reading.get(userId);
    if (!one) {
      one = read(userId).finally(() => reading.delete(userId));
      reading.set(userId, one);
    }
    if ((await one).bytes >= most()) throw full(most());
  }

  return {
    enter(userId) {
      const one = known.get(userId);
      const age = one ? clock.monotonic() - one.readAt : Infinity;
      const isFull = one !== undefined && one.bytes >= most();
      if (isFull && age < exactMilliseconds) throw full(most());
      if (!isFull && age < freshMilliseconds) return undefined;
      return look(userId);
    },
    took(userId, bytes) {
      const one = known.get(userId);
      if (one) one.bytes += bytes;
    },
    forget: (userId) => void known.delete(userId),
  };
}

const full = (most: number) =>
  new Fault(
    'rate-limited',
    `The responses and conversations that are kept for this user have reached their limit of ${most} bytes: delete some, or send "store": false.`,
    { retryAfter: retrySeconds },
  );

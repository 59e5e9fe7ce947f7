import type { Clock } from '#kit/async/clock';
import { Fault } from '#core/fault';
import { permits, type Contact, type PermitKind } from '#core/lease';

/** Milliseconds between two heartbeats. */
const beatMilliseconds = 10_000;
/** Milliseconds until the next heartbeat after one that failed. */
const retryMilliseconds = 1000;
/** Milliseconds by which permits lapse here before the database may end them: clocks do not run equally fast. */
const driftMilliseconds = 5000;

export interface ContactDeps {
  /** Heartbeat: records in the database that this holder lives, and for how many seconds its streams may run. @throws Fault `conflict` when the holder was closed */
  readonly seen: (streamSeconds: number) => Promise<void>;
  /** The longest that a stream may take. */
  readonly streamSeconds: () => number;
  readonly clock: Clock;
  /** The holder was closed by another process. */
  readonly lost: (cause: unknown) => void;
}

/**
 * Sends the heartbeat of this holder, and says what follows where it fails. `useMilliseconds` after the last one the holder uses no more permits, since the
 * database ends those of a silent holder some time later. When the database is reached again after so long, the permits of before have lapsed.
 * @param enteredAt when the holder was entered, or a moment before (monotonic milliseconds)
 */
export function keepContact({ seen, streamSeconds, clock, lost }: ContactDeps, enteredAt: number): Contact & { end(): void } {
  const listeners: ((lapsed: readonly PermitKind[]) => void)[] = [];
  let reachedAt = enteredAt;
  let longest = 0;
  let isEnded = false;
  let cancel = () => {};
  const beat = async () => {
    const askedAt = clock.monotonic();
    longest = Math.max(longest, streamSeconds()); // streams that began under another setting still run
    let pause = beatMilliseconds;
    try {
      await seen(longest);
      reached(askedAt);
    } catch (error) {
      if (isEnded) return;
      if (error instanceof Fault && error.code === 'conflict') return lost(error);
      pause = retryMilliseconds; // the database is away
    }
    if (!isEnded) cancel = clock.after(pause, () => void beat());
  };
  const reached = (askedAt: number) => {
    const silence = clock.monotonic() - reachedAt + driftMilliseconds;
    reachedAt = askedAt;
    const lapsed: PermitKind[] = [];
    if (silence >= permits.requestsSilentSeconds * 1000) lapsed.push('requests');
    if (silence >= (longest + permits.streamsSilentSeconds) * 1000) lapsed.push('streams');
    for (const listen of listeners) listen(lapsed);
  };
  void beat();
  return {
    get goodUntil() {
      return reachedAt + permits.useMilliseconds;
    },
    isSourcesWord: false,
    onReached: (listen) => void listeners.push(listen),
    end() {
      isEnded = true;
      cancel();
    },
  };
}

/** The contact of a worker, as its parent reports it: the parent has the contact with the database. */
export interface ReportedContact extends Contact {
  /** The parent's contact is good for `goodMilliseconds` from now on. Permits of these kinds have lapsed, and the parent has taken them back. */
  reported(goodMilliseconds: number, lapsed: readonly PermitKind[]): void;
}

export function reportedContact(clock: Pick<Clock, 'monotonic'>): ReportedContact {
  const listeners: ((lapsed: readonly PermitKind[]) => void)[] = [];
  let goodUntil = -Infinity;
  return {
    get goodUntil() {
      return goodUntil;
    },
    isSourcesWord: true,
    onReached: (listen) => void listeners.push(listen),
    reported(goodMilliseconds, lapsed) {
      goodUntil = clock.monotonic() + goodMilliseconds;
      for (const listen of listeners) listen(lapsed);
    },
  };
}

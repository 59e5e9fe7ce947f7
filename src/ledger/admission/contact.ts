import type { Clock } from '#kit/async/clock';
import { Fault } from '#core/fault';
import { permits, type Contact, type PermitKind } from '#core/lease';

/** Milliseconds from one sign of life to the next. */
const aliveMilliseconds = 10_000;
/** After one that did not come through. */
const sorryMilliseconds = 1000;
/** Clocks do not run equally fast: what may be ended so much later by the database's is taken as ended here. */
const doubtMilliseconds = 5000;

export interface ContactDeps {
  /** Tells the database that this holder lives, and for how many seconds a stream of it may run. @throws Fault `conflict` when somebody else has closed it */
  readonly seen: (streamSeconds: number) => Promise<void>;
  /** How long a stream may take. */
  readonly streamSeconds: () => number;
  readonly clock: Clock;
  /** Somebody else has closed it. */
  readonly lost: (cause: unknown) => void;
}

/**
 * Says now and then that this holder lives, and knows what follows where that does not come through: after `useMilliseconds` its permits are not used any more,
 * since the database ends those of a silent holder some time later; and when it is heard again after so long, what it had is no longer its own.
 *
 * @param enteredAt when the holder was entered, or a moment before (monotonic milliseconds)
 */
export function keepContact({ seen, streamSeconds, clock, lost }: ContactDeps, enteredAt: number): Contact & { end(): void } {
  const listeners: ((lapsed: readonly PermitKind[]) => void)[] = [];
  let reachedAt = enteredAt;
  let longest = 0;
  let isEnded = false;
  let cancel = () => {};
  const say = async () => {
    const askedAt = clock.monotonic();
    longest = Math.max(longest, streamSeconds()); // streams that began under another setting still run
    let pause = aliveMilliseconds;
    try {
      await seen(longest);
      reached(askedAt);
    } catch (error) {
      if (isEnded) return;
      if (error instanceof Fault && error.code === 'conflict') return lost(error);
      pause = sorryMilliseconds; // the database is away
    }
    if (!isEnded) cancel = clock.after(pause, () => void say());
  };
  const reached = (askedAt: number) => {
    const silence = clock.monotonic() - reachedAt + doubtMilliseconds;
    reachedAt = askedAt;
    const lapsed: PermitKind[] = [];
    if (silence >= permits.requestsSilentSeconds * 1000) lapsed.push('requests');
    if (silence >= (longest + permits.streamsSilentSeconds) * 1000) lapsed.push('streams');
    for (const listen of listeners) listen(lapsed);
  };
  void say();
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

/** The contact of a worker with its parent, which has that with the database. */
export interface ToldContact extends Contact {
  /** The parent's contact is good for so many milliseconds from now on; these kinds of permits have lapsed, and the parent has taken them back. */
  told(goodMilliseconds: number, lapsed: readonly PermitKind[]): void;
}

export function toldContact(clock: Pick<Clock, 'monotonic'>): ToldContact {
  const listeners: ((lapsed: readonly PermitKind[]) => void)[] = [];
  let goodUntil = -Infinity;
  return {
    get goodUntil() {
      return goodUntil;
    },
    isSourcesWord: true,
    onReached: (listen) => void listeners.push(listen),
    told(goodMilliseconds, lapsed) {
      goodUntil = clock.monotonic() + goodMilliseconds;
      for (const listen of listeners) listen(lapsed);
    },
  };
}

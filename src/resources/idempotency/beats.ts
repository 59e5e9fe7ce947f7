import type { Clock } from '#kit/async/clock';
import { leaseSeconds, type Claims } from './claims.ts';

/** What happens from time to time: claims of ours are renewed, those of other processes watched, old answers deleted. */
export interface Beats {
  /**
   * Renews a claim until the answer is called.
   * @param since when it was asked for (monotonic milliseconds)
   * @param lost called once when it is somebody else's, or could not be renewed for so long that it may be
   */
  hold(claim: string, since: number, lost: () => void): () => void;
  /** Resolves when the claim of another process is over. Rejects with the signal's reason. */
  over(claim: string, signal: AbortSignal): Promise<void>;
  stop(): void;
}

interface Held {
  /** When the renewal that came through last was asked for (monotonic milliseconds). */
  renewedAt: number;
  readonly lost: () => void;
}

const renewMilliseconds = (leaseSeconds * 1000) / 6;
/** After one that did not come through. */
const retryMilliseconds = 1000;
const fenceMilliseconds = 1000;
const lookMilliseconds = 200;
const purgeMilliseconds = 600_000;

/** One statement a beat, however many claims there are, and none when there is none. */
export function openBeats(claims: Claims, clock: Clock, log: (problem: string, cause: unknown) => void): Beats {
  const held = new Map<string, Held>();
  const watched = new Map<string, () => void>();

  const renewing = pulse(clock, renewMilliseconds, {
    isNeeded: () => held.size > 0,
    async act() {
      const asked = [...held.keys()];
      const askedAt = clock.monotonic();
      const ours = await claims.renew(asked);
      for (const claim of asked) {
        const one = held.get(claim);
        if (one && ours.has(claim)) one.renewedAt = askedAt;
        else lose(claim);
      }
    },
    failed: (cause) => log('Idempotency keys in use could not be renewed.', cause),
  });
  // apart from the renewing, which a database that hangs holds up
  const fencing = pulse(clock, fenceMilliseconds, {
    isNeeded: () => held.size > 0,
    async act() {
      const before = clock.monotonic() - leaseSeconds * 1000;
      for (const [claim, { renewedAt }] of held) if (renewedAt <= before) lose(claim);
    },
    failed() {},
  });
  const lose = (claim: string) => {
    const one = held.get(claim);
    held.delete(claim);
    one?.lost();
  };
  const looking = pulse(clock, lookMilliseconds, {
    isNeeded: () => watched.size > 0,
    async act() {
      const asked = [...watched];
      const running = await claims.running(asked.map(([claim]) => claim));
      for (const [claim, wake] of asked) if (!running.has(claim)) wake();
    },
    failed() {}, // those who wait have a limit of their own
  });
  const purging = pulse(clock, purgeMilliseconds, {
    isNeeded: () => true,
    act: () => claims.purge(),
    failed: (cause) => log('Old idempotent answers could not be deleted.', cause),
  });
  purging.start();

  return {
    hold(claim, since, lost) {
      held.set(claim, { renewedAt: since, lost });
      renewing.start();
      fencing.start();
      return () => void held.delete(claim);
    },
    over(claim, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const leave = () => reject(signal.reason);
      if (signal.aborted) leave();
      signal.addEventListener('abort', leave, { once: true });
      watched.set(claim, resolve);
      looking.start();
      return promise.finally(() => {
        watched.delete(claim);
        signal.removeEventListener('abort', leave);
      });
    },
    stop() {
      for (const one of [renewing, fencing, looking, purging]) one.stop();
    },
  };
}

interface Beating {
  readonly isNeeded: () => boolean;
  readonly act: () => Promise<void>;
  readonly failed: (cause: unknown) => void;
}

/** Acts every `milliseconds` while it is needed, never twice at once, and again soon where it failed. */
function pulse(clock: Clock, milliseconds: number, { isNeeded, act, failed }: Beating) {
  let isStarted = false;
  let isStopped = false;
  let cancel = () => {};
  const start = (pause = milliseconds) => {
    if (isStarted || isStopped || !isNeeded()) return;
    isStarted = true;
    cancel = clock.after(pause, () => void beat());
  };
  const beat = async () => {
    let hasFailed = false;
    if (isNeeded())
      await act().catch((cause: unknown) => {
        hasFailed = true;
        failed(cause);
      });
    isStarted = false;
    start(hasFailed ? Math.min(milliseconds, retryMilliseconds) : milliseconds);
  };
  return {
    start: () => start(),
    stop() {
      isStopped = true;
      cancel();
    },
  };
}

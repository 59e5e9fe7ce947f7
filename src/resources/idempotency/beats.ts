import type { Clock } from '#kit/clock';
import { leaseSeconds, type Claims } from './claims.ts';

/** What happens from time to time: claims of ours are renewed, those of other processes watched, old answers deleted. */
export interface Beats {
  /** Renews a claim until the answer is called. */
  hold(claim: string): () => void;
  /** Resolves when the claim of another process is over. Rejects with the signal's reason. */
  over(claim: string, signal: AbortSignal): Promise<void>;
  stop(): void;
}

const renewMilliseconds = (leaseSeconds * 1000) / 3;
const lookMilliseconds = 200;
const purgeMilliseconds = 600_000;

/** One statement a beat, however many claims there are, and none when there is none. */
export function openBeats(claims: Claims, clock: Clock, log: (problem: string, cause: unknown) => void): Beats {
  const held = new Set<string>();
  const watched = new Map<string, () => void>();

  const renewing = pulse(clock, renewMilliseconds, {
    isNeeded: () => held.size > 0,
    act: () => claims.renew([...held]),
    failed: (cause) => log('Idempotency keys in use could not be renewed.', cause),
  });
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
    hold(claim) {
      held.add(claim);
      renewing.start();
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
      for (const one of [renewing, looking, purging]) one.stop();
    },
  };
}

interface Beating {
  readonly isNeeded: () => boolean;
  readonly act: () => Promise<void>;
  readonly failed: (cause: unknown) => void;
}

/** Acts every so many milliseconds while it is needed, never twice at once. */
function pulse(clock: Clock, milliseconds: number, { isNeeded, act, failed }: Beating) {
  let isStarted = false;
  let isStopped = false;
  let cancel = () => {};
  const start = () => {
    if (isStarted || isStopped || !isNeeded()) return;
    isStarted = true;
    cancel = clock.after(milliseconds, () => void beat());
  };
  const beat = async () => {
    if (isNeeded()) await act().catch(failed);
    isStarted = false;
    start();
  };
  return {
    start,
    stop() {
      isStopped = true;
      cancel();
    },
  };
}

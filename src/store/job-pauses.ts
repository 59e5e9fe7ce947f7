import type { Clock } from '#kit/async/clock';

/** Thrown by a handler whose job cannot begin before a limit of its owner's frees: the job goes back to its place among those that wait, and the try does not count. */
export class Postponed extends Error {
  /** Seconds until another try may succeed. */
  readonly seconds: number;

  constructor(seconds: number) {
    super(`The job waits for a limit of its owner, ${seconds} seconds at least.`);
    this.name = 'Postponed';
    this.seconds = seconds;
  }
}

export interface Counted {
  readonly owner: string;
  /** The limit let it in. */
  readonly hasBegun: boolean;
}

const longestPauseSeconds = 30;
const forgetMilliseconds = 600_000;

interface Pause {
  /** Monotonic milliseconds. */
  until: number;
  /** How often in a row nothing could begin. */
  times: number;
  cancel: () => void;
}

/**
 * Owners whose jobs wait for a limit. None of their jobs is taken during a pause, and one at a time after it, until a job that was taken has begun: so jobs
 * that could not begin take no places of others. The pause doubles up to half a minute, or is as long as the limit says.
 */
export class Pauses {
  readonly #clock: Clock;
  readonly #rouse: () => void;
  readonly #pauses = new Map<string, Pause>();

  /** @param rouse called when a pause is over */
  constructor(clock: Clock, rouse: () => void) {
    this.#clock = clock;
    this.#rouse = rouse;
  }

  /** A job of this owner was postponed. */
  postpone(owner: string, seconds: number): void {
    const now = this.#clock.monotonic();
    const pause = this.#pauses.get(owner) ?? { until: -Infinity, times: 0, cancel: () => {} };
    if (pause.until > now) return; // it was taken together with the one that began the pause
    const milliseconds = 1000 * Math.max(seconds, Math.min(2 ** pause.times, longestPauseSeconds));
    pause.times++;
    pause.until = now + milliseconds;
    pause.cancel = this.#clock.after(milliseconds, this.#rouse);
    this.#pauses.set(owner, pause);
  }

  /** A job of this owner has begun: the next may be taken. */
  began(owner: string): void {
    const pause = this.#pauses.get(owner);
    if (!pause) return;
    pause.times = 0;
    this.#rouse();
  }

  /** A job of this owner ended by itself: what it held of a limit may be free. */
  ended(owner: string, isLast: boolean): void {
    const pause = this.#pauses.get(owner);
    if (!pause) return;
    pause.cancel();
    if (isLast) this.#pauses.delete(owner);
    else pause.until = -Infinity;
  }

  /** How many of the `each` places of an owner here cannot be taken now, by owner. */
  taken(running: Iterable<Counted>, each: number): Record<string, number> {
    const counts = new Map<string, { running: number; begun: number }>();
    for (const { owner, hasBegun } of running) {
      const count = counts.get(owner) ?? { running: 0, begun: 0 };
      counts.set(owner, { running: count.running + 1, begun: count.begun + (hasBegun ? 1 : 0) });
    }
    const taken: Record<string, number> = {};
    for (const [owner, count] of counts) taken[owner] = count.running;
    const now = this.#clock.monotonic();
    for (const [owner, { until }] of this.#pauses) {
      if (now - until > forgetMilliseconds && !counts.has(owner)) {
        this.#pauses.delete(owner); // what waited was cancelled, or is another process's
        continue;
      }
      const { running: here, begun } = counts.get(owner) ?? { running: 0, begun: 0 };
      const more = until > now ? 0 : Math.max(0, begun + 1 - here);
      taken[owner] = Math.max(here, each - more);
    }
    return taken;
  }

  close(): void {
    for (const { cancel } of this.#pauses.values()) cancel();
  }
}

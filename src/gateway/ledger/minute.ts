import type { Clock } from '#kit/clock';
import type { Allowance } from '#model/generate';

const minute = 60_000;

/** Requests of the last 60 seconds, whichever 60 seconds: a queue of their times. */
export class Minute {
  readonly #clock: Clock;
  #times: number[] = [];
  #first = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts one request. `wait`: seconds until it would be allowed, 0 when it is. */
  take(limit: number | undefined): { wait: number; allowance?: Allowance } {
    if (limit === undefined) return { wait: 0 };
    const now = this.#clock.monotonic();
    this.#forget(now - minute);
    const used = this.#times.length - this.#first;
    if (used >= limit) {
      const freed = this.#times[this.#times.length - limit] ?? now;
      const wait = Math.max(1, Math.ceil((freed + minute - now) / 1000));
      return { wait, allowance: { limit, remaining: 0, reset: wait } };
    }
    this.#times.push(now);
    return { wait: 0, allowance: { limit, remaining: limit - used - 1, reset: Math.ceil((this.#times[this.#first]! + minute - now) / 1000) } };
  }

  #forget(before: number): void {
    while (this.#first < this.#times.length && this.#times[this.#first]! <= before) this.#first++;
    if (this.#first > 1024 && this.#first * 2 > this.#times.length) {
      this.#times = this.#times.slice(this.#first);
      this.#first = 0;
    }
  }
}

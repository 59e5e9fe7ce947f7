import type { LeaseRequest } from '#core/lease';

const minute = 60_000;

/** Milliseconds within which requests are reported to the source together, with the age of the last of them. */
const together = 50;

/** Requests of the last 60 seconds, whichever 60 seconds: a queue of their times, on a clock that never jumps. */
export class SlidingWindow {
  #times: number[] = [];
  #first = 0;
  /** Requests before this place in the queue have been reported to the source. */
  #reported = 0;

  /** How many requests there were in the minute before `now`. */
  used(now: number): number {
    this.#forget(now - minute);
    return this.#times.length - this.#first;
  }

  add(now: number): void {
    this.#times.push(now);
  }

  /** Seconds until one more request is allowed, from 1 to 60. */
  wait(limit: number, now: number): number {
    const freed = this.#times[this.#times.length - limit] ?? now;
    return Math.min(60, Math.max(1, Math.ceil((freed + minute - now) / 1000)));
  }

  /** Seconds until the oldest of them counts no more. */
  reset(now: number): number {
    const oldest = this.#times[this.#first];
    return oldest === undefined ? 0 : Math.ceil((oldest + minute - now) / 1000);
  }

  /** The requests that the source does not know yet, with their ages. */
  unreported(now: number): NonNullable<LeaseRequest['used']> {
    const report: { count: number; ageSeconds: number }[] = [];
    for (let place = this.#reported; place < this.#times.length;) {
      const start = place;
      while (place < this.#times.length && this.#times[place]! - this.#times[start]! <= together) place++;
      report.push({ count: place - start, ageSeconds: (now - this.#times[place - 1]!) / 1000 });
    }
    return report;
  }

  get unreportedCount(): number {
    return this.#times.length - this.#reported;
  }

  /** The source knows of `count` more. */
  acknowledge(count: number): void {
    this.#reported += count;
  }

  #forget(before: number): void {
    while (this.#first < this.#times.length && this.#times[this.#first]! <= before) this.#first++;
    const gone = Math.min(this.#first, this.#reported);
    if (gone > 1024 && gone * 2 > this.#times.length) {
      this.#times = this.#times.slice(gone);
      this.#first -= gone;
      this.#reported -= gone;
    }
  }
}

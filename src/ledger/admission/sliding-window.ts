import type { LeaseRequest } from '#core/lease';

export const minute = 60_000;

/** Milliseconds within which requests are reported to the source together, with the age of the last of them. */
const together = 50;

/** What was used in the last 60 seconds, whichever 60 seconds: a queue of times, on a clock that never jumps, each with an amount where those are not all 1. */
export class SlidingWindow {
  #times: number[] = [];
  /** Of tokens; absent for requests. */
  #amounts: number[] | undefined;
  /** The sum of the amounts that count. */
  #sum = 0;
  #first = 0;
  /** Uses before this place in the queue have been reported to the source. */
  #reported = 0;

  /** @param isWeighted has each use an amount of its own? */
  constructor(isWeighted = false) {
    if (isWeighted) this.#amounts = [];
  }

  /** How much was used in the minute before `now`. */
  used(now: number): number {
    this.#forget(now - minute);
    return this.#amounts ? this.#sum : this.#times.length - this.#first;
  }

  /** How much of that the source knows of. */
  reported(now: number): number {
    this.#forget(now - minute);
    return this.#amountOf(this.#first, Math.max(this.#first, this.#reported));
  }

  add(now: number, amount = 1): void {
    this.#times.push(now);
    this.#amounts?.push(amount);
    this.#sum += amount;
  }

  /** Seconds until so much more is allowed, from 1 to 60. */
  wait(limit: number, now: number, needed = 1): number {
    let freed = now;
    let over = this.used(now) + needed - limit;
    for (let place = this.#first; place < this.#times.length && over > 0; place++) {
      over -= this.#amounts?.[place] ?? 1;
      freed = this.#times[place]!;
    }
    return Math.min(60, Math.max(1, Math.ceil((freed + minute - now) / 1000)));
  }

  /** Seconds until the oldest of them counts no more. */
  reset(now: number): number {
    const oldest = this.#times[this.#first];
    return oldest === undefined ? 0 : Math.ceil((oldest + minute - now) / 1000);
  }

  /** What the source does not know yet, with the ages. */
  unreported(now: number): NonNullable<LeaseRequest['used']> {
    const report: { count: number; ageSeconds: number }[] = [];
    for (let place = this.#reported; place < this.#times.length;) {
      const start = place;
      while (place < this.#times.length && this.#times[place]! - this.#times[start]! <= together) place++;
      report.push({ count: this.#amountOf(start, place), ageSeconds: (now - this.#times[place - 1]!) / 1000 });
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

  #amountOf(start: number, end: number): number {
    return this.#amounts ? this.#amounts.slice(start, end).reduce((sum, amount) => sum + amount, 0) : end - start;
  }

  #forget(before: number): void {
    while (this.#first < this.#times.length && this.#times[this.#first]! <= before) {
      this.#sum -= this.#amounts?.[this.#first] ?? 1;
      this.#first++;
    }
    const gone = Math.min(this.#first, this.#reported);
    if (gone > 1024 && gone * 2 > this.#times.length) {
      this.#times = this.#times.slice(gone);
      this.#amounts = this.#amounts?.slice(gone);
      this.#first -= gone;
      this.#reported -= gone;
    }
  }
}

import type { Clock } from '#kit/async/clock';

/** Random numbers that come again for the same seed (mulberry32). */
export function chanceOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const mostLooks = 20_000;

/** Time that passes only when everything else has come to rest. */
export class World {
  /** Of nobody in particular: it never jumps, and nothing that waits for it dies. */
  readonly clock: Clock;
  readonly start: number;
  passed = 0;
  /** How often somebody has looked at the clock since time passed last. */
  #looks = 0;
  readonly #due: { readonly at: number; act: (() => void) | undefined }[] = [];

  /** @param start milliseconds since 1970 */
  constructor(start: number) {
    this.start = start;
    this.clock = {
      now: () => start + this.passed,
      monotonic: () => this.look(),
      after: (milliseconds, act) => this.after(milliseconds, act),
      sleep: (milliseconds) => new Promise((resolve) => this.after(milliseconds, resolve)),
    };
  }

  /** Milliseconds since the start. @throws for those who turn in a circle: while they do, no time passes */
  look(): number {
    if (++this.#looks > mostLooks) {
      this.#looks = 0;
      throw new Error('Somebody turns in a circle.');
    }
    return this.passed;
  }

  /** Calls back once; the answer cancels. Of two at the same time the first comes first. */
  after(milliseconds: number, act: () => void): () => void {
    const one: { at: number; act: (() => void) | undefined } = { at: this.passed + Math.max(0, milliseconds), act };
    let place = this.#due.length;
    while (place > 0 && this.#due[place - 1]!.at > one.at) place--;
    this.#due.splice(place, 0, one);
    return () => void (one.act = undefined);
  }

  /** Lets this many milliseconds pass. */
  async pass(milliseconds: number): Promise<void> {
    const until = this.passed + milliseconds;
    for (;;) {
      await rest();
      let next = this.#due[0];
      for (; next && !next.act; next = this.#due[0]) this.#due.shift();
      if (!next || next.at > until) break;
      this.#due.shift();
      if (next.at > this.passed) {
        this.passed = next.at;
        this.#looks = 0;
      }
      next.act!();
    }
    this.passed = until;
  }
}

/** Until promises that need no time have come to rest: 1.2 µs, as 24 turns of the microtasks cost, and none is left. */
const rest = () => new Promise(setImmediate);

/** Thrown out of whatever a process was doing when it died. */
export class Died extends Error {}

/** A process from its start to its death. What it waits for when it dies never comes. */
export class Life {
  readonly name: string;
  readonly clock: Clock;
  isAlive = true;
  readonly #survives: (life: Life) => boolean;
  readonly #mourners: (() => void)[] = [];

  /**
   * @param skew milliseconds by which its clock on the wall is wrong
   * @param survives asked at each point at which it may die
   */
  constructor(name: string, world: World, skew: () => number, survives: (life: Life) => boolean) {
    this.name = name;
    this.#survives = survives;
    const after = (milliseconds: number, act: () => void) => world.after(milliseconds, () => void (this.point() && act()));
    this.clock = {
      now: () => world.clock.now() + skew(),
      monotonic: () => world.look(),
      after,
      sleep: (milliseconds, signal) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted) return reject(signal.reason);
          const cancel = after(milliseconds, resolve);
          signal?.addEventListener('abort', () => (cancel(), reject(signal.reason)), { once: true });
        }),
    };
  }

  /** A write, or the end of something it waited for: here it may die. @returns whether it lives on */
  point(): boolean {
    if (this.isAlive && !this.#survives(this)) this.end();
    return this.isAlive;
  }

  /** It is over, at once. */
  end(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    for (const mourn of this.#mourners.splice(0)) mourn();
  }

  /** Called back when it is over, at once where it is. */
  onEnd(mourn: () => void): void {
    if (this.isAlive) this.#mourners.push(mourn);
    else mourn();
  }
}

/** What one who died waits for. */
export const never = new Promise<never>(() => {});

import type { Clock } from '#kit/clock';
import type { Allowance } from '#model/generate';
import { secondsToNextMonth, type Plan, type Spent } from '#model/plan';
import { Minute } from './minute.ts';

/** Plan tokens and US dollars that are set aside for one call. */
export interface Hold {
  planTokens: number;
  usd: number;
  stream: boolean;
  over: boolean;
}

/** What one user has spent in one month and what running calls may still spend. */
export class Balance {
  readonly month: string;
  readonly minute: Minute;
  readonly loaded: Promise<void>;
  ready = false;
  readonly #clock: Clock;
  #spent: Spent = { planTokens: 0, costUsd: 0 };
  #heldTokens = 0;
  #heldUsd = 0;
  #holds = 0;
  #streams = 0;
  #waiting: (() => void)[] = [];

  constructor(month: string, spent: Promise<Spent>, clock: Clock) {
    this.month = month;
    this.minute = new Minute(clock);
    this.#clock = clock;
    this.loaded = spent.then((loaded) => {
      this.#spent = loaded;
      this.ready = true;
    });
    this.loaded.catch(() => undefined);
  }

  get idle(): boolean {
    return this.#holds === 0 && this.#waiting.length === 0;
  }

  /** Plan tokens that are neither spent nor set aside. */
  left(plan: Plan): number {
    return Math.max(0, (plan.monthlyTokens ?? Infinity) - this.#spent.planTokens - this.#heldTokens);
  }

  /** Sets aside as much as wanted; the answer says what stands in the way: spent for good, or held by running calls. */
  hold({ least, most, usd }: { least: number; most: number; usd: number }, plan: Plan, stream: boolean): Hold | 'spent' | 'held' | 'streams' {
    const { monthlyTokens = Infinity, monthlyUsd = Infinity, concurrentStreams = Infinity } = plan;
    if (this.#spent.planTokens + least > monthlyTokens || this.#spent.costUsd + usd > monthlyUsd) return 'spent';
    if (stream && this.#streams >= concurrentStreams) return 'streams';
    const left = this.left(plan);
    if (least > left || this.#spent.costUsd + this.#heldUsd + usd > monthlyUsd) return 'held';
    const hold = { planTokens: Math.min(most, left), usd, stream, over: false };
    this.#heldTokens += hold.planTokens;
    this.#heldUsd += usd;
    this.#holds++;
    if (stream) this.#streams++;
    return hold;
  }

  /** Makes a hold as large as wanted, or at least as large as needed. */
  grow(hold: Hold, wanted: number, needed: number, plan: Plan): boolean {
    const more = Math.min(wanted - hold.planTokens, this.left(plan));
    if (hold.planTokens + more < needed) return false;
    hold.planTokens += more;
    this.#heldTokens += more;
    return true;
  }

  /** @returns false when the hold was settled or released before */
  settle(hold: Hold, planTokens: number, costUsd: number): boolean {
    if (hold.over) return false;
    this.#spent = { planTokens: this.#spent.planTokens + planTokens, costUsd: this.#spent.costUsd + costUsd };
    this.release(hold);
    return true;
  }

  release(hold: Hold): void {
    if (hold.over) return;
    hold.over = true;
    this.#heldTokens -= hold.planTokens;
    this.#heldUsd -= hold.usd;
    this.#holds--;
    if (hold.stream) this.#streams--;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves when a running call has ended, after so many milliseconds at the latest, or when the caller leaves. */
  freed(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = () => {
        cancel();
        signal.removeEventListener('abort', left);
        resolve();
      };
      const left = () => {
        cancel();
        this.#waiting = this.#waiting.filter((one) => one !== wake);
        reject(signal.reason);
      };
      const cancel = this.#clock.after(milliseconds, () => {
        this.#waiting = this.#waiting.filter((one) => one !== wake);
        wake();
      });
      if (signal.aborted) return left();
      signal.addEventListener('abort', left, { once: true });
      this.#waiting.push(wake);
    });
  }

  allowance({ monthlyTokens }: Plan): Allowance | undefined {
    if (monthlyTokens === undefined) return undefined;
    return {
      limit: monthlyTokens,
      remaining: Math.max(0, monthlyTokens - this.#spent.planTokens - this.#heldTokens),
      reset: secondsToNextMonth(this.#clock.now()),
    };
  }
}

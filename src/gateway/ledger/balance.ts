import type { Clock } from '#kit/clock';
import type { Allowance } from '#model/generate';
import { secondsToNextMonth, type Plan, type Spent } from '#model/plan';
import { Line, type Place } from './line.ts';
import { Minute } from './minute.ts';

/** What a call may cost: plan tokens and US dollars. */
export interface Amount {
  readonly planTokens: number;
  readonly usd: number;
}

/** What is set aside for one call. */
export interface Hold {
  amount: Amount;
  readonly stream: boolean;
  settled: boolean;
}

/** What one user does at the moment, whichever month it is. */
class Doing {
  readonly minute: Minute;
  readonly line: Line;
  streams = 0;

  constructor(clock: Clock) {
    this.minute = new Minute(clock);
    this.line = new Line(clock);
  }
}

/** What one user has spent in one month and what running calls may still spend. */
export class Balance {
  readonly month: string;
  readonly loaded: Promise<void>;
  ready = false;
  readonly #clock: Clock;
  readonly #doing: Doing;
  #spent: Spent = { planTokens: 0, costUsd: 0 };
  #held: Amount = nothing;
  #holds = 0;

  /** @param before the same user's balance of an earlier month */
  constructor(month: string, spent: Promise<Spent>, clock: Clock, before?: Balance) {
    this.month = month;
    this.#clock = clock;
    this.#doing = before ? before.#doing : new Doing(clock);
    this.loaded = spent.then((loaded) => {
      this.#spent = loaded;
      this.ready = true;
    });
    this.loaded.catch(() => undefined);
  }

  get minute(): Minute {
    return this.#doing.minute;
  }

  get line(): Line {
    return this.#doing.line;
  }

  get idle(): boolean {
    return this.#holds === 0 && this.#doing.streams === 0 && this.#doing.line.empty;
  }

  /** What is not spent. */
  unspent({ monthlyTokens = Infinity, monthlyUsd = Infinity }: Plan): Amount {
    return { planTokens: Math.max(0, monthlyTokens - this.#spent.planTokens), usd: Math.max(0, monthlyUsd - this.#spent.costUsd) };
  }

  /** What is neither spent nor set aside. */
  left(plan: Plan): Amount {
    const { planTokens, usd } = this.unspent(plan);
    return { planTokens: Math.max(0, planTokens - this.#held.planTokens), usd: Math.max(0, usd - this.#held.usd) };
  }

  /** Sets aside as much as wanted; the answer says what stands in the way: spent for good, or held by running calls and those that came before. */
  hold({ least, most }: { least: Amount; most: Amount }, plan: Plan, place: Place): Hold | 'spent' | 'held' | 'streams' {
    if (!fits(least, this.unspent(plan)) || plan.monthlyTokens === 0 || plan.monthlyUsd === 0) return 'spent';
    const before = this.line.before(place);
    if (before) return before;
    if (place.stream && this.#doing.streams >= (plan.concurrentStreams ?? Infinity)) return 'streams';
    const left = this.left(plan);
    if (!fits(least, left)) return 'held';
    const hold: Hold = { amount: nothing, stream: place.stream, settled: false };
    this.#holds++;
    if (hold.stream) this.#doing.streams++;
    this.#setAside(hold, { planTokens: Math.min(most.planTokens, left.planTokens), usd: Math.min(most.usd, left.usd) });
    return hold;
  }

  /** Makes a hold as large as wanted, or at least as large as needed. */
  grow(hold: Hold, { least, most }: { least: Amount; most: Amount }, plan: Plan): boolean {
    const left = this.left(plan);
    const reach = { planTokens: hold.amount.planTokens + left.planTokens, usd: hold.amount.usd + left.usd };
    if (!fits(least, reach)) return false;
    const { planTokens, usd } = hold.amount;
    this.#setAside(hold, {
      planTokens: Math.max(planTokens, Math.min(most.planTokens, reach.planTokens)),
      usd: Math.max(usd, Math.min(most.usd, reach.usd)),
    });
    return true;
  }

  /** Books what a call has cost and frees what was set aside for it. @returns false when that was done before */
  settle(hold: Hold, planTokens: number, costUsd: number): boolean {
    if (hold.settled) return false;
    hold.settled = true;
    this.#spent = { planTokens: this.#spent.planTokens + planTokens, costUsd: this.#spent.costUsd + costUsd };
    this.#setAside(hold, nothing);
    if (--this.#holds === 0) this.#held = nothing; // sums of dollars drift
    if (hold.stream) this.#doing.streams--;
    this.line.move();
    return true;
  }

  allowance(plan: Plan): Allowance | undefined {
    if (plan.monthlyTokens === undefined) return undefined;
    return { limit: plan.monthlyTokens, remaining: this.left(plan).planTokens, reset: secondsToNextMonth(this.#clock.now()) };
  }

  #setAside(hold: Hold, amount: Amount): void {
    const { planTokens, usd } = this.#held;
    this.#held = { planTokens: planTokens + amount.planTokens - hold.amount.planTokens, usd: usd + amount.usd - hold.amount.usd };
    hold.amount = amount;
  }
}

const nothing: Amount = { planTokens: 0, usd: 0 };

const fits = (small: Amount, large: Amount) => small.planTokens <= large.planTokens && small.usd <= large.usd;

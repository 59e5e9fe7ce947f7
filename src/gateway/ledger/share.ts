import type { Account } from '#model/account';
import { grantOf, type Ask, type Grant, type Return } from '#model/lease';

/** An ask of a worker that could not be granted at once. */
export interface Waiting {
  readonly worker: string;
  readonly ask: Ask;
  readonly answer: (grant: Grant) => void;
  readonly refuse: (cause: unknown) => void;
  /** The source had its turn: only what other workers give back can help now. */
  late: boolean;
}

/** Permits that were used, `at` in monotonic milliseconds. */
interface Used {
  readonly count: number;
  readonly at: number;
}

/** Near the edge of an account no stock is wanted: what one worker hoards the others cannot spend. */
const edge = 8;

/** One account as the parent of some workers has it: what is free, who has what, who waits. */
export class Share {
  readonly account: Account;
  /** Leased from the source and with no worker. Less than nothing where a dead worker has spent more than it had. */
  free = 0;
  line: Waiting[] = [];
  /** A stock for all workers is wanted from the source, of so much; 0: none. */
  stock = 0;
  askedAt = 0;
  /** Until then (monotonic milliseconds) what workers give back goes on to the source. */
  recalledUntil = 0;
  /** What each worker was granted, has not given back and not reported as used: it holds it or has spent it. */
  readonly #out = new Map<string, number>();
  #used: Used[] = [];
  #limit = 0;
  #spent = 0;
  /** What the source had left when it was last asked. */
  #left = Infinity;

  constructor(account: Account) {
    this.account = account;
  }

  get isEmpty(): boolean {
    return this.free === 0 && this.line.length === 0 && this.#used.length === 0 && [...this.#out.values()].every((amount) => amount === 0);
  }

  get hasUsed(): boolean {
    return this.#used.length > 0;
  }

  /** Takes an ask into the line. */
  join(waiting: Waiting, workers: number, now: number): void {
    const { least, limit, wish, used } = waiting.ask;
    this.report(waiting.worker, used, now);
    this.#limit = limit;
    this.askedAt = now;
    if (this.free < wish && this.#left >= edge * workers * least) this.stock = wish * workers;
    this.line.push(waiting);
  }

  /** Grants what is free to those who wait, in order, until one does not fit. */
  serve(workers: number): void {
    for (let first = this.line[0]; first && this.free > 0 && this.free >= first.ask.least; first = this.line[0]) {
      this.line.shift();
      const granted = grantOf(first.ask, this.free, workers);
      this.give(first.worker, granted);
      first.answer(this.#grant(granted));
    }
  }

  /** What those who wait, and a stock, need beyond what is free: one ask for the source. The used permits go with it. */
  nextAsk(now: number): Ask {
    const waiting = this.line.reduce((sum, { ask }) => sum + Math.max(ask.least, ask.waiting), 0);
    const beyond = (amount: number) => Math.max(0, amount - this.free);
    const { account, stock } = this;
    this.stock = 0;
    for (const one of this.line) one.late = true;
    return {
      account,
      limit: this.#limit,
      least: beyond(this.line[0]?.ask.least ?? 0),
      waiting: beyond(waiting),
      wish: beyond(Math.max(waiting, stock)),
      ...this.takeUsed(now),
    };
  }

  heard({ granted, spent, left }: Grant): void {
    this.free += granted;
    this.#spent = spent;
    this.#left = left;
  }

  /** Moves from what is free to a worker, or back. */
  give(worker: string, amount: number): void {
    this.free -= amount;
    this.#out.set(worker, (this.#out.get(worker) ?? 0) + amount);
  }

  /** Takes note of a worker's used permits. */
  report(worker: string, used: Ask['used'], now: number): void {
    for (const { count, ageSeconds } of used ?? []) {
      this.#used.push({ count, at: now - ageSeconds * 1000 });
      this.#out.set(worker, (this.#out.get(worker) ?? 0) - count);
    }
  }

  /** The used permits that the source does not know of; it is told with what they are put into. */
  takeUsed(now: number): { readonly used?: NonNullable<Return['used']> } {
    const used = this.#used.splice(0);
    return used.length === 0 ? {} : { used: used.map(({ count, at }) => ({ count, ageSeconds: (now - at) / 1000 })) };
  }

  /** The source could not be told after all. */
  putUsedBack({ used = [] }: Pick<Return, 'used'>, then: number): void {
    this.#used.unshift(...used.map(({ count, ageSeconds }) => ({ count, at: then - ageSeconds * 1000 })));
  }

  /** Those who still wait although the source has answered. A recall can help those for whom what is settled leaves room. */
  get short(): { readonly hopeful: Waiting[]; readonly hopeless: Waiting[] } {
    const late = this.line.filter((one) => one.late);
    const isHopeful = ({ worker, ask }: Waiting) => ask.least > 0 && this.#limit - this.#spent >= ask.least && this.holders(worker).length > 0;
    return { hopeful: late.filter(isHopeful), hopeless: late.filter((one) => !isHopeful(one)) };
  }

  /** The workers that may have something, but for one. */
  holders(except?: string): string[] {
    return [...this.#out].filter(([worker, amount]) => worker !== except && amount > 0).map(([worker]) => worker);
  }

  /** Tells those who wait, of the given ones, that there is nothing. */
  giveUp(waiting: readonly Waiting[]): void {
    for (const one of this.#leave(waiting)) one.answer(this.#grant(0));
  }

  /** Tells those who wait that the source refused. */
  refuse(cause: unknown): void {
    for (const one of this.#leave(this.line.filter(({ late }) => late))) one.refuse(cause);
  }

  /** A worker is gone: its asks with it. A stream ends with its process; of permits nobody knows when they were used: now, at the latest. */
  ended(worker: string, now: number): void {
    this.line = this.line.filter((one) => one.worker !== worker);
    const had = this.#out.get(worker) ?? 0;
    if (this.account.kind === 'streams') this.give(worker, -had);
    if (this.account.kind === 'requests' && had > 0) this.report(worker, [{ count: had, ageSeconds: 0 }], now);
  }

  /** What a worker that is gone has settled in its life is known: the rest is free. */
  settled(worker: string, amount: number): void {
    const had = this.#out.get(worker);
    this.#out.delete(worker);
    if (had !== undefined && this.account.month !== '') this.free += had - amount;
  }

  #leave(waiting: readonly Waiting[]): Waiting[] {
    const leaving = this.line.filter((one) => waiting.includes(one));
    this.line = this.line.filter((one) => !leaving.includes(one));
    return leaving;
  }

  #grant(granted: number): Grant {
    return { granted, spent: this.#spent, left: Math.max(0, this.free) + (Number.isFinite(this.#left) ? this.#left : 0) };
  }
}

import type { Account } from '#core/account';
import { grantOf, type LeaseRequest, type LeaseGrant, type LeaseReturn } from '#core/lease';
import { drift, type MessageNumbers } from '../admission/local-lease.ts';

/** A worker's request that could not be granted at once. */
export interface Waiting {
  readonly worker: string;
  readonly request: LeaseRequest;
  readonly answer: (grant: LeaseGrant) => void;
  readonly refuse: (cause: unknown) => void;
  /** The source has answered: only what other workers give back can help. */
  late: boolean;
}

/** Permits that were used, `at` in monotonic milliseconds. */
interface Used {
  readonly count: number;
  readonly at: number;
}

/** What a worker holds of an account. */
interface WorkerLease {
  /** What it was granted and has neither given back nor reported as used: it holds it or has spent it. */
  out: number;
  /** Its last message; what that moved from here to the worker, and how many used permits it reported. */
  turn: number;
  moved: number;
  reported: number;
  /** It does not get the answer to that message, and reports all of it again. */
  isRefused: boolean;
}

/** Near the edge of an account no stock is requested: what one worker hoards the others cannot spend. */
const edge = 8;

/** The lease of a machine on one account, shared among its workers: what is free, what each worker holds, which requests wait. */
export class MachineLease {
  readonly account: Account;
  /** Leased from the source and held by no worker. Negative where a dead worker has spent more than it held. */
  free = 0;
  line: Waiting[] = [];
  /** The stock to request from the source for all workers; 0: none. */
  stock = 0;
  /** When a worker last requested some of it (monotonic milliseconds). */
  askedAt = 0;
  /** Until when (monotonic milliseconds) the source gets what workers give back. */
  recalledUntil = 0;
  /** Since when (monotonic milliseconds) it has been found empty. */
  emptySince = Infinity;
  /** The next message gives back all that is free. */
  returnsAll = false;
  /** When all permits were last let go of (monotonic milliseconds). */
  lapsedAt = -Infinity;
  readonly #workers = new Map<string, WorkerLease>();
  /** Used permits that the source does not know of, in the order of their reports. */
  #used: Used[] = [];
  /** Those that the message under way reports. */
  #usedUnderWay: Used[] = [];
  /** What was given back since the last answer, and what of that the message under way reports. */
  #owed = 0;
  #owedUnderWay = 0;
  /** All was let go of while a message was under way: what the source grants for that one goes back too, since all that was let go of is taken from it. */
  #isGrantLapsed = false;
  readonly #numbers: MessageNumbers;
  #turn: number;
  #acknowledged: number;
  #limit = 0;
  #spent = 0;
  /** What the source had left when it was last asked. */
  #left = Infinity;

  constructor(account: Account, numbers: MessageNumbers) {
    this.account = account;
    this.#numbers = numbers;
    this.#turn = this.#acknowledged = numbers.last;
  }

  /** Is nothing of it held anywhere? @param unread workers that have settled more than is known here */
  isEmpty(unread: ReadonlySet<string>): boolean {
    return (
      Math.abs(this.free) < drift &&
      this.isAtRest &&
      Array.from(this.#workers).every(([worker, { out, isRefused }]) => Math.abs(out) < drift && !isRefused && !unread.has(worker))
    );
  }

  /** No request waits for it, and the source knows all that it should. */
  get isAtRest(): boolean {
    return this.line.length === 0 && this.#used.length === 0 && !this.#isUnacknowledged && this.#owed === 0;
  }

  get hasUsed(): boolean {
    return this.#used.length > 0;
  }

  /** Is there anything to request from the source? */
  get isAsking(): boolean {
    return this.stock > 0 || this.line.some(({ late }) => !late);
  }

  /** Is there anything to give back, or to report that no request will carry? */
  hasReturns(now: number): boolean {
    return this.#back(now) > 0 || (!this.isAsking && (this.hasUsed || this.#isUnacknowledged || this.#owed > 0));
  }

  /** Takes the report in a worker's message, by the same rule as the database does. */
  reported(worker: string, { turn, heard, amount, used }: LeaseReturn, now: number): void {
    const held = this.#ofWorker(worker);
    let known = 0;
    if (held.turn > heard) {
      this.give(worker, -held.moved);
      known = held.reported;
    }
    held.reported = known;
    for (const { count, ageSeconds } of used ?? []) {
      const fresh = Math.max(0, count - known);
      known = Math.max(0, known - count);
      held.reported += fresh;
      const at = now - ageSeconds * 1000;
      if (at >= this.lapsedAt) this.#use(held, fresh, at); // those before were taken back with all that the worker had
    }
    held.isRefused = false;
    held.turn = turn;
    held.moved = 0;
    // of permits no more comes back than is out: those that have lapsed went back already
    this.give(worker, -(this.account.month === '' ? Math.min(amount, Math.max(0, held.out)) : amount));
  }

  join(waiting: Waiting, workers: number, now: number): void {
    const { least, limit, wish } = waiting.request;
    this.reported(waiting.worker, waiting.request, now);
    this.#limit = limit;
    this.askedAt = now;
    this.emptySince = Infinity;
    if (this.free < wish && this.#left >= edge * workers * least) this.stock = wish * workers;
    this.line.push(waiting);
  }

  /** Grants what is free to the waiting requests, in order, until one does not fit. */
  serve(workers: number): void {
    for (let first = this.line[0]; first && this.free > 0 && this.free >= first.request.least; first = this.line[0]) {
      this.line.shift();
      const granted = grantOf(first.request, this.free, workers);
      this.give(first.worker, granted);
      first.answer(this.#grant(granted));
    }
  }

  /** One request to the source for what the waiting requests and the stock need beyond what is free. It reports the used permits. */
  nextRequest(now: number): LeaseRequest {
    const waiting = this.line.reduce((sum, { request }) => sum + Math.max(request.least, request.waiting), 0);
    const beyond = (amount: number) => Math.max(0, amount - this.free);
    const { stock } = this;
    this.stock = 0;
    for (const one of this.line) one.late = true;
    return {
      ...this.#report(now),
      limit: this.#limit,
      least: beyond(this.line[0]?.request.least ?? 0),
      waiting: beyond(waiting),
      wish: beyond(Math.max(waiting, stock)),
      ...(this.#left === Infinity ? ({ isFirst: true } as const) : {}),
    };
  }

  /** A message to the source with what goes back to it. */
  returns(now: number): LeaseReturn {
    const amount = this.#back(now);
    this.returnsAll = false;
    this.free -= amount;
    this.#owed += amount;
    return this.#report(now);
  }

  /** The source has answered the last message. */
  acknowledge(): void {
    this.#acknowledged = this.#turn;
    this.#owed = Math.max(0, this.#owed - this.#owedUnderWay);
    this.#usedUnderWay = [];
  }

  /** A worker does not get the answer to its last message. */
  refused(worker: string): void {
    const held = this.#workers.get(worker);
    if (held) held.isRefused = true;
  }

  /** Lets go of all permits, those with workers too: the source may have ended them. The workers are told separately. */
  lapse(now: number): void {
    this.#owed += Math.max(0, this.free) + this.holders().reduce((sum, worker) => sum + this.#ofWorker(worker).out, 0);
    this.free = 0;
    for (const held of this.#workers.values()) [held.out, held.moved] = [0, 0];
    this.lapsedAt = now;
    this.#isGrantLapsed = this.#isUnacknowledged;
  }

  /** The last message failed: what the source did with it is not known. */
  missed(): void {
    this.#used.unshift(...this.#usedUnderWay.splice(0));
  }

  granted({ granted, spent, left }: LeaseGrant): void {
    if (this.#isGrantLapsed) this.#owed += granted;
    else this.free += granted;
    this.#isGrantLapsed = false;
    this.#spent = spent;
    this.#left = left;
  }

  /** Moves from what is free to a worker, or back. */
  give(worker: string, amount: number): void {
    const held = this.#ofWorker(worker);
    this.free -= amount;
    held.out += amount;
    held.moved += amount;
  }

  /** The requests that still wait although the source has answered. A recall can help those for which what is settled leaves room. */
  get short(): { readonly hopeful: Waiting[]; readonly hopeless: Waiting[] } {
    const late = this.line.filter((one) => one.late);
    const isHopeful = ({ worker, request }: Waiting) =>
      request.least > 0 && this.#limit - this.#spent >= request.least - (request.debt ?? 0) && this.holders(worker).length > 0;
    return { hopeful: late.filter(isHopeful), hopeless: late.filter((one) => !isHopeful(one)) };
  }

  /** The workers that may hold something, except one. */
  holders(except?: string): string[] {
    return [...this.#workers].filter(([worker, { out }]) => worker !== except && out > 0).map(([worker]) => worker);
  }

  /** Answers those of the given requests that still wait: nothing is granted. */
  giveUp(waiting: readonly Waiting[]): void {
    for (const one of this.#leave(waiting)) one.answer(this.#grant(0));
  }

  /** Refuses the requests that the source was asked for. */
  refuse(cause: unknown): void {
    for (const one of this.#leave(this.line.filter(({ late }) => late))) one.refuse(cause);
  }

  /**
   * A worker is gone, and its requests with it. A stream ends with its process. When permits were used is not known: now, at the latest. Only whole permits
   * count as used; a fraction left of a share is given back.
   */
  ended(worker: string, now: number): void {
    this.line = this.line.filter((one) => one.worker !== worker);
    const held = this.#workers.get(worker);
    if (!held || this.account.month !== '') return;
    if (this.account.kind !== 'streams') this.#use(held, Math.max(0, Math.floor(held.out + drift)), now);
    if (this.account.kind === 'streams' || held.out > 0) this.give(worker, -held.out);
  }

  /** What a worker has settled is in the books, and no longer with the worker. */
  covered(worker: string, amount: number): void {
    const held = this.#workers.get(worker);
    if (held) held.out -= amount;
  }

  /** A worker is gone, and `amount` is what it has settled beyond what was covered: the rest of what it held is free. */
  settled(worker: string, amount: number): void {
    const held = this.#workers.get(worker);
    this.#workers.delete(worker);
    if (held && this.account.month !== '') this.free += held.out - amount;
  }

  get #isUnacknowledged(): boolean {
    return this.#turn > this.#acknowledged;
  }

  #back(now: number): number {
    return this.returnsAll || this.recalledUntil > now ? Math.max(0, this.free) : 0;
  }

  #ofWorker(worker: string): WorkerLease {
    const held = this.#workers.get(worker) ?? { out: 0, turn: 0, moved: 0, reported: 0, isRefused: false };
    this.#workers.set(worker, held);
    return held;
  }

  #use(held: WorkerLease, count: number, at: number): void {
    if (count === 0) return;
    this.#used.push({ count, at });
    held.out -= count;
  }

  /** The report that every message to the source carries. */
  #report(now: number): LeaseReturn {
    this.#turn = ++this.#numbers.last;
    this.#isGrantLapsed = false;
    this.#usedUnderWay = this.#used.splice(0);
    this.#owedUnderWay = this.#owed;
    const report = { account: this.account, turn: this.#turn, heard: this.#acknowledged, amount: this.#owed };
    if (this.#usedUnderWay.length === 0) return report;
    return { ...report, used: this.#usedUnderWay.map(({ count, at }) => ({ count, ageSeconds: (now - at) / 1000 })) };
  }

  #leave(waiting: readonly Waiting[]): Waiting[] {
    const leaving = this.line.filter((one) => waiting.includes(one));
    this.line = this.line.filter((one) => !leaving.includes(one));
    return leaving;
  }

  #grant(granted: number): LeaseGrant {
    return { granted, spent: this.#spent, left: Math.max(0, this.free) + (Number.isFinite(this.#left) ? this.#left : 0) };
  }
}

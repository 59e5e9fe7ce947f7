import type { Account } from '#core/account';
import { grantOf, type LeaseRequest, type LeaseGrant, type LeaseReturn } from '#core/lease';
import { drift, type MessageNumbers } from '../admission/local-lease.ts';

/** An ask of a worker that could not be granted at once. */
export interface Waiting {
  readonly worker: string;
  readonly ask: LeaseRequest;
  readonly answer: (grant: LeaseGrant) => void;
  readonly refuse: (cause: unknown) => void;
  /** The source had its turn: only what other workers give back can help now. */
  late: boolean;
}

/** Permits that were used, `at` in monotonic milliseconds. */
interface Used {
  readonly count: number;
  readonly at: number;
}

/** What a worker has of an account. */
interface Part {
  /** What it was granted, has not given back and not reported as used: it holds it or has spent it. */
  out: number;
  /** Its last message; what that moved from here to the worker, and how many used permits it spoke of. */
  turn: number;
  moved: number;
  reported: number;
  /** It will not hear the answer to that message, and says all of it again. */
  isRefused: boolean;
}

/** Near the edge of an account no stock is wanted: what one worker hoards the others cannot spend. */
const edge = 8;

/** One account as the parent of some workers has it: what is free, who has what, who waits. */
export class MachineLease {
  readonly account: Account;
  /** Leased from the source and with no worker. Less than nothing where a dead worker has spent more than it had. */
  free = 0;
  line: Waiting[] = [];
  /** A stock for all workers is wanted from the source, of so much; 0: none. */
  stock = 0;
  askedAt = 0;
  /** Until then (monotonic milliseconds) what workers give back goes on to the source. */
  recalledUntil = 0;
  /** Since when (monotonic milliseconds) nothing was found to be held of it. */
  emptySince = Infinity;
  /** All that is free is to go back with the next message. */
  returnsAll = false;
  /** When all permits were let go of last (monotonic milliseconds). */
  lapsedAt = -Infinity;
  readonly #parts = new Map<string, Part>();
  /** Permits that the source does not know of, in the order of their reports. */
  #used: Used[] = [];
  /** Those of them that it is being told of. */
  #usedUnderWay: Used[] = [];
  /** What was given back since the last answer, and what of that the message under way speaks of. */
  #owed = 0;
  #owedUnderWay = 0;
  readonly #turns: MessageNumbers;
  #turn: number;
  #heard: number;
  #limit = 0;
  #spent = 0;
  /** What the source had left when it was last asked. */
  #left = Infinity;

  constructor(account: Account, turns: MessageNumbers) {
    this.account = account;
    this.#turns = turns;
    this.#turn = this.#heard = turns.last;
  }

  /** Nothing of it is anywhere. @param unread workers that have settled what is not known here */
  isEmpty(unread: ReadonlySet<string>): boolean {
    return (
      Math.abs(this.free) < drift &&
      this.isAtRest &&
      Array.from(this.#parts).every(([worker, { out, isRefused }]) => Math.abs(out) < drift && !isRefused && !unread.has(worker))
    );
  }

  /** Nobody waits for it, and the source knows all that it should. */
  get isAtRest(): boolean {
    return this.line.length === 0 && this.#used.length === 0 && !this.#isUnheard && this.#owed === 0;
  }

  get hasUsed(): boolean {
    return this.#used.length > 0;
  }

  /** Is there anything that the source should be asked? */
  get isAsking(): boolean {
    return this.stock > 0 || this.line.some(({ late }) => !late);
  }

  /** Is there anything that should go back to it, or that it should know and will not hear with an ask? */
  hasReturns(now: number): boolean {
    return this.#back(now) > 0 || (!this.isAsking && (this.hasUsed || this.#isUnheard || this.#owed > 0));
  }

  /** Takes what a worker says with each message: the same rule as in the database. */
  told(worker: string, { turn, heard, amount, used }: LeaseReturn, now: number): void {
    const part = this.#partOf(worker);
    let known = 0;
    if (part.turn > heard) {
      this.give(worker, -part.moved);
      known = part.reported;
    }
    part.reported = known;
    for (const { count, ageSeconds } of used ?? []) {
      const fresh = Math.max(0, count - known);
      known = Math.max(0, known - count);
      part.reported += fresh;
      const at = now - ageSeconds * 1000;
      if (at >= this.lapsedAt) this.#use(part, fresh, at); // those before were taken back with all that the worker had
    }
    part.isRefused = false;
    part.turn = turn;
    part.moved = 0;
    // of permits no more comes back than is out: those that have lapsed went back already
    this.give(worker, -(this.account.month === '' ? Math.min(amount, Math.max(0, part.out)) : amount));
  }

  /** Takes an ask into the line. */
  join(waiting: Waiting, workers: number, now: number): void {
    const { least, limit, wish } = waiting.ask;
    this.told(waiting.worker, waiting.ask, now);
    this.#limit = limit;
    this.askedAt = now;
    this.emptySince = Infinity;
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
  nextAsk(now: number): LeaseRequest {
    const waiting = this.line.reduce((sum, { ask }) => sum + Math.max(ask.least, ask.waiting), 0);
    const beyond = (amount: number) => Math.max(0, amount - this.free);
    const { stock } = this;
    this.stock = 0;
    for (const one of this.line) one.late = true;
    return {
      ...this.#tells(now),
      limit: this.#limit,
      least: beyond(this.line[0]?.ask.least ?? 0),
      waiting: beyond(waiting),
      wish: beyond(Math.max(waiting, stock)),
    };
  }

  /** A message to the source with what goes back to it. */
  returns(now: number): LeaseReturn {
    const amount = this.#back(now);
    this.returnsAll = false;
    this.free -= amount;
    this.#owed += amount;
    return this.#tells(now);
  }

  /** The source has answered. */
  heard(): void {
    this.#heard = this.#turn;
    this.#owed = Math.max(0, this.#owed - this.#owedUnderWay);
    this.#usedUnderWay = [];
  }

  /** A worker does not hear the answer to its last message. */
  refused(worker: string): void {
    const part = this.#parts.get(worker);
    if (part) part.isRefused = true;
  }

  /** Lets go of all permits, those with workers too: the source may have ended them. The workers are told so. */
  lapse(now: number): void {
    this.#owed += Math.max(0, this.free) + this.holders().reduce((sum, worker) => sum + this.#partOf(worker).out, 0);
    this.free = 0;
    for (const part of this.#parts.values()) [part.out, part.moved] = [0, 0];
    this.lapsedAt = now;
  }

  /** It is not known what the source did. */
  missed(): void {
    this.#used.unshift(...this.#usedUnderWay.splice(0));
  }

  granted({ granted, spent, left }: LeaseGrant): void {
    this.free += granted;
    this.#spent = spent;
    this.#left = left;
  }

  /** Moves from what is free to a worker, or back. */
  give(worker: string, amount: number): void {
    const part = this.#partOf(worker);
    this.free -= amount;
    part.out += amount;
    part.moved += amount;
  }

  /** Those who still wait although the source has answered. A recall can help those for whom what is settled leaves room. */
  get short(): { readonly hopeful: Waiting[]; readonly hopeless: Waiting[] } {
    const late = this.line.filter((one) => one.late);
    const isHopeful = ({ worker, ask }: Waiting) =>
      ask.least > 0 && this.#limit - this.#spent >= ask.least - (ask.debt ?? 0) && this.holders(worker).length > 0;
    return { hopeful: late.filter(isHopeful), hopeless: late.filter((one) => !isHopeful(one)) };
  }

  /** The workers that may have something, but for one. */
  holders(except?: string): string[] {
    return [...this.#parts].filter(([worker, { out }]) => worker !== except && out > 0).map(([worker]) => worker);
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
    const part = this.#parts.get(worker);
    if (!part) return;
    if (this.account.kind === 'streams') this.give(worker, -part.out);
    if (this.account.kind === 'requests' && part.out > 0) this.#use(part, part.out, now);
  }

  /** A worker has settled so much: it is in the books, and no longer with the worker. */
  covered(worker: string, amount: number): void {
    const part = this.#parts.get(worker);
    if (part) part.out -= amount;
  }

  /** What a worker that is gone has settled beyond what was covered is known: the rest is free. */
  settled(worker: string, amount: number): void {
    const part = this.#parts.get(worker);
    this.#parts.delete(worker);
    if (part && this.account.month !== '') this.free += part.out - amount;
  }

  get #isUnheard(): boolean {
    return this.#turn > this.#heard;
  }

  #back(now: number): number {
    return this.returnsAll || this.recalledUntil > now ? Math.max(0, this.free) : 0;
  }

  #partOf(worker: string): Part {
    const part = this.#parts.get(worker) ?? { out: 0, turn: 0, moved: 0, reported: 0, isRefused: false };
    this.#parts.set(worker, part);
    return part;
  }

  #use(part: Part, count: number, at: number): void {
    if (count === 0) return;
    this.#used.push({ count, at });
    part.out -= count;
  }

  /** What every message to the source says. */
  #tells(now: number): LeaseReturn {
    this.#turn = ++this.#turns.last;
    this.#usedUnderWay = this.#used.splice(0);
    this.#owedUnderWay = this.#owed;
    const told = { account: this.account, turn: this.#turn, heard: this.#heard, amount: this.#owed };
    if (this.#usedUnderWay.length === 0) return told;
    return { ...told, used: this.#usedUnderWay.map(({ count, at }) => ({ count, ageSeconds: (now - at) / 1000 })) };
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

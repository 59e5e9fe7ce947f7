import type { Account, Charge } from '#core/account';
import type { Fault } from '#core/fault';
import type { Contact, LeaseReturn } from '#core/lease';
import { minute, SlidingWindow } from './sliding-window.ts';

/** Sums of dollars, and of an eighth of an eighth of what is left, drift by less than this. */
export const drift = 1e-9;

/** Milliseconds over which recent use is averaged. */
const recently = 60_000;

/** What a call sets aside of one account: `least` must be there, up to `most` is taken. `step` is what such calls take at a time, for the stock. */
export class Hold {
  readonly lease: LocalLease;
  least = 0;
  most = 0;
  step = 0;
  /** Less than `most` is taken only where the source has no more. */
  isPatient = false;
  /** Another step of the same request has taken it. */
  isTaken = false;
  /** What is set aside for the call. */
  held = 0;
  /** The place of its call among all that have waited, the same in every line. A call without a place comes last. */
  order = Infinity;
  /** The holds of its call, itself among them. */
  ofCall: readonly Hold[] = [];
  /** How many requests had been sent when it first lacked something; below 0: it has not. */
  lackedAt = -1;
  /** Callbacks of the call that waits in line. */
  wake: (() => void) | undefined;
  fail: ((fault: Fault) => void) | undefined;

  constructor(lease: LocalLease) {
    this.lease = lease;
  }
}

/** How much more a running answer must have to go on (`least`), and should have (`most`). */
export interface Growth {
  readonly least: number;
  readonly most: number;
}

/**
 * Why a hold cannot be taken. `spent`: the account is used up for its period. `minute`: the last minute is full, or the limit is 0. `here`: running or earlier
 * calls of this process hold it. `elsewhere`: the source or other holders have it.
 */
export type Lack = 'spent' | 'minute' | 'here' | 'elsewhere';

/** Numbers the messages of this process to the source. */
export interface MessageNumbers {
  last: number;
}

/** The lease of this process on one account: what it may spend without asking, and what it knows about the rest. */
export class LocalLease {
  readonly account: Account;
  readonly name: string;
  /** As rows name it; undefined for limits of a minute and of streams. */
  readonly charge: Charge | undefined;
  limit = 0;
  granted = 0;
  settled = 0;
  reserved = 0;
  /** Calls with something set aside. */
  running = 0;
  /** The times of use, for an account of a minute. */
  readonly minute: SlidingWindow | undefined;
  /** Holds that wait for this account, first come first. */
  readonly line = new Set<Hold>();
  /** What running answers want more. */
  growth: Growth | undefined;
  /** Called at the next answer, or with why there is none. */
  readonly listeners: ((fault?: Fault) => void)[] = [];
  /** Requests sent and answered. */
  sent = 0;
  answered = 0;
  /** A message about it is under way to the source: one at a time, so that the source gets them in order. */
  isSending = false;
  /** Neither spent nor leased at the last answer. */
  left = 0;
  /** What was free after the last answer. */
  level = 0;
  /** What a call takes at a time. */
  step = 0;
  usedAt = 0;
  /** Monotonic milliseconds until which another holder waits for this account: what is not needed goes back at once. */
  recalledUntil = -Infinity;
  /** Monotonic milliseconds before which no stock is requested. */
  quietUntil = -Infinity;
  pollArmed = false;
  /** The share of the limit, in per cent, that somebody was told is spent, and the limit then: what is reached of a raised one is told again. */
  toldShare = 0;
  toldOf = 0;
  /** What was given back since the last answer: it is no longer this holder's, whether or not the source has it. */
  #owed = 0;
  /** What of that the message under way reports. */
  #owedUnderWay = 0;
  /** All was let go of while a message was under way: what the source grants for that one goes back too, since all that was let go of is taken from it. */
  #isGrantLapsed = false;
  /** The greatest order that has been in line. */
  #newest = 0;
  readonly #contact: Pick<Contact, 'goodUntil'> | undefined;
  readonly #numbers: MessageNumbers;
  #turn: number;
  #acknowledged: number;
  /** Requests of the last minute, of all holders, when the source last answered. */
  #lastUsed = 0;
  #firstSpent = 0;
  /** What calls have cost since the first answer that were let in before the limit began. */
  #late = 0;
  #lastSpent = 0;
  #recent = 0;
  #recentAt = 0;
  /** At the last `learn`: what all holders had spent (for a minute: what the others had used), what was settled here, and the time. */
  #learned = 0;
  #settledThen = 0;
  #learnedAt = -Infinity;

  /** @param contact for accounts of permits: while it is not good, no permit is used */
  constructor(account: Account, name: string, numbers: MessageNumbers, contact?: Pick<Contact, 'goodUntil'>) {
    this.account = account;
    this.name = name;
    this.charge = account.month === '' ? undefined : (`${account.kind} ${account.owner}` as Charge);
    this.#contact = account.month === '' ? contact : undefined;
    this.#numbers = numbers;
    this.#turn = this.#acknowledged = numbers.last;
    this.minute = account.kind === 'requests' || account.kind === 'tokens' ? new SlidingWindow(account.kind === 'tokens') : undefined;
  }

  /** What may be set aside without asking. Negative where more was billed than was granted. */
  get free(): number {
    return this.granted - this.settled - this.reserved;
  }

  /** What was billed beyond what was granted. */
  get debt(): number {
    return Math.max(0, this.settled - this.granted);
  }

  /** What is known to be spent; other holders may have spent more that has not been shipped yet. */
  get spent(): number {
    return this.account.month === '' ? 0 : Math.max(this.#lastSpent, this.#firstSpent + this.settled + this.#late);
  }

  /** What this process could still set aside if everybody else gave back all: never less than what is left. */
  room(now: number): number {
    return this.limit - (this.minute ? this.minute.used(now) : this.spent) - this.reserved;
  }

  /** What is left for all holders together, as far as is known. Only reported to clients; admission does not use it. */
  remaining(now: number): number {
    const room = this.room(now);
    if (this.minute) return now - this.#learnedAt < minute ? room - this.#learned : room;
    return Math.min(room, this.limit - this.#learned - (this.settled - this.#settledThen) - this.reserved);
  }

  /** @param spent what is booked of it by all holders; of a minute, what they have reported as used */
  learn(spent: number, now: number): void {
    this.#learned = this.minute ? Math.max(0, spent - this.minute.reported(now)) : spent;
    this.#settledThen = this.settled;
    this.#learnedAt = now;
  }

  /** What can be had, as far as is known; while the source is away, what is here. */
  reach(now: number): number {
    return Math.min(this.room(now), now < this.quietUntil ? this.free : this.left + this.free);
  }

  /** Why the hold cannot be taken now; undefined where it can. */
  lack(hold: Hold, now: number): Lack | undefined {
    if (hold.isTaken) return undefined;
    const { least, most } = hold;
    const monthly = this.account.month !== '';
    if (this.limit === 0) return monthly ? 'spent' : 'minute';
    if (monthly ? !this.isKnown : this.isOutOfContact(now)) return 'elsewhere';
    if (monthly && least > this.limit - this.spent + drift) return 'spent';
    const room = this.room(now);
    if (least > room + drift) return this.minute && least > room + this.reserved ? 'minute' : 'here';
    if (this.line.size > 0 && first(this.line)!.order < hold.order) return 'here';
    const { free } = this;
    if (free + drift >= Math.min(most, room)) return undefined;
    const isFresh = this.isAnswered(hold);
    if ((isFresh || (hold.isPatient && now < this.quietUntil)) && free + drift >= least) return undefined;
    return isFresh && this.minute && this.#lastUsed > this.limit - least ? 'minute' : 'elsewhere';
  }

  /** Has the source answered yet, so that it is known here what was spent elsewhere? */
  get isKnown(): boolean {
    return this.answered > 0;
  }

  /** Has the source answered since the hold first lacked something? The rest of a lease is granted first, so a patient hold waits for a second answer. */
  isAnswered({ lackedAt, isPatient }: Hold): boolean {
    return lackedAt >= 0 && this.answered > lackedAt + (isPatient && this.left > drift ? 1 : 0);
  }

  /** Puts the hold in line, in the order of the calls: one that comes back to a line goes before those that came later. */
  queue(hold: Hold): void {
    if (this.line.has(hold)) return;
    this.line.add(hold);
    if (hold.order > this.#newest) {
      this.#newest = hold.order;
      return;
    }
    for (const later of [...this.line].filter(({ order }) => order > hold.order)) {
      this.line.delete(later);
      this.line.add(later);
    }
  }

  /** Sets aside what the hold wants, as far as it is there. */
  take(hold: Hold, now: number): void {
    this.running++;
    this.step = hold.step;
    this.usedAt = now;
    if (hold.isTaken) return;
    if (this.account.kind === 'requests') {
      this.settled++;
      this.minute!.add(now);
      return;
    }
    hold.held = Math.max(hold.least, Math.min(hold.most, this.free, this.room(now)));
    this.reserved += hold.held;
  }

  /** Changes what is set aside for a hold. */
  grow(hold: Hold, amount: number): void {
    this.reserved += amount - hold.held;
    hold.held = amount;
  }

  /** Books what a call has cost and frees what was set aside for it. */
  settle(hold: Hold, cost: number, now: number): void {
    this.running--;
    this.usedAt = now;
    if (this.account.kind === 'requests') return;
    if (cost > 0) this.minute?.add(now, cost);
    this.reserved = this.running === 0 ? 0 : this.reserved - hold.held; // sums of dollars drift
    hold.held = 0;
    this.settled += cost;
    this.#recent = this.#recentAt === 0 ? cost : this.#recent * Math.exp((this.#recentAt - now) / recently) + cost;
    this.#recentAt = now;
  }

  /** Notes the cost of a call that set nothing aside here. Before the first answer there is nothing to add to: the source knows it, or will. */
  noteLate(cost: number): void {
    if (this.isKnown) this.#late += cost;
  }

  /** Takes a grant of the source, and what the source knows. */
  receive(granted: number, spent: number, left: number): void {
    if (this.answered === 0) this.#firstSpent = spent;
    this.#lastSpent = Math.max(this.#lastSpent, spent);
    this.#lastUsed = spent;
    if (this.#isGrantLapsed) this.#owed += granted;
    else this.granted += granted;
    this.#isGrantLapsed = false;
    this.left = left;
    this.level = this.free;
    this.answered = this.sent;
  }

  /** A stock for calls to come: 64 of the last one's size, or what was used in 180 seconds at the recent pace. */
  stock(now: number): number {
    const pace = this.minute ? this.minute.used(now) / recently : (this.#recent * Math.exp((this.#recentAt - now) / recently)) / recently;
    return Math.max(64 * this.step, 180_000 * pace);
  }

  /** Is there anything to give back or to report? */
  get hasReturns(): boolean {
    return this.free > 0 || (this.minute?.unreportedCount ?? 0) > 0 || this.owes;
  }

  /** May there be something that the source does not know and should? */
  get owes(): boolean {
    return this.isUnacknowledged || this.#owed > 0;
  }

  /** Are these permits whose holder the source may believe to be gone? */
  isOutOfContact(now: number): boolean {
    return this.#contact !== undefined && now >= this.#contact.goodUntil;
  }

  /**
   * Lets go of all permits, those of running streams too: the source may have ended them. Those that were used are still reported: where the source has ended
   * nothing, they would stay leased for good.
   * @param isTakenBack the source has taken them back, so there is nothing to report
   */
  lapse(isTakenBack: boolean): void {
    const all = this.granted - this.settled;
    this.granted -= all;
    this.#owed = isTakenBack ? 0 : this.#owed + Math.max(0, all);
    this.#isGrantLapsed = !isTakenBack && this.isUnacknowledged;
  }

  /** The last answer was lost: the source may have granted what we do not know of. */
  get isUnacknowledged(): boolean {
    return this.#turn > this.#acknowledged;
  }

  /** A message with which all that is free goes back. */
  returns(now: number): LeaseReturn {
    const amount = Math.max(0, this.free);
    this.granted -= amount;
    this.#owed += amount;
    return this.report(now);
  }

  /** The report that every message carries. */
  report(now: number): LeaseReturn {
    const { account, minute } = this;
    this.#turn = ++this.#numbers.last;
    this.#owedUnderWay = this.#owed;
    this.#isGrantLapsed = false;
    const report = { account, turn: this.#turn, heard: this.#acknowledged, amount: this.#owed };
    return minute ? { ...report, used: minute.unreported(now) } : report;
  }

  /** The source has answered the last message. @param reported requests that the message reported as used */
  acknowledge(reported: number): void {
    this.minute?.acknowledge(reported);
    this.left += this.#owedUnderWay;
    this.#owed = Math.max(0, this.#owed - this.#owedUnderWay);
    this.#acknowledged = this.#turn;
  }

  /** Is nothing of it in use? */
  get isIdle(): boolean {
    return this.running === 0 && this.line.size === 0 && !this.isSending && !this.growth;
  }
}

export function first<Item>(items: Iterable<Item>): Item | undefined {
  for (const item of items) return item;
  return undefined;
}

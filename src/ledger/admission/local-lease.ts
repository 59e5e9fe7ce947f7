import type { Account } from '#core/account';
import type { Fault } from '#core/fault';
import type { Contact, LeaseReturn } from '#core/lease';
import { SlidingWindow } from './sliding-window.ts';

/** Sums of dollars, and of an eighth of an eighth of what is left, drift by less than this. */
export const drift = 1e-9;

/** Milliseconds over which recent use is averaged. */
const recently = 60_000;

/** What a call needs of one account: `least` must be there, up to `most` is taken. `step` is what such calls take at a time, for the stock. */
export class Hold {
  readonly lease: LocalLease;
  least = 0;
  most = 0;
  step = 0;
  /** Less than `most` is taken only where the source has no more. */
  isPatient = false;
  /** Another step of its request has taken it. */
  isTaken = false;
  /** What is set aside for the call. */
  held = 0;
  /** The place of its call among all that have waited, the same in every line it stands in. One that has none yet comes last. */
  order = Infinity;
  /** How many asks had been sent when it first lacked something; below 0: it has not. */
  lackedAt = -1;
  /** Of the call that waits in line. */
  wake: (() => void) | undefined;
  fail: ((fault: Fault) => void) | undefined;

  constructor(lease: LocalLease) {
    this.lease = lease;
  }
}

/** How much more a running answer must have to go on, and should. */
export interface Growth {
  readonly least: number;
  readonly most: number;
}

/** What stands in a claim's way: it is spent for good; the minute is full, or nothing is allowed ever; running calls or those that came before hold it; it lies with the source or other holders. */
export type Lack = 'spent' | 'minute' | 'here' | 'elsewhere';

/** Numbers the messages of this process to the source. */
export interface MessageNumbers {
  last: number;
}

/** What this process may spend of one account without asking, and what it knows about the rest. */
export class LocalLease {
  readonly account: Account;
  readonly name: string;
  limit = 0;
  granted = 0;
  settled = 0;
  reserved = 0;
  /** Calls with something set aside. */
  running = 0;
  /** Of a request account: the uses themselves. */
  readonly minute: SlidingWindow | undefined;
  /** Claims that lack this account, first come first. */
  readonly line = new Set<Hold>();
  /** What running answers want more. */
  growth: Growth | undefined;
  /** Called with the next answer, or with why there is none. */
  readonly listeners: ((fault?: Fault) => void)[] = [];
  /** Asks sent and answered. */
  sent = 0;
  answered = 0;
  /** Something is under way to the source: one at a time, so that what it hears is in order. */
  talking = false;
  /** Neither spent nor leased at the last answer. */
  left = 0;
  /** What was free after the last answer. */
  level = 0;
  /** What a call takes at a time. */
  step = 0;
  usedAt = 0;
  /** Monotonic milliseconds until which others stand before the empty account: what is not needed goes back at once. */
  recalledUntil = -Infinity;
  /** No stock is asked for before. */
  quietUntil = -Infinity;
  pollArmed = false;
  /** What was given back since the last answer: it is out of our hands, wherever it is. */
  #owed = 0;
  /** What of that the message under way speaks of. */
  #owedUnderWay = 0;
  /** The greatest order that was ever in line. */
  #newest = 0;
  readonly #contact: Pick<Contact, 'goodUntil'> | undefined;
  readonly #turns: MessageNumbers;
  #turn: number;
  #heard: number;
  /** Requests of the last minute, of all holders, when the source last answered. */
  #lastUsed = 0;
  #firstSpent = 0;
  #lastSpent = 0;
  #recent = 0;
  #recentAt = 0;

  /** @param contact of permits: while it is not good none is used */
  constructor(account: Account, name: string, turns: MessageNumbers, contact?: Pick<Contact, 'goodUntil'>) {
    this.account = account;
    this.name = name;
    this.#contact = account.month === '' ? contact : undefined;
    this.#turns = turns;
    this.#turn = this.#heard = turns.last;
    this.minute = account.kind === 'requests' ? new SlidingWindow() : undefined;
  }

  /** May be set aside without asking. Below 0 where more was billed than was granted. */
  get free(): number {
    return this.granted - this.settled - this.reserved;
  }

  /** What was billed beyond what was granted. */
  get debt(): number {
    return Math.max(0, this.settled - this.granted);
  }

  /** Spent for good, at least: others may have spent what has not been shipped yet. */
  get spent(): number {
    return this.account.month === '' ? 0 : Math.max(this.#lastSpent, this.#firstSpent + this.settled);
  }

  /** What this process could still set aside if everybody else gave back all: never less than what is left. */
  room(now: number): number {
    return this.limit - (this.minute ? this.minute.used(now) : this.spent + this.reserved);
  }

  /** What is or may be had, as far as it is known: while the source is away what is here. */
  reach(now: number): number {
    return Math.min(this.room(now), now < this.quietUntil ? this.free : this.left + this.free);
  }

  /** What stands in the way of this claim, if anything does. */
  lack(hold: Hold, now: number): Lack | undefined {
    if (hold.isTaken) return undefined;
    const { least, most } = hold;
    const monthly = this.account.month !== '';
    if (this.limit === 0) return monthly ? 'spent' : 'minute';
    if (monthly ? this.answered === 0 : this.isOutOfContact(now)) return 'elsewhere';
    if (monthly && least > this.limit - this.spent + drift) return 'spent';
    const room = this.room(now);
    if (least > room + drift) return this.minute ? 'minute' : 'here';
    if (this.line.size > 0 && first(this.line)!.order < hold.order) return 'here';
    const { free } = this;
    if (free + drift >= Math.min(most, room)) return undefined;
    const isFresh = this.isAnswered(hold);
    if ((isFresh || (hold.isPatient && now < this.quietUntil)) && free + drift >= least) return undefined;
    return isFresh && this.minute && this.#lastUsed > this.limit - least ? 'minute' : 'elsewhere';
  }

  /** Has the source said since what it has for this claim? What is left of a share is granted first, and the patient ask for the rest. */
  isAnswered({ lackedAt, isPatient }: Hold): boolean {
    return lackedAt >= 0 && this.answered > lackedAt + (isPatient && this.left > drift ? 1 : 0);
  }

  /** Puts the claim in line, in the order of the calls: one that comes back to a line is not behind those that came later. */
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

  /** Sets aside what the claim wants, as far as it is there. */
  take(hold: Hold, now: number): void {
    this.running++;
    this.step = hold.step;
    this.usedAt = now;
    if (hold.isTaken) return;
    if (this.minute) {
      this.settled++;
      this.minute.add(now);
      return;
    }
    hold.held = Math.max(hold.least, Math.min(hold.most, this.free, this.room(now)));
    this.reserved += hold.held;
  }

  /** Makes what is set aside for a claim larger, or smaller. */
  grow(hold: Hold, amount: number): void {
    this.reserved += amount - hold.held;
    hold.held = amount;
  }

  /** Books what a call has cost and frees what was set aside for it. */
  settle(hold: Hold, cost: number, now: number): void {
    this.running--;
    this.usedAt = now;
    if (this.minute) return;
    this.reserved = this.running === 0 ? 0 : this.reserved - hold.held; // sums of dollars drift
    hold.held = 0;
    this.settled += cost;
    this.#recent = this.#recentAt === 0 ? cost : this.#recent * Math.exp((this.#recentAt - now) / recently) + cost;
    this.#recentAt = now;
  }

  /** What the source granted, and what it knows. */
  receive(granted: number, spent: number, left: number): void {
    if (this.answered === 0) this.#firstSpent = spent;
    this.#lastSpent = Math.max(this.#lastSpent, spent);
    this.#lastUsed = spent;
    this.granted += granted;
    this.left = left;
    this.level = this.free;
    this.answered = this.sent;
  }

  /** A stock for calls to come: 64 of the last one's size, or what was used in 180 seconds at the recent pace. */
  stock(now: number): number {
    const pace = this.minute ? this.minute.used(now) / recently : (this.#recent * Math.exp((this.#recentAt - now) / recently)) / recently;
    return Math.max(64 * this.step, 180_000 * pace);
  }

  /** Has it anything that the source should have? */
  get hasReturns(): boolean {
    return this.free > 0 || (this.minute?.untoldCount ?? 0) > 0 || this.owes;
  }

  /** May the source not have heard of something that it should know? */
  get owes(): boolean {
    return this.isUnheard || this.#owed > 0;
  }

  /** Are these permits of which the source may believe that their holder is gone? */
  isOutOfContact(now: number): boolean {
    return this.#contact !== undefined && now >= this.#contact.goodUntil;
  }

  /**
   * Lets go of all permits, those of streams that run too: the source may have ended them. It is still told of those that were used: where it has ended
   * nothing, they would be leased for good.
   *
   * @param isTakenBack it has taken them back, and is not to be told
   */
  lapse(isTakenBack: boolean): void {
    const all = this.granted - this.settled;
    this.granted -= all;
    this.#owed = isTakenBack ? 0 : this.#owed + Math.max(0, all);
  }

  /** The last answer was lost: the source may have granted what we do not know of. */
  get isUnheard(): boolean {
    return this.#turn > this.#heard;
  }

  /** A message with which all that is free goes back. */
  returns(now: number): LeaseReturn {
    const amount = Math.max(0, this.free);
    this.granted -= amount;
    this.#owed += amount;
    return this.report(now);
  }

  /** What every message says of it. */
  report(now: number): LeaseReturn {
    const { account, minute } = this;
    this.#turn = ++this.#turns.last;
    this.#owedUnderWay = this.#owed;
    const told = { account, turn: this.#turn, heard: this.#heard, amount: this.#owed };
    return minute ? { ...told, used: minute.untold(now) } : told;
  }

  /** The answer came. `told`: requests that its message spoke of. */
  heard(told: number): void {
    this.minute?.told(told);
    this.left += this.#owedUnderWay;
    this.#owed = Math.max(0, this.#owed - this.#owedUnderWay);
    this.#heard = this.#turn;
  }

  /** Is nothing of it in use? */
  get isIdle(): boolean {
    return this.running === 0 && this.line.size === 0 && !this.talking && !this.growth;
  }
}

export function first<Item>(items: Iterable<Item>): Item | undefined {
  for (const item of items) return item;
  return undefined;
}

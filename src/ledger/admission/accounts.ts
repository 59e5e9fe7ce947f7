import { accountName, type Account } from '#core/account';
import type { Clock } from '#kit/async/clock';
import { Fault, faultOf } from '#core/fault';
import type { LeaseRequest, LeaseGrant, LeaseSource, PermitKind } from '#core/lease';
import { monthOf } from '#core/plan';
import { askOf, mayStock } from './lease-request.ts';
import { drift, first, LocalLease, type Hold, type Growth, type Lack, type MessageNumbers } from './local-lease.ts';

export interface AccountsDeps {
  readonly source: LeaseSource;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
}

/** Milliseconds between two asks for what others hold. */
export const pollMilliseconds = 150;
/** Milliseconds after which an account that nobody uses is given back and forgotten. */
const idleMilliseconds = 60_000;
const sweepMilliseconds = 10_000;
/** Milliseconds for which freed amounts go back at once after a recall. */
const recallMilliseconds = 5000;
/** Milliseconds without asks for stock after one has failed. */
const quietMilliseconds = 1000;
/** Longer than a call takes from its arrival to its place in line. */
const soonMilliseconds = 5000;
/** Accounts in memory above which those not in use are given back sooner. */
const manyAccounts = 50_000;
const returnsAtOnce = 500;

/** The limited accounts this process spends from, each with the part of it that it may spend without asking. */
export class Accounts {
  readonly #source: LeaseSource;
  readonly #clock: Clock;
  readonly #log: AccountsDeps['log'];
  readonly #holdings = new Map<string, LocalLease>();
  /** Those that have something to tell the source at the end of this tick. */
  readonly #telling = new Set<LocalLease>();
  readonly #turns: MessageNumbers = { last: 0 };
  #lastOrder = 0;
  #isTalkPlanned = false;
  #isSweepPlanned = false;
  #sweepAt = manyAccounts;
  #closed: Fault | undefined;

  constructor({ source, clock, log }: AccountsDeps) {
    this.#source = source;
    this.#clock = clock;
    this.#log = log;
    source.onRecall((account) => this.#recalled(account));
    source.contact?.onReached((lapsed) => lapsed.length > 0 && this.#lapse(lapsed, source.contact!.isSourcesWord));
  }

  /** Why nothing may be spent here any more: what this process held is in other hands. */
  get closed(): Fault | undefined {
    return this.#closed;
  }

  get size(): number {
    return this.#holdings.size;
  }

  find(account: Account, limit: number, now: number): LocalLease {
    const name = accountName(account);
    let lease = this.#holdings.get(name);
    if (!lease) {
      lease = new LocalLease(account, name, this.#turns, this.#source.contact);
      this.#holdings.set(name, lease);
      this.#planSweep();
    }
    lease.left += limit - lease.limit; // a plan may change
    lease.limit = limit;
    lease.usedAt = now;
    return lease;
  }

  /** Takes what all claims want, or nothing of any. @returns the claim that stands most in the way, and why */
  take(holds: readonly Hold[]): { readonly hold: Hold; readonly lack: Lack } | undefined {
    const now = this.#clock.monotonic();
    let worst: { hold: Hold; lack: Lack } | undefined;
    for (const hold of holds) {
      const lack = hold.lease.lack(hold, now);
      if (lack && (!worst || gravity[lack] > gravity[worst.lack])) worst = { hold, lack };
    }
    if (worst) return worst;
    for (const hold of holds) {
      const { lease } = hold;
      lease.take(hold, now);
      if (lease.free < lease.level / 2 && mayStock(lease, now)) this.#tell(lease);
    }
    return undefined;
  }

  /**
   * Gives a call its place among those that wait. Were it first in one line and behind in another, two could each hold up the other: they would give way in
   * turns without end.
   */
  enter(holds: readonly Hold[]): void {
    const order = ++this.#lastOrder;
    for (const hold of holds) hold.order = order;
  }

  /** Puts the claims that lack something in line, and asks for what may be had. Those that lack nothing keep no place from others. */
  queue(holds: readonly Hold[], wake: () => void, fail: (fault: Fault) => void): void {
    const now = this.#clock.monotonic();
    for (const hold of holds) {
      const { lease } = hold;
      const lack = lease.lack(hold, now);
      if (!lack) {
        this.#leave(hold);
        continue;
      }
      hold.wake = wake;
      hold.fail = fail;
      lease.queue(hold);
      lease.usedAt = now;
      lease.step = hold.step;
      if (hold.lackedAt < 0) hold.lackedAt = lease.sent;
      if (lack !== 'elsewhere') continue;
      if (lease.isAnswered(hold)) this.#poll(lease);
      else this.#tell(lease);
    }
  }

  /** Gives up the places in line, served or not. */
  leave(holds: readonly Hold[]): void {
    for (const hold of holds) this.#leave(hold);
  }

  /** Books the cost of a call, in the unit of the claim's account. */
  settle(hold: Hold, cost: number): void {
    const { lease } = hold;
    const now = this.#clock.monotonic();
    lease.settle(hold, cost, now);
    this.#move(lease);
    if (now < lease.recalledUntil) this.#tell(lease);
  }

  /** Frees what is set aside for a call beyond so much. */
  trim(hold: Hold, amount: number): void {
    if (amount >= hold.held) return;
    hold.lease.grow(hold, amount);
    this.#move(hold.lease);
  }

  /** A running answer wants so much more: the source is asked. */
  grow(lease: LocalLease, { least, most }: Growth): void {
    const { growth } = lease;
    lease.growth = growth ? { least: Math.min(growth.least, least), most: growth.most + most } : { least, most };
    this.#tell(lease);
  }

  /** The same, until the source has answered. @throws Fault `overloaded` while it is away */
  grown(lease: LocalLease, growth: Growth): Promise<void> {
    this.grow(lease, growth);
    return new Promise((resolve, reject) => lease.listeners.push((fault) => (fault ? reject(fault) : resolve())));
  }

  /** Gives back all that is not in use. */
  async close(): Promise<void> {
    const now = this.#clock.monotonic();
    await this.#giveBack(
      [...this.#holdings.values()].filter((lease) => !lease.talking && lease.hasReturns),
      now,
    );
  }

  #leave(hold: Hold): void {
    if (hold.lease.line.delete(hold)) this.#move(hold.lease);
  }

  /** Something was freed: the first in line tries again. */
  #move(lease: LocalLease): void {
    first(lease.line)?.wake?.();
  }

  #tell(lease: LocalLease): void {
    this.#telling.add(lease);
    if (this.#isTalkPlanned) return;
    this.#isTalkPlanned = true;
    queueMicrotask(() => {
      this.#isTalkPlanned = false;
      void this.#talk();
    });
  }

  /** One message for all that came together in this tick. An account that waits for an answer speaks again when it is there. */
  async #talk(): Promise<void> {
    const now = this.#clock.monotonic();
    const asking: LocalLease[] = [];
    const asks: LeaseRequest[] = [];
    const returning: LocalLease[] = [];
    const telling = [...this.#telling]; // some have more to say, and stay
    for (const lease of telling) {
      if (lease.talking) continue;
      this.#telling.delete(lease);
      // What does not do for the first in line here may do for somebody elsewhere: nobody sits on half of what two wait for.
      if (now < lease.recalledUntil && lease.free > 0 && lease.free < (first(lease.line)?.least ?? Infinity)) {
        returning.push(lease);
        if (lease.line.size > 0 || lease.growth) this.#telling.add(lease);
        continue;
      }
      const ask = askOf(lease, now);
      if (!ask) {
        if (lease.owes) returning.push(lease);
        else this.#answer(lease);
        continue;
      }
      asking.push(lease);
      asks.push(ask);
    }
    await Promise.all([asks.length > 0 ? this.#lease(asking, asks) : undefined, this.#giveBack(returning, now)]);
  }

  async #lease(asking: readonly LocalLease[], asks: readonly LeaseRequest[]): Promise<void> {
    const told = asking.map((lease) => this.#speaks(lease));
    let grants: readonly LeaseGrant[];
    try {
      grants = await this.#source.lease(asks);
    } catch (error) {
      const fault = this.#failed(error);
      for (const lease of asking) {
        lease.quietUntil = this.#clock.monotonic() + quietMilliseconds;
        this.#heard(lease, fault);
        // Who can do with what is here is served from it.
        for (const hold of lease.line)
          if (hold.isPatient && lease.free + drift >= hold.least) hold.wake?.();
          else hold.fail?.(fault);
      }
      return;
    }
    for (const [place, lease] of asking.entries()) {
      const { granted, spent, left } = grants[place]!;
      lease.heard(told[place]!);
      lease.receive(granted, spent, left);
      this.#heard(lease);
      this.#move(lease);
    }
  }

  async #giveBack(leases: readonly LocalLease[], now: number): Promise<void> {
    for (let start = 0; start < leases.length; start += returnsAtOnce) {
      const some = leases.slice(start, start + returnsAtOnce);
      const returns = some.map((lease) => lease.returns(now));
      const told = some.map((lease) => this.#speaks(lease));
      let error: unknown;
      try {
        await this.#source.giveBack(returns);
      } catch (thrown) {
        error = thrown;
        this.#failed(thrown);
      }
      for (const [place, lease] of some.entries()) {
        if (error === undefined) lease.heard(told[place]!);
        this.#heard(lease);
        if (error === undefined) this.#forget(lease);
        this.#move(lease);
      }
      if (error !== undefined) return; // the others keep what they have
    }
  }

  /** @returns how many requests the source is being told of */
  #speaks(lease: LocalLease): number {
    lease.talking = true;
    lease.sent++;
    return lease.minute?.untoldCount ?? 0;
  }

  #heard(lease: LocalLease, fault?: Fault): void {
    lease.talking = false;
    this.#answer(lease, fault);
    if (this.#telling.has(lease)) this.#tell(lease);
  }

  #answer(lease: LocalLease, fault?: Fault): void {
    for (const listener of lease.listeners.splice(0)) listener(fault);
  }

  /** @returns the failure as it may be told to a client */
  #failed(error: unknown): Fault {
    const fault = faultOf(error);
    if (fault.code === 'conflict') {
      if (!this.#closed) this.#log('The leases of this process were closed by somebody else: it lets no call in any more.', fault);
      return (this.#closed ??= new Fault('overloaded', 'This server no longer keeps the books: please try again.', { retryAfter: 1, cause: fault }));
    }
    if (fault.code !== 'overloaded') this.#log('The source of leases failed.', error);
    return this.away(fault.details.retryAfter, error);
  }

  /** The refusal while the source is away. @param retryAfter seconds */
  away(retryAfter = 1, cause?: unknown): Fault {
    return new Fault('overloaded', 'The books cannot be reached just now: please try again.', { retryAfter, cause });
  }

  #poll(lease: LocalLease): void {
    if (lease.pollArmed || lease.talking) return;
    lease.pollArmed = true;
    this.#clock.after(pollMilliseconds, () => {
      lease.pollArmed = false;
      if (lease.line.size > 0) this.#tell(lease);
    });
  }

  #recalled(account: Account): void {
    const lease = this.#holdings.get(accountName(account));
    if (!lease) return;
    lease.recalledUntil = this.#clock.monotonic() + recallMilliseconds;
    if (lease.free > 0 || lease.owes) this.#tell(lease); // two who wait for one another do not ask without end
  }

  #lapse(lapsed: readonly PermitKind[], isTakenBack: boolean): void {
    for (const lease of this.#holdings.values()) {
      if (!lapsed.some((kind) => kind === lease.account.kind)) continue;
      lease.lapse(isTakenBack);
      if (lease.owes) this.#tell(lease);
    }
  }

  #planSweep(): void {
    if (this.#holdings.size >= this.#sweepAt) {
      this.#sweepAt = 2 * this.#holdings.size; // until the sweep below has said how many remain
      queueMicrotask(() => void this.#sweep(soonMilliseconds).then(() => (this.#sweepAt = Math.max(manyAccounts, 2 * this.#holdings.size))));
    }
    if (this.#isSweepPlanned) return;
    this.#isSweepPlanned = true;
    this.#clock.after(sweepMilliseconds, () => {
      this.#isSweepPlanned = false;
      void this.#sweep(idleMilliseconds).then(() => this.#holdings.size > 0 && this.#planSweep());
    });
  }

  /** Gives back what nobody has used for so long, and what is left of earlier months. */
  async #sweep(milliseconds: number): Promise<void> {
    const now = this.#clock.monotonic();
    const month = monthOf(this.#clock.now());
    const returning: LocalLease[] = [];
    for (const lease of this.#holdings.values()) {
      const isPast = lease.account.month !== '' && lease.account.month < month;
      if (!lease.isIdle || now - lease.usedAt < (isPast ? soonMilliseconds : milliseconds)) continue;
      if (lease.hasReturns) returning.push(lease);
      else this.#forget(lease);
    }
    await this.#giveBack(returning, now);
  }

  /** Lets go of an account of which nothing is held. One with more billed than granted is remembered for its month: that is still to be covered. */
  #forget(lease: LocalLease): void {
    const { account, free, usedAt } = lease;
    const isPast = account.month !== '' && account.month < monthOf(this.#clock.now());
    const isEmpty = Math.abs(free) < drift || (isPast && free < 0);
    const isRecent = this.#clock.monotonic() - usedAt < soonMilliseconds;
    if (isEmpty && !isRecent && !lease.minute?.untoldCount && !lease.owes && lease.isIdle) this.#holdings.delete(lease.name);
  }
}

const gravity: Record<Lack, number> = { elsewhere: 0, here: 1, minute: 2, spent: 3 };

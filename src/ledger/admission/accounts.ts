import { accountName, type Account } from '#core/account';
import type { Clock } from '#kit/async/clock';
import { Fault, faultOf } from '#core/fault';
import type { Ask, Grant, LeaseSource, PermitKind } from '#core/lease';
import { monthOf } from '#core/plan';
import { askOf, mayStock } from './lease-request.ts';
import { drift, first, Holding, type Claim, type Growth, type Lack, type Turns } from './local-lease.ts';

export interface AccountsParts {
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
  readonly #log: AccountsParts['log'];
  readonly #holdings = new Map<string, Holding>();
  /** Those that have something to tell the source at the end of this tick. */
  readonly #telling = new Set<Holding>();
  readonly #turns: Turns = { last: 0 };
  #lastOrder = 0;
  #isTalkPlanned = false;
  #isSweepPlanned = false;
  #sweepAt = manyAccounts;
  #closed: Fault | undefined;

  constructor({ source, clock, log }: AccountsParts) {
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

  find(account: Account, limit: number, now: number): Holding {
    const name = accountName(account);
    let holding = this.#holdings.get(name);
    if (!holding) {
      holding = new Holding(account, name, this.#turns, this.#source.contact);
      this.#holdings.set(name, holding);
      this.#planSweep();
    }
    holding.left += limit - holding.limit; // a plan may change
    holding.limit = limit;
    holding.usedAt = now;
    return holding;
  }

  /** Takes what all claims want, or nothing of any. @returns the claim that stands most in the way, and why */
  take(claims: readonly Claim[]): { readonly claim: Claim; readonly lack: Lack } | undefined {
    const now = this.#clock.monotonic();
    let worst: { claim: Claim; lack: Lack } | undefined;
    for (const claim of claims) {
      const lack = claim.holding.lack(claim, now);
      if (lack && (!worst || gravity[lack] > gravity[worst.lack])) worst = { claim, lack };
    }
    if (worst) return worst;
    for (const claim of claims) {
      const { holding } = claim;
      holding.take(claim, now);
      if (holding.free < holding.level / 2 && mayStock(holding, now)) this.#tell(holding);
    }
    return undefined;
  }

  /**
   * Gives a call its place among those that wait. Were it first in one line and behind in another, two could each hold up the other: they would give way in
   * turns without end.
   */
  enter(claims: readonly Claim[]): void {
    const order = ++this.#lastOrder;
    for (const claim of claims) claim.order = order;
  }

  /** Puts the claims that lack something in line, and asks for what may be had. Those that lack nothing keep no place from others. */
  queue(claims: readonly Claim[], wake: () => void, fail: (fault: Fault) => void): void {
    const now = this.#clock.monotonic();
    for (const claim of claims) {
      const { holding } = claim;
      const lack = holding.lack(claim, now);
      if (!lack) {
        this.#leave(claim);
        continue;
      }
      claim.wake = wake;
      claim.fail = fail;
      holding.queue(claim);
      holding.usedAt = now;
      holding.step = claim.step;
      if (claim.lackedAt < 0) claim.lackedAt = holding.sent;
      if (lack !== 'elsewhere') continue;
      if (holding.isAnswered(claim)) this.#poll(holding);
      else this.#tell(holding);
    }
  }

  /** Gives up the places in line, served or not. */
  leave(claims: readonly Claim[]): void {
    for (const claim of claims) this.#leave(claim);
  }

  /** Books the cost of a call, in the unit of the claim's account. */
  settle(claim: Claim, cost: number): void {
    const { holding } = claim;
    const now = this.#clock.monotonic();
    holding.settle(claim, cost, now);
    this.#move(holding);
    if (now < holding.recalledUntil) this.#tell(holding);
  }

  /** Frees what is set aside for a call beyond so much. */
  trim(claim: Claim, amount: number): void {
    if (amount >= claim.held) return;
    claim.holding.grow(claim, amount);
    this.#move(claim.holding);
  }

  /** A running answer wants so much more: the source is asked. */
  grow(holding: Holding, { least, most }: Growth): void {
    const { growth } = holding;
    holding.growth = growth ? { least: Math.min(growth.least, least), most: growth.most + most } : { least, most };
    this.#tell(holding);
  }

  /** The same, until the source has answered. @throws Fault `overloaded` while it is away */
  grown(holding: Holding, growth: Growth): Promise<void> {
    this.grow(holding, growth);
    return new Promise((resolve, reject) => holding.listeners.push((fault) => (fault ? reject(fault) : resolve())));
  }

  /** Gives back all that is not in use. */
  async close(): Promise<void> {
    const now = this.#clock.monotonic();
    await this.#giveBack(
      [...this.#holdings.values()].filter((holding) => !holding.talking && holding.hasReturns),
      now,
    );
  }

  #leave(claim: Claim): void {
    if (claim.holding.line.delete(claim)) this.#move(claim.holding);
  }

  /** Something was freed: the first in line tries again. */
  #move(holding: Holding): void {
    first(holding.line)?.wake?.();
  }

  #tell(holding: Holding): void {
    this.#telling.add(holding);
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
    const asking: Holding[] = [];
    const asks: Ask[] = [];
    const returning: Holding[] = [];
    const telling = [...this.#telling]; // some have more to say, and stay
    for (const holding of telling) {
      if (holding.talking) continue;
      this.#telling.delete(holding);
      // What does not do for the first in line here may do for somebody elsewhere: nobody sits on half of what two wait for.
      if (now < holding.recalledUntil && holding.free > 0 && holding.free < (first(holding.line)?.least ?? Infinity)) {
        returning.push(holding);
        if (holding.line.size > 0 || holding.growth) this.#telling.add(holding);
        continue;
      }
      const ask = askOf(holding, now);
      if (!ask) {
        if (holding.owes) returning.push(holding);
        else this.#answer(holding);
        continue;
      }
      asking.push(holding);
      asks.push(ask);
    }
    await Promise.all([asks.length > 0 ? this.#lease(asking, asks) : undefined, this.#giveBack(returning, now)]);
  }

  async #lease(asking: readonly Holding[], asks: readonly Ask[]): Promise<void> {
    const told = asking.map((holding) => this.#speaks(holding));
    let grants: readonly Grant[];
    try {
      grants = await this.#source.lease(asks);
    } catch (error) {
      const fault = this.#failed(error);
      for (const holding of asking) {
        holding.quietUntil = this.#clock.monotonic() + quietMilliseconds;
        this.#heard(holding, fault);
        // Who can do with what is here is served from it.
        for (const claim of holding.line)
          if (claim.isPatient && holding.free + drift >= claim.least) claim.wake?.();
          else claim.fail?.(fault);
      }
      return;
    }
    for (const [place, holding] of asking.entries()) {
      const { granted, spent, left } = grants[place]!;
      holding.heard(told[place]!);
      holding.receive(granted, spent, left);
      this.#heard(holding);
      this.#move(holding);
    }
  }

  async #giveBack(holdings: readonly Holding[], now: number): Promise<void> {
    for (let start = 0; start < holdings.length; start += returnsAtOnce) {
      const some = holdings.slice(start, start + returnsAtOnce);
      const returns = some.map((holding) => holding.returns(now));
      const told = some.map((holding) => this.#speaks(holding));
      let error: unknown;
      try {
        await this.#source.giveBack(returns);
      } catch (thrown) {
        error = thrown;
        this.#failed(thrown);
      }
      for (const [place, holding] of some.entries()) {
        if (error === undefined) holding.heard(told[place]!);
        this.#heard(holding);
        if (error === undefined) this.#forget(holding);
        this.#move(holding);
      }
      if (error !== undefined) return; // the others keep what they have
    }
  }

  /** @returns how many requests the source is being told of */
  #speaks(holding: Holding): number {
    holding.talking = true;
    holding.sent++;
    return holding.minute?.untoldCount ?? 0;
  }

  #heard(holding: Holding, fault?: Fault): void {
    holding.talking = false;
    this.#answer(holding, fault);
    if (this.#telling.has(holding)) this.#tell(holding);
  }

  #answer(holding: Holding, fault?: Fault): void {
    for (const listener of holding.listeners.splice(0)) listener(fault);
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

  #poll(holding: Holding): void {
    if (holding.pollArmed || holding.talking) return;
    holding.pollArmed = true;
    this.#clock.after(pollMilliseconds, () => {
      holding.pollArmed = false;
      if (holding.line.size > 0) this.#tell(holding);
    });
  }

  #recalled(account: Account): void {
    const holding = this.#holdings.get(accountName(account));
    if (!holding) return;
    holding.recalledUntil = this.#clock.monotonic() + recallMilliseconds;
    if (holding.free > 0 || holding.owes) this.#tell(holding); // two who wait for one another do not ask without end
  }

  #lapse(lapsed: readonly PermitKind[], isTakenBack: boolean): void {
    for (const holding of this.#holdings.values()) {
      if (!lapsed.some((kind) => kind === holding.account.kind)) continue;
      holding.lapse(isTakenBack);
      if (holding.owes) this.#tell(holding);
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
    const returning: Holding[] = [];
    for (const holding of this.#holdings.values()) {
      const isPast = holding.account.month !== '' && holding.account.month < month;
      if (!holding.isIdle || now - holding.usedAt < (isPast ? soonMilliseconds : milliseconds)) continue;
      if (holding.hasReturns) returning.push(holding);
      else this.#forget(holding);
    }
    await this.#giveBack(returning, now);
  }

  /** Lets go of an account of which nothing is held. One with more billed than granted is remembered for its month: that is still to be covered. */
  #forget(holding: Holding): void {
    const { account, free, usedAt } = holding;
    const isPast = account.month !== '' && account.month < monthOf(this.#clock.now());
    const isEmpty = Math.abs(free) < drift || (isPast && free < 0);
    const isRecent = this.#clock.monotonic() - usedAt < soonMilliseconds;
    if (isEmpty && !isRecent && !holding.minute?.untoldCount && !holding.owes && holding.isIdle) this.#holdings.delete(holding.name);
  }
}

const gravity: Record<Lack, number> = { elsewhere: 0, here: 1, minute: 2, spent: 3 };

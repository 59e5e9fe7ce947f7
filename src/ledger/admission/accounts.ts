import { accountName, partsOf, type Account, type Book, type Owner } from '#core/account';
import type { Clock } from '#kit/async/clock';
import { Fault, faultOf } from '#core/fault';
import { permitKind, type LeaseRequest, type LeaseGrant, type LeaseSource, type PermitKind } from '#core/lease';
import { dayOf, monthOf } from '#core/plan';
import type { UsageRow } from '#core/usage-row';
import { leaseRequest, mayStock } from './lease-request.ts';
import { drift, first, LocalLease, type Hold, type Growth, type MessageNumbers } from './local-lease.ts';
import { graver, type Obstacle } from './obstacle.ts';

export interface AccountsDeps {
  readonly source: LeaseSource;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
  /** Called when 80 or 100 per cent of a limit of a month or day is known to be spent; absent: nobody wants to know. */
  readonly reached?: ((reached: { readonly account: Account; readonly share: 80 | 100; readonly limit: number; readonly used: number }) => void) | undefined;
}

/** Milliseconds between two requests for what others hold. */
export const pollMilliseconds = 150;
/** Milliseconds after which an account that nobody uses is given back and forgotten. */
const idleMilliseconds = 60_000;
const sweepMilliseconds = 10_000;
/** Milliseconds for which freed amounts go back at once after a recall. */
const recallMilliseconds = 5000;
/** Milliseconds without requests for stock after one has failed. */
const quietMilliseconds = 1000;
/** Longer than a call takes from its arrival to its place in line. */
const soonMilliseconds = 5000;
/** Number of accounts in memory above which idle ones are given back sooner. */
const manyAccounts = 50_000;
const returnsAtOnce = 500;

/** The limited accounts that this process spends from, each with its lease. */
export class Accounts {
  readonly #source: LeaseSource;
  readonly #clock: Clock;
  readonly #log: AccountsDeps['log'];
  readonly #reached: AccountsDeps['reached'];
  readonly #leases = new Map<string, LocalLease>();
  /** Leases for the next message to the source, which goes at the end of this tick. */
  readonly #unsent = new Set<LocalLease>();
  readonly #numbers: MessageNumbers = { last: 0 };
  #made = 0;
  #lastOrder = 0;
  #isMessagePlanned = false;
  #isSweepPlanned = false;
  #sweepAt = manyAccounts;
  #closed: Fault | undefined;

  constructor({ source, clock, log, reached }: AccountsDeps) {
    this.#reached = reached;
    this.#source = source;
    this.#clock = clock;
    this.#log = log;
    source.onRecall((account) => this.#recalled(account));
    source.contact?.onReached((lapsed) => lapsed.length > 0 && this.#lapse(lapsed, source.contact!.isSourcesWord));
  }

  /** Why nothing may be spent here any more: the leases of this process belong to another one. */
  get closed(): Fault | undefined {
    return this.#closed;
  }

  get size(): number {
    return this.#leases.size;
  }

  /** Accounts that have come into memory so far: where there are no more than at its admission, a call knows of all. */
  get made(): number {
    return this.#made;
  }

  values(): Iterable<LocalLease> {
    return this.#leases.values();
  }

  find(account: Account, limit: number, now: number): LocalLease {
    const name = accountName(account);
    let lease = this.#leases.get(name);
    if (!lease) {
      lease = new LocalLease(account, name, this.#numbers, this.#source.contact);
      this.#leases.set(name, lease);
      this.#made++;
      this.#planSweep();
    }
    lease.left += limit - lease.limit; // a plan may change
    lease.limit = limit;
    lease.usedAt = now;
    return lease;
  }

  /** Takes all holds, or none of them. @returns the hold with the gravest lack, where one cannot be taken */
  take(holds: readonly Hold[]): Obstacle | undefined {
    const now = this.#clock.monotonic();
    let worst: Obstacle | undefined;
    for (const hold of holds) {
      const lack = hold.lease.lack(hold, now);
      if (lack) worst = graver(worst, { hold, lack }, this.#clock);
    }
    if (worst) return worst;
    for (const hold of holds) {
      const { lease } = hold;
      lease.take(hold, now);
      if (lease.free < lease.level / 2 && mayStock(lease, now)) this.#plan(lease);
    }
    return undefined;
  }

  /**
   * Gives a call its place among those that wait, the same in every line. With different places, two calls that are each first in one line would give way to
   * one another without end.
   */
  enter(holds: readonly Hold[]): void {
    const order = ++this.#lastOrder;
    for (const hold of holds) {
      hold.order = order;
      hold.ofCall = holds;
    }
  }

  /** Puts the holds that lack something in line, and requests what can be had. A hold that lacks nothing leaves its line. */
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
      else this.#plan(lease);
    }
  }

  /** Leaves all lines, served or not. */
  leave(holds: readonly Hold[]): void {
    for (const hold of holds) this.#leave(hold);
  }

  /** Books the cost of a call, in the unit of the hold's account. */
  settle(hold: Hold, cost: number): void {
    const { lease } = hold;
    const now = this.#clock.monotonic();
    lease.settle(hold, cost, now);
    if (this.#reached && cost > 0) this.#noteShare(lease);
    this.#move(lease);
    if (now < lease.recalledUntil) this.#plan(lease);
  }

  /** Notes what a call has cost with accounts that it was not admitted by: limits that have begun since. */
  noteLate(row: UsageRow): void {
    const { balance, charges, planTokens, costUsd, at } = row;
    const month = monthOf(at);
    for (const owner of booksOf(row))
      for (const kind of [balance, 'usd'] as const) {
        const lease = this.#leases.get(accountName({ owner, kind, month }));
        if (!lease?.charge || charges?.includes(lease.charge)) continue;
        lease.noteLate(kind === 'usd' ? (costUsd ?? 0) : planTokens);
        if (this.#reached) this.#noteShare(lease);
      }
  }

  /** Frees what is set aside for a call beyond `amount`. */
  trim(hold: Hold, amount: number): void {
    if (amount >= hold.held) return;
    hold.lease.grow(hold, amount);
    this.#move(hold.lease);
  }

  /** Requests more from the source for a running answer. */
  grow(lease: LocalLease, { least, most }: Growth): void {
    const { growth } = lease;
    lease.growth = growth ? { least: Math.min(growth.least, least), most: growth.most + most } : { least, most };
    this.#plan(lease);
  }

  /** As `grow`, and resolves when the source has answered. @throws Fault `overloaded` while it is away */
  grown(lease: LocalLease, growth: Growth): Promise<void> {
    this.grow(lease, growth);
    return new Promise((resolve, reject) => lease.listeners.push((fault) => (fault ? reject(fault) : resolve())));
  }

  /** Gives back all that is not in use. */
  async close(): Promise<void> {
    const now = this.#clock.monotonic();
    await this.#giveBack(
      [...this.#leases.values()].filter((lease) => !lease.isSending && lease.hasReturns),
      now,
    );
  }

  #leave(hold: Hold): void {
    if (hold.lease.line.delete(hold)) this.#move(hold.lease);
  }

  /** Something was freed: the first call in line tries again. */
  #move(lease: LocalLease): void {
    first(lease.line)?.wake?.();
  }

  #plan(lease: LocalLease): void {
    this.#unsent.add(lease);
    if (this.#isMessagePlanned) return;
    this.#isMessagePlanned = true;
    queueMicrotask(() => {
      this.#isMessagePlanned = false;
      void this.#sendMessage();
    });
  }

  /** Sends one message for all leases that were planned in this tick. A lease that waits for an answer is sent again when it is there. */
  async #sendMessage(): Promise<void> {
    const now = this.#clock.monotonic();
    const asking: LocalLease[] = [];
    const requests: LeaseRequest[] = [];
    const returning: LocalLease[] = [];
    const unsent = [...this.#unsent]; // some are added again, for the message after this one
    for (const lease of unsent) {
      if (lease.isSending) continue;
      this.#unsent.delete(lease);
      // What is too little for the first in line here may be enough for another holder: two that wait must not each keep half of it.
      if (now < lease.recalledUntil && lease.free > 0 && lease.free < (first(lease.line)?.least ?? Infinity)) {
        returning.push(lease);
        if (lease.line.size > 0 || lease.growth) this.#unsent.add(lease);
        continue;
      }
      const request = leaseRequest(lease, now);
      if (!request) {
        if (lease.owes) returning.push(lease);
        else this.#answer(lease);
        continue;
      }
      asking.push(lease);
      requests.push(request);
    }
    await Promise.all([requests.length > 0 ? this.#lease(asking, requests) : undefined, this.#giveBack(returning, now)]);
  }

  async #lease(asking: readonly LocalLease[], requests: readonly LeaseRequest[]): Promise<void> {
    const reported = asking.map((lease) => this.#markSent(lease));
    let grants: readonly LeaseGrant[];
    try {
      grants = await this.#source.lease(requests);
    } catch (error) {
      const fault = this.#failed(error);
      for (const lease of asking) {
        lease.quietUntil = this.#clock.monotonic() + quietMilliseconds;
        this.#finished(lease, fault);
        // A hold that is content with what is here is served from it.
        for (const hold of lease.line)
          if (hold.isPatient && lease.free + drift >= hold.least) hold.wake?.();
          else hold.fail?.(fault);
      }
      return;
    }
    for (const [place, lease] of asking.entries()) {
      const { granted, spent, left } = grants[place]!;
      lease.acknowledge(reported[place]!);
      lease.receive(granted, spent, left);
      if (this.#reached) this.#noteShare(lease);
      this.#finished(lease);
      this.#move(lease);
    }
  }

  async #giveBack(leases: readonly LocalLease[], now: number): Promise<void> {
    for (let start = 0; start < leases.length; start += returnsAtOnce) {
      const some = leases.slice(start, start + returnsAtOnce);
      const returns = some.map((lease) => lease.returns(now));
      const reported = some.map((lease) => this.#markSent(lease));
      let error: unknown;
      try {
        await this.#source.giveBack(returns);
      } catch (thrown) {
        error = thrown;
        this.#failed(thrown);
      }
      for (const [place, lease] of some.entries()) {
        if (error === undefined) lease.acknowledge(reported[place]!);
        this.#finished(lease);
        if (error === undefined) this.#forget(lease);
        this.#move(lease);
      }
      if (error !== undefined) return; // the others keep what they have
    }
  }

  /** @returns how many used requests the message reports */
  #markSent(lease: LocalLease): number {
    lease.isSending = true;
    lease.sent++;
    return lease.minute?.unreportedCount ?? 0;
  }

  #finished(lease: LocalLease, fault?: Fault): void {
    lease.isSending = false;
    this.#answer(lease, fault);
    if (this.#unsent.has(lease)) this.#plan(lease);
  }

  #answer(lease: LocalLease, fault?: Fault): void {
    for (const listener of lease.listeners.splice(0)) listener(fault);
  }

  /** @returns the fault for clients */
  #failed(error: unknown): Fault {
    const fault = faultOf(error);
    if (fault.code === 'conflict') {
      if (!this.#closed) this.#log('The leases of this process were closed by somebody else: it lets no call in any more.', fault);
      return (this.#closed ??= new Fault('overloaded', 'This server no longer records usage: please try again.', { retryAfter: 1, cause: fault }));
    }
    if (fault.code !== 'overloaded') this.#log('The source of leases failed.', error);
    return this.awayFault(fault.details.retryAfter, error);
  }

  /** The fault while the source is away. @param retryAfter seconds */
  awayFault(retryAfter = 1, cause?: unknown): Fault {
    return new Fault('overloaded', 'Quotas cannot be checked right now: please try again.', { retryAfter, unbegun: true, cause });
  }

  #poll(lease: LocalLease): void {
    if (lease.pollArmed || lease.isSending) return;
    lease.pollArmed = true;
    this.#clock.after(pollMilliseconds, () => {
      lease.pollArmed = false;
      const head = first(lease.line);
      if (!head) return;
      this.#requestAll(head);
      this.#plan(lease);
    });
  }

  /**
   * Requests all that the call of a waiting hold lacks, in one message. What the call did not lack at first may have been given back since: two calls of which
   * each has what the other lacks would exchange it without end if each requested only what it lacked first.
   */
  #requestAll({ ofCall, wake, fail }: Hold): void {
    this.queue(ofCall, wake!, fail!);
    const now = this.#clock.monotonic();
    for (const hold of ofCall) if (hold.lease.lack(hold, now) === 'elsewhere') this.#plan(hold.lease);
  }

  #recalled(account: Account): void {
    const lease = this.#leases.get(accountName(account));
    if (!lease) return;
    lease.recalledUntil = this.#clock.monotonic() + recallMilliseconds;
    if (lease.free > 0 || lease.owes) this.#plan(lease); // two holders that wait for one another do not ask without end
  }

  #lapse(lapsed: readonly PermitKind[], isTakenBack: boolean): void {
    for (const lease of this.#leases.values()) {
      const kind = permitKind(lease.account.kind);
      if (kind === undefined || !lapsed.includes(kind)) continue;
      lease.lapse(isTakenBack);
      if (lease.owes) this.#plan(lease);
    }
  }

  #planSweep(): void {
    if (this.#leases.size >= this.#sweepAt) {
      this.#sweepAt = 2 * this.#leases.size; // until the sweep below has said how many remain
      queueMicrotask(() => void this.#sweep(soonMilliseconds).then(() => (this.#sweepAt = Math.max(manyAccounts, 2 * this.#leases.size))));
    }
    if (this.#isSweepPlanned) return;
    this.#isSweepPlanned = true;
    this.#clock.after(sweepMilliseconds, () => {
      this.#isSweepPlanned = false;
      void this.#sweep(idleMilliseconds).then(() => this.#leases.size > 0 && this.#planSweep());
    });
  }

  /** Gives back what has been idle for `milliseconds`, and what is left of earlier months and days. */
  async #sweep(milliseconds: number): Promise<void> {
    const now = this.#clock.monotonic();
    const returning: LocalLease[] = [];
    for (const lease of this.#leases.values()) {
      const isPast = this.#isPast(lease.account);
      if (!lease.isIdle || now - lease.usedAt < (isPast ? soonMilliseconds : milliseconds)) continue;
      if (lease.hasReturns) returning.push(lease);
      else this.#forget(lease);
    }
    await this.#giveBack(returning, now);
  }

  #noteShare(lease: LocalLease): void {
    const { account, limit, spent } = lease;
    if (account.month === '' || limit === 0 || spent < 0.8 * limit - drift) return;
    const share = spent >= limit - drift ? 100 : 80;
    if (limit > lease.toldOf) Object.assign(lease, { toldOf: limit, toldShare: 0 });
    for (const one of [80, 100] as const) if (one > lease.toldShare && one <= share) this.#reached?.({ account, share: one, limit, used: spent });
    lease.toldShare = Math.max(lease.toldShare, share);
  }

  /** Whether the month or the day of an account is over. */
  #isPast({ owner, month }: Account): boolean {
    if (month === '') return false;
    const now = this.#clock.now();
    return month < monthOf(now) || (owner.includes('@') && (partsOf(owner).day ?? '9') < dayOf(now));
  }

  /** Forgets an account of which nothing is held. One with more billed than granted is kept for its period: a grant has yet to cover that. */
  #forget(lease: LocalLease): void {
    const { account, free, usedAt } = lease;
    const isPast = this.#isPast(account);
    const isEmpty = Math.abs(free) < drift || (isPast && free < 0);
    const isRecent = this.#clock.monotonic() - usedAt < soonMilliseconds;
    if (isEmpty && !isRecent && !lease.minute?.unreportedCount && !lease.owes && lease.isIdle) this.#leases.delete(lease.name);
  }
}

/** All books that a row belongs to. */
function booksOf({ userId, teamIds, keyId, model, route = model, at }: UsageRow): readonly Book[] {
  const owners: readonly Owner[] = [`user:${userId}`, `key:${keyId}`, ...teamIds.map((id): Owner => `team:${id}`)];
  return owners.flatMap((owner): readonly Book[] => [owner, `${owner}@${dayOf(at)}`, `${owner}/${route}`]);
}

import type { Account, AccountKind, Balance, Owner } from '#core/account';
import type { Clock } from '#kit/async/clock';
import { Fault } from '#core/fault';
import type { Caller, Context } from '#core/context';
import type { LeaseSource } from '#core/lease';
import type { CountTokens } from '#core/measure';
import { Permits } from '#core/permits';
import { monthOf, secondsToNextMonth, type Plan } from '#core/plan';
import type { RoutedCall } from '#core/routed-call';
import { Accounts } from './admission/accounts.ts';
import { noteAllowances } from './admission/allowances.ts';
import { Hold, type Lack } from './admission/local-lease.ts';
import type { CallJournal } from './journal/journal.ts';
import { Reservation } from './admission/reservation.ts';
import { LineWait } from './admission/turn.ts';
import { CostEstimate } from './admission/cost-estimate.ts';

export type { Reservation } from './admission/reservation.ts';

export interface Ledger {
  /** At once where it can be. @throws Fault `quota-spent`, `rate-limited`, `forbidden`, `overloaded` */
  reserve(call: RoutedCall, context: Context): Reservation | Promise<Reservation>;
  /** For a call that costs nothing: what is left of the caller's limits is noted, and none of them is asked. @throws Fault `overloaded` while nothing can be booked */
  free(call: RoutedCall, context: Context): Reservation;
  /** Could a call be paid for now? Nothing is set aside: it will be asked for later. @throws as `reserve` does */
  affords(call: RoutedCall, context: Context): Promise<void>;
  /** Limited accounts in memory. */
  readonly accounts: number;
  /** Gives back what is not spent. Calls that still run are settled as before. */
  close(): Promise<void>;
}

export interface LedgerDeps {
  readonly source: LeaseSource;
  readonly journal: CallJournal;
  /** The plan of the caller's own; undefined: its name is not known. */
  readonly planOf: (caller: Caller) => Plan | undefined;
  /** `{}` for a team without limits; undefined: what it may spend is not known. */
  readonly teamPlan: (teamId: number) => Plan | undefined;
  /** Output tokens set aside at a time where the call names no maximum. */
  readonly reserveOutput: () => number;
  /** Exact. @throws Fault `rate-limited`, `overloaded` where too much is being counted; the signal's reason */
  readonly countTokens: CountTokens;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
}

/** Milliseconds a call waits where only running calls or other holders stand in its way. */
const patience = 2000;

const nothing: readonly Hold[] = [];

export function openLedger(parts: LedgerDeps): Ledger {
  const { journal, clock } = parts;
  const accounts = new Accounts(parts);
  const reservationParts = { accounts, journal, clock };

  return {
    get accounts() {
      return accounts.size;
    },
    close: () => accounts.close(),

    reserve(call, context) {
      const stop = accounts.closed ?? journal.trouble;
      if (stop) throw stop;
      const at = clock.now();
      const holds = holdsOf(call, context, at);
      const estimate = new CostEstimate(call, parts.reserveOutput());
      if (holds.length === 0) return begin(call, context, estimate, holds, at, 0);
      const now = clock.monotonic();
      estimate.tell(holds, now);
      const isNear = estimate.isNear(holds, now);
      if (isNear || accounts.take(holds)) return inTurn(call, context, estimate, holds, at);
      return begin(call, context, estimate, holds, at, 0);
    },

    free(call, context) {
      const stop = accounts.closed ?? journal.trouble;
      if (stop) throw stop;
      const at = clock.now();
      const holds = holdsOf(call, context, at);
      if (holds.length > 0) noteAllowances(context.progress, holds, clock);
      return begin(call, context, new CostEstimate(call, parts.reserveOutput()), nothing, at, 0);
    },

    async affords(call, context) {
      const stop = accounts.closed ?? journal.trouble;
      if (stop) throw stop;
      // Of what passes with time only that counts which never comes: a plan that allows none.
      const holds = holdsOf(call, context, clock.now()).filter(({ lease: { account, limit } }) => account.month !== '' || limit === 0);
      if (holds.length === 0) return;
      const estimate = new CostEstimate(call, parts.reserveOutput());
      estimate.tell(holds, clock.monotonic());
      await taken(context, estimate, holds);
      for (const hold of holds) accounts.settle(hold, 0);
    },
  };

  /** What the call needs of each account that a plan limits: of the caller's and of those of its teams. */
  function holdsOf(call: RoutedCall, { caller, balance = 'inference', progress }: Context, at: number): readonly Hold[] {
    let holds = holdsOn(nothing, `user:${caller.userId}`, parts.planOf(caller), call, balance, at);
    for (const teamId of caller.teamIds) holds = holdsOn(holds, `team:${teamId}`, parts.teamPlan(teamId), call, balance, at);
    if (progress.permits) for (const hold of holds) hold.isTaken = hasTaken(progress.permits, hold);
    return holds;
  }

  function holdsOn(holds: readonly Hold[], owner: Owner, plan: Plan | undefined, call: RoutedCall, balance: Balance, at: number): readonly Hold[] {
    if (!plan || !isSane(plan)) throw new Fault('quota-spent', 'Your plan is not known here: ask an administrator.', { retryAfter: secondsToNextMonth(at) });
    const tokens = balance === 'train' ? plan.monthlyTrainTokens : plan.monthlyTokens;
    const { monthlyUsd, requestsPerMinute, concurrentStreams } = plan;
    const streams = call.stream ? concurrentStreams : undefined;
    if (tokens === undefined && monthlyUsd === undefined && requestsPerMinute === undefined && streams === undefined) return holds;
    if (monthlyUsd !== undefined && !call.route.price)
      throw new Fault('forbidden', `Your plan is limited in US dollars, and ${call.route.name} has no price.`, { field: 'model' });
    const now = clock.monotonic();
    const month = monthOf(at);
    const all = [...holds];
    const add = (kind: AccountKind, limit: number | undefined, account: Account = { owner, kind, month }) => {
      if (limit !== undefined) all.push(new Hold(accounts.find(account, limit, now)));
    };
    add('requests', requestsPerMinute, { owner, kind: 'requests', month: '' });
    add('streams', streams, { owner, kind: 'streams', month: '' });
    add(balance, tokens);
    add('usd', monthlyUsd);
    return all;
  }

  /** Near the edge of an account, or where something must be asked for first: the prompt is counted, and what others hold is waited for, in order. */
  async function inTurn(call: RoutedCall, context: Context, estimate: CostEstimate, holds: readonly Hold[], at: number): Promise<Reservation> {
    const startedAt = clock.monotonic();
    await taken(context, estimate, holds);
    return begin(call, context, estimate, holds, at, clock.monotonic() - startedAt);
  }

  /** Takes what all claims want, when it is their turn. */
  async function taken(context: Context, estimate: CostEstimate, holds: readonly Hold[]): Promise<void> {
    const turn = new LineWait(clock, context.signal, patience);
    accounts.enter(holds);
    try {
      for (;;) {
        const now = clock.monotonic();
        if (!estimate.isCounted && estimate.isNear(holds, now)) await count(estimate, holds, context);
        else if (estimate.isUnwatched) estimate.tell(holds, now); // what is there has changed
        let obstacle = accounts.take(holds);
        if (obstacle?.lack === 'spent' && !estimate.isCounted) {
          await count(estimate, holds, context);
          obstacle = accounts.take(holds);
        }
        if (!obstacle) break;
        noteAllowances(context.progress, holds, clock);
        if (obstacle.lack === 'spent' || obstacle.lack === 'minute' || turn.isOver) throw refusal(obstacle.hold, obstacle.lack, estimate);
        await turn.next(holds, accounts);
      }
    } finally {
      turn.end();
      accounts.leave(holds);
    }
  }

  /**
   * Counts the prompt. A caller who cannot pay however many tokens it has is refused first: nothing is counted for them. Meanwhile the call keeps its order, but
   * stands in no line: counting may take long, and others spend from the same account.
   */
  async function count(estimate: CostEstimate, holds: readonly Hold[], context: Context): Promise<void> {
    const now = clock.monotonic();
    for (const hold of holds) {
      const lack = hold.lease.lack(hold, now);
      if (lack !== 'minute' && (lack !== 'spent' || !estimate.isBeyond(hold))) continue;
      noteAllowances(context.progress, holds, clock);
      throw refusal(hold, lack, estimate);
    }
    accounts.leave(holds);
    await estimate.count(parts.countTokens, context);
    estimate.tell(holds, clock.monotonic());
  }

  /** The call is let in: that is written down before anything is asked of anybody. */
  function begin(call: RoutedCall, context: Context, estimate: CostEstimate, holds: readonly Hold[], at: number, waited: number): Reservation {
    const { requestId, step, caller, app, face, tags, balance = 'inference' } = context;
    const { rate, price } = call.route;
    for (const { lease, isTaken } of holds) if (lease.minute && !isTaken) (context.progress.permits ??= new Permits()).count(lease.account.owner);
    try {
      journal.began({
        requestId,
        step,
        at,
        userId: caller.userId,
        teamIds: caller.teamIds,
        keyId: caller.keyId,
        app,
        face,
        tags,
        model: call.model,
        balance,
        promptTokens: estimate.promptTokens,
        rate,
        price,
      });
    } catch (error) {
      for (const hold of holds) accounts.settle(hold, 0);
      throw error;
    }
    if (holds.length > 0) noteAllowances(context.progress, holds, clock);
    return new Reservation(reservationParts, context, estimate, holds, at, waited);
  }

  function refusal(hold: Hold, lack: Lack, estimate: CostEstimate): Fault {
    const { account, limit, minute } = hold.lease;
    const whose = account.owner.startsWith('team:') ? "Your team's plan" : 'Your plan';
    if (lack === 'spent') return estimate.refusal(hold, secondsToNextMonth(clock.now()));
    if (hold.lease.isOutOfContact(clock.monotonic())) return accounts.away();
    if (minute) return new Fault('rate-limited', `${whose} allows ${limit} requests a minute.`, { retryAfter: minute.wait(limit, clock.monotonic()) });
    return new Fault(
      'rate-limited',
      account.kind === 'streams' ? `${whose} allows ${limit} streams at a time.` : `Running requests hold what is left of ${whose.toLowerCase()}.`,
      { retryAfter: 1 },
    );
  }
}

/** Has another step of the request taken this permit? */
function hasTaken(permits: Permits, { lease: { account } }: Hold): boolean {
  if (account.kind === 'requests') return permits.isCounted(account.owner);
  return account.kind === 'streams' && permits.hasStream(account.owner);
}

/** What cannot be a limit allows nothing: the caller is refused, not let through. */
function isSane({ monthlyTokens, monthlyTrainTokens, monthlyUsd, requestsPerMinute, concurrentStreams }: Plan): boolean {
  return isLimit(monthlyTokens) && isLimit(monthlyTrainTokens) && isLimit(monthlyUsd) && isLimit(requestsPerMinute) && isLimit(concurrentStreams);
}

/** Also of what the types do not allow: plans come out of a database. */
const isLimit = (limit: unknown) => limit === undefined || (typeof limit === 'number' && limit >= 0);

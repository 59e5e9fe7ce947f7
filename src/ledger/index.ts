import type { Account, AccountKind, Balance, Owner } from '#core/account';
import type { Clock } from '#kit/async/clock';
import { Fault } from '#core/fault';
import type { Caller, Context } from '#core/generate';
import type { LeaseSource } from '#core/lease';
import type { CountTokens } from '#core/measure';
import { Permits } from '#core/permits';
import { monthOf, secondsToNextMonth, type Plan } from '#core/plan';
import type { RoutedCall } from '#core/routed-call';
import { Accounts } from './admission/accounts.ts';
import { noteAllowances } from './admission/allowances.ts';
import { Claim, type Lack } from './admission/local-lease.ts';
import type { CallJournal } from './journal/journal.ts';
import { Reservation } from './admission/reservation.ts';
import { Turn } from './admission/turn.ts';
import { Wants } from './admission/cost-estimate.ts';

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

export interface LedgerParts {
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

const nothing: readonly Claim[] = [];

export function openLedger(parts: LedgerParts): Ledger {
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
      const claims = claimsOf(call, context, at);
      const wants = new Wants(call, parts.reserveOutput());
      if (claims.length === 0) return begin(call, context, wants, claims, at, 0);
      const now = clock.monotonic();
      wants.tell(claims, now);
      const isNear = wants.isNear(claims, now);
      if (isNear || accounts.take(claims)) return inTurn(call, context, wants, claims, at);
      return begin(call, context, wants, claims, at, 0);
    },

    free(call, context) {
      const stop = accounts.closed ?? journal.trouble;
      if (stop) throw stop;
      const at = clock.now();
      const claims = claimsOf(call, context, at);
      if (claims.length > 0) noteAllowances(context.progress, claims, clock);
      return begin(call, context, new Wants(call, parts.reserveOutput()), nothing, at, 0);
    },

    async affords(call, context) {
      const stop = accounts.closed ?? journal.trouble;
      if (stop) throw stop;
      // Of what passes with time only that counts which never comes: a plan that allows none.
      const claims = claimsOf(call, context, clock.now()).filter(({ holding: { account, limit } }) => account.month !== '' || limit === 0);
      if (claims.length === 0) return;
      const wants = new Wants(call, parts.reserveOutput());
      wants.tell(claims, clock.monotonic());
      await taken(context, wants, claims);
      for (const claim of claims) accounts.settle(claim, 0);
    },
  };

  /** What the call needs of each account that a plan limits: of the caller's and of those of its teams. */
  function claimsOf(call: RoutedCall, { caller, balance = 'inference', progress }: Context, at: number): readonly Claim[] {
    let claims = claimsOn(nothing, `user:${caller.userId}`, parts.planOf(caller), call, balance, at);
    for (const teamId of caller.teamIds) claims = claimsOn(claims, `team:${teamId}`, parts.teamPlan(teamId), call, balance, at);
    if (progress.permits) for (const claim of claims) claim.isTaken = hasTaken(progress.permits, claim);
    return claims;
  }

  function claimsOn(claims: readonly Claim[], owner: Owner, plan: Plan | undefined, call: RoutedCall, balance: Balance, at: number): readonly Claim[] {
    if (!plan || !isSane(plan)) throw new Fault('quota-spent', 'Your plan is not known here: ask an administrator.', { retryAfter: secondsToNextMonth(at) });
    const tokens = balance === 'train' ? plan.monthlyTrainTokens : plan.monthlyTokens;
    const { monthlyUsd, requestsPerMinute, concurrentStreams } = plan;
    const streams = call.stream ? concurrentStreams : undefined;
    if (tokens === undefined && monthlyUsd === undefined && requestsPerMinute === undefined && streams === undefined) return claims;
    if (monthlyUsd !== undefined && !call.route.price)
      throw new Fault('forbidden', `Your plan is limited in US dollars, and ${call.route.name} has no price.`, { field: 'model' });
    const now = clock.monotonic();
    const month = monthOf(at);
    const all = [...claims];
    const add = (kind: AccountKind, limit: number | undefined, account: Account = { owner, kind, month }) => {
      if (limit !== undefined) all.push(new Claim(accounts.find(account, limit, now)));
    };
    add('requests', requestsPerMinute, { owner, kind: 'requests', month: '' });
    add('streams', streams, { owner, kind: 'streams', month: '' });
    add(balance, tokens);
    add('usd', monthlyUsd);
    return all;
  }

  /** Near the edge of an account, or where something must be asked for first: the prompt is counted, and what others hold is waited for, in order. */
  async function inTurn(call: RoutedCall, context: Context, wants: Wants, claims: readonly Claim[], at: number): Promise<Reservation> {
    const startedAt = clock.monotonic();
    await taken(context, wants, claims);
    return begin(call, context, wants, claims, at, clock.monotonic() - startedAt);
  }

  /** Takes what all claims want, when it is their turn. */
  async function taken(context: Context, wants: Wants, claims: readonly Claim[]): Promise<void> {
    const turn = new Turn(clock, context.signal, patience);
    accounts.enter(claims);
    try {
      for (;;) {
        const now = clock.monotonic();
        if (!wants.isCounted && wants.isNear(claims, now)) await count(wants, claims, context);
        else if (wants.isUnwatched) wants.tell(claims, now); // what is there has changed
        let obstacle = accounts.take(claims);
        if (obstacle?.lack === 'spent' && !wants.isCounted) {
          await count(wants, claims, context);
          obstacle = accounts.take(claims);
        }
        if (!obstacle) break;
        noteAllowances(context.progress, claims, clock);
        if (obstacle.lack === 'spent' || obstacle.lack === 'minute' || turn.isOver) throw refusal(obstacle.claim, obstacle.lack, wants);
        await turn.next(claims, accounts);
      }
    } finally {
      turn.end();
      accounts.leave(claims);
    }
  }

  /**
   * Counts the prompt. A caller who cannot pay however many tokens it has is refused first: nothing is counted for them. Meanwhile the call keeps its order, but
   * stands in no line: counting may take long, and others spend from the same account.
   */
  async function count(wants: Wants, claims: readonly Claim[], context: Context): Promise<void> {
    const now = clock.monotonic();
    for (const claim of claims) {
      const lack = claim.holding.lack(claim, now);
      if (lack !== 'minute' && (lack !== 'spent' || !wants.isBeyond(claim))) continue;
      noteAllowances(context.progress, claims, clock);
      throw refusal(claim, lack, wants);
    }
    accounts.leave(claims);
    await wants.count(parts.countTokens, context);
    wants.tell(claims, clock.monotonic());
  }

  /** The call is let in: that is written down before anything is asked of anybody. */
  function begin(call: RoutedCall, context: Context, wants: Wants, claims: readonly Claim[], at: number, waited: number): Reservation {
    const { requestId, step, caller, app, face, tags, balance = 'inference' } = context;
    const { rate, price } = call.route;
    for (const { holding, isTaken } of claims) if (holding.minute && !isTaken) (context.progress.permits ??= new Permits()).count(holding.account.owner);
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
        promptTokens: wants.promptTokens,
        rate,
        price,
      });
    } catch (error) {
      for (const claim of claims) accounts.settle(claim, 0);
      throw error;
    }
    if (claims.length > 0) noteAllowances(context.progress, claims, clock);
    return new Reservation(reservationParts, context, wants, claims, at, waited);
  }

  function refusal(claim: Claim, lack: Lack, wants: Wants): Fault {
    const { account, limit, minute } = claim.holding;
    const whose = account.owner.startsWith('team:') ? "Your team's plan" : 'Your plan';
    if (lack === 'spent') return wants.refusal(claim, secondsToNextMonth(clock.now()));
    if (claim.holding.isOutOfContact(clock.monotonic())) return accounts.away();
    if (minute) return new Fault('rate-limited', `${whose} allows ${limit} requests a minute.`, { retryAfter: minute.wait(limit, clock.monotonic()) });
    return new Fault(
      'rate-limited',
      account.kind === 'streams' ? `${whose} allows ${limit} streams at a time.` : `Running requests hold what is left of ${whose.toLowerCase()}.`,
      { retryAfter: 1 },
    );
  }
}

/** Has another step of the request taken this permit? */
function hasTaken(permits: Permits, { holding: { account } }: Claim): boolean {
  if (account.kind === 'requests') return permits.isCounted(account.owner);
  return account.kind === 'streams' && permits.hasStream(account.owner);
}

/** What cannot be a limit allows nothing: the caller is refused, not let through. */
function isSane({ monthlyTokens, monthlyTrainTokens, monthlyUsd, requestsPerMinute, concurrentStreams }: Plan): boolean {
  return isLimit(monthlyTokens) && isLimit(monthlyTrainTokens) && isLimit(monthlyUsd) && isLimit(requestsPerMinute) && isLimit(concurrentStreams);
}

/** Also of what the types do not allow: plans come out of a database. */
const isLimit = (limit: unknown) => limit === undefined || (typeof limit === 'number' && limit >= 0);

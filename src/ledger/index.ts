import type { Charge } from '#core/account';
import type { Context } from '#core/context';
import type { LeaseSource } from '#core/lease';
import type { RoutedCall } from '#core/routed-call';
import { Accounts, type AccountsDeps } from './admission/accounts.ts';
import { learnSpent, noteAllowances, type SpentOf } from './admission/allowances.ts';
import { CallLimits, noHolds, type CallLimitsDeps } from './admission/call-limits.ts';
import { CostEstimate } from './admission/cost-estimate.ts';
import type { Hold } from './admission/local-lease.ts';
import { chargesOf, Reservation } from './admission/reservation.ts';
import { WaitingLine, type WaitingLineDeps } from './admission/waiting-line.ts';
import type { CallJournal, OpenCall } from './journal/journal.ts';

export type { Reservation } from './admission/reservation.ts';

export interface Ledger {
  /** Sets aside what a call may cost; at once where that can be had. @throws Fault `quota-spent`, `rate-limited`, `forbidden`, `overloaded` */
  reserve(call: RoutedCall, context: Context): Reservation | Promise<Reservation>;
  /** For a call that costs nothing: what is left of the caller's limits is noted, and none of them applies. @throws Fault `overloaded` while nothing can be booked */
  free(call: RoutedCall, context: Context): Reservation;
  /**
   * Notes what is left of the caller's limits, for a request that makes no call.
   * @returns false where this process does not know yet what was spent of them
   * @throws Fault `quota-spent` where the limits themselves are not known
   */
  left(call: RoutedCall, context: Context): boolean;
  /** Could a call be paid for now? Nothing is set aside: that follows when it runs. @throws as `reserve` does */
  affords(call: RoutedCall, context: Context): Promise<void>;
  /** As `affords`, within the limits of a minute too: the call takes its permit of a request, which its answer does not take again. @throws as `reserve` does */
  admits(call: RoutedCall, context: Context): Promise<void>;
  /** Takes the permit of a request that asks no model, unless a call of the request has taken it. @throws as `reserve` does */
  enters(call: RoutedCall, context: Context): Promise<void>;
  /** Learns what other holders have spent, for what clients are told is left. @throws what `spentOf` throws */
  learn(spentOf: SpentOf): Promise<void>;
  readonly accounts: number;
  /** Gives back what is not spent. Calls that still run are settled as before. */
  close(): Promise<void>;
}

export interface LedgerDeps extends CallLimitsDeps, WaitingLineDeps {
  readonly source: LeaseSource;
  readonly journal: CallJournal;
  /** Output tokens set aside at a time where the call names no maximum. */
  readonly reserveOutput: () => number;
  readonly log: (problem: string, cause: unknown) => void;
  readonly reached?: AccountsDeps['reached'];
}

export function openLedger(deps: LedgerDeps): Ledger {
  const { journal, clock, reserveOutput } = deps;
  const accounts = new Accounts(deps);
  const limits = new CallLimits(deps, accounts);
  const line = new WaitingLine(deps, accounts);
  const reservationDeps = { accounts, journal, clock };

  /** @throws Fault `overloaded` while no call may spend */
  const requireOpen = (): void => {
    const stop = accounts.closed ?? journal.trouble;
    if (stop) throw stop;
  };

  /** Near the edge of an account, or where the source must be asked first. */
  const reserveInTurn = async (admission: Admission): Promise<Reservation> => {
    const startedAt = clock.monotonic();
    await line.take(admission.context, admission.estimate, admission.holds);
    return begin(admission, clock.monotonic() - startedAt);
  };

  /** Admits the call. The journal has that at the end of this turn, before any provider is asked: see `Reservation.begun`. */
  const begin = (admission: Admission, waited: number): Reservation => {
    const { context, estimate, holds, at, open } = admission;
    for (const { lease, isTaken } of holds) if (lease.minute && !isTaken) context.permits.count(lease.account.owner);
    const charges = chargesOf(holds);
    let written: Promise<void>;
    try {
      written = writeBegan(journal, admission, charges);
    } catch (error) {
      for (const hold of holds) accounts.settle(hold, 0);
      throw error;
    }
    noteAllowances(context.progress, holds, clock);
    return new Reservation(reservationDeps, context, estimate, holds, { at, waited, written, charges, open });
  };

  /** Notes what is left for a call that takes nothing now, where it is known what was spent elsewhere. */
  const noteLeft = ({ progress }: Context, holds: readonly Hold[]): void => {
    if (holds.every(({ lease: { account, isKnown } }) => account.month === '' || isKnown)) noteAllowances(progress, holds, clock);
  };

  /** Takes what a call needs of some of its limits, and gives it back, but for the permit of a request. */
  const check = async (call: RoutedCall, context: Context, isMeant: (hold: Hold) => boolean): Promise<void> => {
    requireOpen();
    const all = limits.holdsOf(call, context, clock.now());
    const holds = all.filter(isMeant);
    if (holds.length === 0) return noteLeft(context, all);
    const estimate = new CostEstimate(call, reserveOutput());
    estimate.setAmounts(holds, clock.monotonic());
    await line.take(context, estimate, holds);
    for (const hold of holds) {
      if (hold.lease.account.kind === 'requests' && !hold.isTaken) context.permits.count(hold.lease.account.owner);
      accounts.settle(hold, 0);
    }
    noteLeft(context, all);
  };

  return {
    get accounts() {
      return accounts.size;
    },
    close: () => accounts.close(),
    learn: (spentOf) => learnSpent(accounts, spentOf, clock),

    reserve(call, context) {
      requireOpen();
      const at = clock.now();
      const holds = limits.holdsOf(call, context, at);
      const estimate = new CostEstimate(call, reserveOutput());
      const admission = { call, context, estimate, holds, at, open: {} };
      if (holds.length === 0) return begin(admission, 0);
      const now = clock.monotonic();
      estimate.setAmounts(holds, now);
      if (estimate.isNear(holds, now) || accounts.take(holds)) return reserveInTurn(admission);
      return begin(admission, 0);
    },

    left(call, context) {
      const holds = limits.holdsOf(call, context, clock.now());
      noteAllowances(context.progress, holds, clock);
      return holds.every(({ lease }) => lease.isKnown);
    },

    free(call, context) {
      requireOpen();
      const at = clock.now();
      noteAllowances(context.progress, limits.holdsOf(call, context, at), clock);
      return begin({ call, context, estimate: new CostEstimate(call, reserveOutput()), holds: noHolds, at, open: {} }, 0);
    },

    // Waiting helps against a full minute, but not against a plan that allows no requests at all.
    affords: (call, context) => check(call, context, ({ lease: { account, limit } }) => account.month !== '' || limit === 0),
    admits: (call, context) => check(call, context, () => true),
    enters: (call, context) => check(call, context, ({ lease: { account } }) => account.kind === 'requests'),
  };
}

/** A call, with what it takes of which limits. */
interface Admission {
  readonly call: RoutedCall;
  readonly context: Context;
  readonly estimate: CostEstimate;
  readonly holds: readonly Hold[];
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly open: OpenCall;
}

function writeBegan(journal: CallJournal, { call, context, estimate, at, open }: Admission, charges: readonly Charge[] | undefined): Promise<void> {
  const { quickTokens: promptTokens } = estimate;
  const { requestId, step, caller, app, face, tags, balance = 'inference' } = context;
  const { userId, teamIds, keyId } = caller;
  const { rate, price, name } = call.route;
  const route = name === call.model ? undefined : name;
  return journal.began(
    { requestId, step, at, userId, teamIds, keyId, app, face, tags, model: call.model, route, charges, balance, promptTokens, rate, price },
    open,
  );
}

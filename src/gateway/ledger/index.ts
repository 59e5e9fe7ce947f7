import type { Clock } from '#kit/clock';
import { Fault } from '#model/fault';
import type { Caller, Context, Progress } from '#model/generate';
import { monthOf, secondsToNextMonth, type Plan, type Spent } from '#model/plan';
import type { UsageRow } from '#model/usage-row';
import type { RoutedCall } from '../calls.ts';
import { Balance, type Hold } from './balance.ts';
import type { Place } from './line.ts';
import { Wants } from './wants.ts';
import { writeBehind } from './write-behind.ts';

/** Where the rows are kept. */
export interface Books {
  spent(userId: number, month: string): Promise<Spent>;
  /** Writes rows and counters in one step; a row that is there already counts once. */
  record(rows: readonly UsageRow[]): Promise<void>;
}

/** What a call may spend, set aside until it is settled. */
export interface Reservation {
  /** Output tokens of all candidates that are covered. */
  readonly output: number;
  /** Milliseconds spent waiting for it. */
  readonly waited: number;
  /** Somebody must listen to the answer: it may have to be ended. */
  readonly open: boolean;
  /** Output tokens a candidate at most, for a call that nobody could stop. */
  readonly bound: number | undefined;
  /** Asks for more, up to so many output tokens. @returns false when nothing is left */
  grow(output: number): boolean;
  /** Books the call and frees the rest. Only the first time counts. */
  settle(row: UsageRow): void;
}

export interface Ledger {
  /** At once where it can be. @throws Fault `quota-spent`, `rate-limited`, `forbidden`, `overloaded` */
  reserve(call: RoutedCall, context: Context): Reservation | Promise<Reservation>;
  /** Rows not written yet. */
  readonly pending: number;
  /** Writes what is left. */
  close(): Promise<void>;
}

export interface LedgerParts {
  readonly books: Books;
  readonly planOf: (caller: Caller) => Plan | undefined;
  /** Output tokens set aside where the call names no maximum. */
  readonly reserveOutput: () => number;
  /** The exact tokens of some texts. */
  readonly countTokens: (texts: Iterable<string>) => Promise<number>;
  readonly clock: Clock;
  readonly log: (problem: string, cause: unknown) => void;
}

/** Milliseconds a call waits where only running calls stand in its way. */
const patience = 2000;

export function openLedger(parts: LedgerParts): Ledger {
  const { books, planOf, clock } = parts;
  const balances = new Map<number, Balance>();
  const rows = writeBehind((batch: readonly UsageRow[]) => books.record(batch), clock, parts.log);

  const balanceOf = async (userId: number): Promise<Balance> => {
    const month = monthOf(clock.now());
    let balance = balances.get(userId);
    if (!balance || balance.month !== month) {
      balance = new Balance(month, books.spent(userId, month), clock, balance);
      balances.set(userId, balance);
      forgetIdle(balances);
    }
    try {
      await balance.loaded;
    } catch (error) {
      if (balances.get(userId) === balance) balances.delete(userId);
      throw error;
    }
    return balance;
  };

  return {
    get pending() {
      return rows.pending;
    },
    close: () => rows.close(),

    reserve(call, context) {
      const plan = planOf(context.caller);
      if (!plan) throw new Fault('quota-spent', 'Your plan is not known here: ask an administrator.', { retryAfter: secondsToNextMonth(clock.now()) });
      if (plan.monthlyUsd !== undefined && !call.route.price)
        throw new Fault('forbidden', `Your plan is limited in US dollars, and ${call.route.name} has no price.`, { field: 'model' });
      const held = balances.get(context.caller.userId);
      if (!held?.ready || held.month !== monthOf(clock.now())) return balanceOf(context.caller.userId).then((balance) => counted(call, context, plan, balance));
      return counted(call, context, plan, held);
    },
  };

  /** Counts the request against the minute, then sets aside what it may spend. */
  function counted(call: RoutedCall, context: Context, plan: Plan, balance: Balance): Reservation | Promise<Reservation> {
    const { progress } = context;
    const minute = balance.minute.take(plan.requestsPerMinute);
    if (minute.allowance) progress.requests = minute.allowance;
    if (minute.wait > 0) throw new Fault('rate-limited', `Your plan allows ${plan.requestsPerMinute} requests a minute.`, { retryAfter: minute.wait });
    const wants = new Wants(call, parts.reserveOutput(), plan);
    const place: Place = { stream: call.stream };
    if (wants.isSmallBeside(balance.left(plan))) {
      const hold = balance.hold(wants.atFirst(), plan, place);
      if (typeof hold !== 'string') return reservationOf(hold, wants, context, plan, balance, 0);
    }
    return held(place, context, plan, balance, wants);
  }

  /** Near the edge of a balance: the prompt is counted, and what only running calls hold is waited for, in order. */
  async function held(place: Place, context: Context, plan: Plan, balance: Balance, wants: Wants): Promise<Reservation> {
    const startedAt = clock.monotonic();
    await wants.count(parts.countTokens);
    try {
      for (;;) {
        const hold = balance.hold(wants.atFirst(), plan, place);
        if (typeof hold !== 'string') return reservationOf(hold, wants, context, plan, balance, clock.monotonic() - startedAt);
        note(context.progress, balance, plan);
        if (hold === 'spent') throw wants.refusal(balance.unspent(plan), plan, secondsToNextMonth(clock.now()));
        const waited = clock.monotonic() - startedAt;
        if (waited >= patience)
          throw new Fault(
            'rate-limited',
            hold === 'streams' ? `Your plan allows ${plan.concurrentStreams} streams at a time.` : 'Your running requests hold what is left of your plan.',
            { retryAfter: 1 },
          );
        await balance.line.wait(place, hold, patience - waited, context.signal);
      }
    } finally {
      balance.line.leave(place);
    }
  }

  function reservationOf(hold: Hold, wants: Wants, { progress }: Context, plan: Plan, balance: Balance, waited: number): Reservation {
    note(progress, balance, plan);
    return {
      waited,
      get output() {
        return wants.outputOf(hold.amount);
      },
      open: wants.open,
      bound: wants.bound(hold.amount, balance.left(plan)),
      grow: (output) => balance.grow(hold, wants.after(output), plan),
      settle(row) {
        if (balance.settle(hold, row.planTokens, row.costUsd ?? 0)) rows.add(row);
      },
    };
  }
}

function note(progress: Progress, balance: Balance, plan: Plan): void {
  const allowance = balance.allowance(plan);
  if (allowance) progress.tokens = allowance;
}

const manyBalances = 50_000;

/** Balances nobody uses are loaded again when needed: memory stays bounded however many users there are. */
function forgetIdle(balances: Map<number, Balance>): void {
  if (balances.size < manyBalances) return;
  for (const [userId, balance] of balances) {
    if (balance.idle) balances.delete(userId);
    if (balances.size < manyBalances / 2) return;
  }
}

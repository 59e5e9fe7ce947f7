import type { Clock } from '#kit/async/clock';
import type { Book, Charge } from '#core/account';
import type { Fault } from '#core/fault';
import type { Context } from '#core/context';
import type { Permit } from '#core/permits';
import type { UsageRow } from '#core/usage-row';
import { pollMilliseconds, type Accounts } from './accounts.ts';
import { noteAllowances } from './allowances.ts';
import type { Hold, Growth } from './local-lease.ts';
import type { CallJournal, OpenCall } from '../journal/journal.ts';
import type { CostEstimate } from './cost-estimate.ts';

/** Milliseconds that an answer pauses for while other holders are asked to give back what they do not need. */
const growPatience = 450;

export interface ReservationDeps {
  readonly accounts: Accounts;
  readonly journal: CallJournal;
  readonly clock: Clock;
}

/** What a call may spend, set aside until it is settled. */
export class Reservation {
  /** When the call was let in, milliseconds since 1970: its costs belong to this month. */
  readonly at: number;
  /** Milliseconds that the call waited to be let in. */
  readonly waited: number;
  /** The maximum of output tokens of each candidate, for a call that could not be stopped. */
  readonly bound: number | undefined;
  /** The answer must be watched: it may have to be ended. */
  readonly isOpen: boolean;
  /** The accounts of a month or a day that the call was admitted by. */
  readonly charges: readonly Charge[] | undefined;
  /** Who meters the call puts itself there. */
  readonly open: OpenCall;
  /** Output tokens of all candidates that are covered. */
  output = Infinity;
  /** Above this many output tokens an open answer should ask for more. */
  comfort = Infinity;
  readonly #deps: ReservationDeps;
  readonly #context: Context;
  readonly #estimate: CostEstimate;
  readonly #holds: readonly Hold[];
  readonly #written: Promise<void>;
  /** Accounts that were known when the call was let in. */
  readonly #made: number;
  #isSettled = false;

  /** @param holds what is set aside of each limited account @param written resolves when the journal has the call */
  constructor(
    deps: ReservationDeps,
    context: Context,
    estimate: CostEstimate,
    holds: readonly Hold[],
    {
      at,
      waited,
      written,
      charges,
      open,
    }: {
      readonly at: number;
      readonly waited: number;
      readonly written: Promise<void>;
      readonly charges: readonly Charge[] | undefined;
      readonly open: OpenCall;
    },
  ) {
    this.open = open;
    this.charges = charges;
    this.#deps = deps;
    this.#context = context;
    this.#estimate = estimate;
    this.#holds = holds;
    this.#written = written;
    this.#made = deps.accounts.made;
    this.at = at;
    this.waited = waited;
    this.bound = undefined;
    this.isOpen = false;
    if (holds.length === 0) return;
    this.#cover();
    this.bound = estimate.bound(this.output);
    if (estimate.isUnwatched && this.output !== Infinity)
      for (const hold of holds) if (isGrowing(hold)) deps.accounts.trim(hold, estimate.amount(hold.lease.account.kind, this.output));
    this.isOpen = estimate.isOpen && this.output !== Infinity;
  }

  /** Tokens of the prompt: exact where little was left, else an estimate. */
  get promptTokens(): number {
    return this.#estimate.promptTokens;
  }

  /** Resolves when the journal has the call: not before that may anything be spent. @throws Fault `overloaded` where no disk takes it; all is free again then */
  async begun(): Promise<void> {
    try {
      await this.#written;
    } catch (error) {
      this.#isSettled = true;
      for (const hold of this.#holds) this.#deps.accounts.settle(hold, 0);
      throw error;
    }
  }

  /** Sets more aside for an answer that has `outputTokens` and goes on, before it is needed. @returns false when nothing is left */
  grow(outputTokens: number): boolean | Promise<boolean> {
    const lacking = this.#extend(outputTokens);
    if (outputTokens <= this.output) {
      if (lacking) {
        this.comfort = this.output; // asked once: the grant comes in time, or is waited for
        for (const hold of this.#holds) if (isGrowing(hold)) this.#deps.accounts.grow(hold.lease, this.#growth(hold, outputTokens));
      }
      return true;
    }
    return this.#growLater(outputTokens);
  }

  /** Writes down how many output tokens the answer has: should this process die, at least they are booked. */
  spoke(outputTokens: number): void {
    const { requestId, step } = this.#context;
    if (!this.#isSettled) this.#deps.journal.spoke(requestId, step, outputTokens);
  }

  /** Books the call and frees the rest. Only the first time counts. @returns resolves when it is written: the client is told the end then */
  settle(row: UsageRow): Promise<void> | undefined {
    if (this.#isSettled) return undefined;
    this.#isSettled = true;
    try {
      return this.#deps.journal.settled(row);
    } finally {
      const { permits } = this.#context;
      if (this.#deps.accounts.made > this.#made) this.#deps.accounts.noteLate(row);
      for (const hold of this.#holds) {
        if (hold.lease.account.kind === 'streams' && !hold.isTaken && permits.isHeld) permits.keep(new StreamPermit(this.#deps.accounts, hold));
        else this.#deps.accounts.settle(hold, costOf(hold, row));
      }
      if (this.#holds.length > 0 && !this.#estimate.isStream) noteAllowances(this.#context.progress, this.#holds, this.#deps.clock);
    }
  }

  /** Takes what is there, up to a step beyond the output so far. @returns whether less was there */
  #extend(outputTokens: number): boolean {
    const now = this.#deps.clock.monotonic();
    const wanted = outputTokens + this.#estimate.step;
    let reach = wanted;
    for (const { lease, held } of this.#holds) {
      const more = Math.max(0, Math.min(lease.free, lease.room(now)));
      reach = Math.min(reach, this.#estimate.output(lease.account.kind, held + more));
    }
    if (reach > this.output)
      for (const hold of this.#holds) {
        const amount = this.#estimate.amount(hold.lease.account.kind, reach);
        if (amount > hold.held && isGrowing(hold)) hold.lease.grow(hold, amount);
      }
    this.#cover();
    return reach < wanted;
  }

  /** Asks the source, and polls it until the patience is over. */
  async #growLater(outputTokens: number): Promise<boolean> {
    const { clock, accounts } = this.#deps;
    const until = clock.monotonic() + growPatience;
    for (;;) {
      const now = clock.monotonic();
      const lacking = this.#holds.filter((hold) => isGrowing(hold) && this.#growth(hold, outputTokens).least > 0);
      if (lacking.some((hold) => this.#growth(hold, outputTokens).least > hold.lease.room(now))) return false;
      let away: Fault | undefined;
      await Promise.all(lacking.map((hold) => accounts.grown(hold.lease, this.#growth(hold, outputTokens)))).catch((fault: Fault) => (away = fault));
      this.#extend(outputTokens);
      if (outputTokens <= this.output) return true;
      if (clock.monotonic() >= until) {
        if (away) throw away;
        return false;
      }
      await clock.sleep(pollMilliseconds, this.#context.signal);
    }
  }

  /** What an answer that has `outputTokens` and goes on needs more of an account. */
  #growth({ lease, held }: Hold, outputTokens: number): Growth {
    const { kind } = lease.account;
    return { least: this.#estimate.amount(kind, outputTokens) - held, most: this.#estimate.amount(kind, outputTokens + this.#estimate.step) - held };
  }

  #cover(): void {
    let output = Infinity;
    for (const { lease, held } of this.#holds) output = Math.min(output, this.#estimate.output(lease.account.kind, held));
    this.output = output;
    // The provider ends an answer that has a maximum: its tokens so far are only an estimate.
    this.comfort = this.#estimate.isOpen ? output - this.#estimate.step / 2 : Infinity;
  }
}

/** A permit for one of an owner's concurrent streams. */
class StreamPermit implements Permit {
  readonly #accounts: Accounts;
  readonly #hold: Hold;

  constructor(accounts: Accounts, hold: Hold) {
    this.#accounts = accounts;
    this.#hold = hold;
  }

  get owner(): Book {
    return this.#hold.lease.account.owner;
  }

  giveBack(): void {
    this.#accounts.settle(this.#hold, 0);
  }
}

/** The accounts of a month or a day that a call is admitted by, whose leases it will settle. @returns undefined: none, as for callers without such limits */
export function chargesOf(holds: readonly Hold[]): readonly Charge[] | undefined {
  let charges: Charge[] | undefined;
  for (const { lease } of holds) if (lease.charge) (charges ??= []).push(lease.charge);
  return charges;
}

/** Does the account pay more the longer the answer is? */
const isGrowing = ({ lease }: Hold) => lease.account.month !== '';

/** In the unit of the hold's account. */
function costOf({ lease }: Hold, row: UsageRow): number {
  switch (lease.account.kind) {
    case 'inference':
    case 'train':
      return row.planTokens;
    case 'usd':
      return row.costUsd ?? 0;
    case 'tokens':
      return row.balance === 'inference' ? row.planTokens : 0;
    case 'requests':
    case 'streams':
      return 0;
    default:
      return lease.account.kind satisfies never;
  }
}

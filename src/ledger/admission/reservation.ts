import type { Clock } from '#kit/async/clock';
import type { Owner } from '#core/account';
import type { Fault } from '#core/fault';
import type { Context } from '#core/context';
import type { Permit } from '#core/permits';
import type { UsageRow } from '#core/usage-row';
import { pollMilliseconds, type Accounts } from './accounts.ts';
import { noteAllowances } from './allowances.ts';
import type { Hold, Growth } from './local-lease.ts';
import type { CallJournal } from '../journal/journal.ts';
import type { CostEstimate } from './cost-estimate.ts';

/** Milliseconds for which an answer that may go on stops, while others are asked to give back what they do not need. */
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
  /** Of the prompt: exact where little was left, else about. */
  readonly promptTokens: number;
  /** Milliseconds spent waiting for it. */
  readonly waited: number;
  /** Output tokens a candidate at most, for a call that nobody could stop. */
  readonly bound: number | undefined;
  /** Somebody must listen to the answer: it may have to be ended. */
  readonly isOpen: boolean;
  /** Output tokens of all candidates that are covered. */
  output = Infinity;
  /** An open answer with more output tokens than this should ask for more. */
  comfort = Infinity;
  readonly #parts: ReservationDeps;
  readonly #context: Context;
  readonly #wants: CostEstimate;
  readonly #claims: readonly Hold[];
  #isSettled = false;

  /** @param holds what is set aside, of each account that is limited */
  constructor(parts: ReservationDeps, context: Context, estimate: CostEstimate, holds: readonly Hold[], at: number, waited: number) {
    this.#parts = parts;
    this.#context = context;
    this.#wants = estimate;
    this.#claims = holds;
    this.at = at;
    this.waited = waited;
    this.promptTokens = estimate.promptTokens;
    this.bound = undefined;
    this.isOpen = false;
    if (holds.length === 0) return;
    this.#cover();
    this.bound = estimate.bound(this.output);
    if (estimate.isUnwatched && this.output !== Infinity)
      for (const hold of holds) if (isGrowing(hold)) parts.accounts.trim(hold, estimate.amount(hold.lease.account.kind, this.output));
    this.isOpen = estimate.isOpen && this.output !== Infinity;
  }

  /** For an answer that has so many output tokens and goes on: sets more aside, and asks for it before it is needed. @returns false when nothing is left */
  grow(said: number): boolean | Promise<boolean> {
    const lacking = this.#extend(said);
    if (said <= this.output) {
      if (lacking) {
        this.comfort = this.output; // asked once; the answer comes in time, or is waited for
        for (const hold of this.#claims) if (isGrowing(hold)) this.#parts.accounts.grow(hold.lease, this.#growth(hold, said));
      }
      return true;
    }
    return this.#growLater(said);
  }

  /** So many output tokens have been said: should this process die, at least they are booked. */
  spoke(outputTokens: number): void {
    const { requestId, step } = this.#context;
    if (!this.#isSettled) this.#parts.journal.spoke(requestId, step, outputTokens);
  }

  /** Books the call and frees the rest. Only the first time counts. */
  settle(row: UsageRow): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    try {
      this.#parts.journal.settled(row);
    } finally {
      const { permits } = this.#context.progress;
      for (const hold of this.#claims) {
        if (hold.lease.account.kind === 'streams' && !hold.isTaken && permits?.isHeld) permits.keep(new StreamPermit(this.#parts.accounts, hold));
        else this.#parts.accounts.settle(hold, costOf(hold, row));
      }
      if (this.#claims.length > 0 && !this.#wants.isStream) noteAllowances(this.#context.progress, this.#claims, this.#parts.clock);
    }
  }

  /** Takes what is there up to a step beyond what was said. @returns whether less was there */
  #extend(said: number): boolean {
    const now = this.#parts.clock.monotonic();
    const wanted = said + this.#wants.step;
    let reach = wanted;
    for (const { lease, held } of this.#claims) {
      const more = Math.max(0, Math.min(lease.free, lease.room(now)));
      reach = Math.min(reach, this.#wants.output(lease.account.kind, held + more));
    }
    if (reach > this.output)
      for (const hold of this.#claims) {
        const amount = this.#wants.amount(hold.lease.account.kind, reach);
        if (amount > hold.held && isGrowing(hold)) hold.lease.grow(hold, amount);
      }
    this.#cover();
    return reach < wanted;
  }

  /** Where nothing is here, the source is asked, and a little later once more. */
  async #growLater(said: number): Promise<boolean> {
    const { clock, accounts } = this.#parts;
    const until = clock.monotonic() + growPatience;
    for (;;) {
      const now = clock.monotonic();
      const lacking = this.#claims.filter((hold) => isGrowing(hold) && this.#growth(hold, said).least > 0);
      if (lacking.some((hold) => this.#growth(hold, said).least > hold.lease.room(now))) return false;
      let away: Fault | undefined;
      await Promise.all(lacking.map((hold) => accounts.grown(hold.lease, this.#growth(hold, said)))).catch((fault: Fault) => (away = fault));
      this.#extend(said);
      if (said <= this.output) return true;
      if (clock.monotonic() >= until) {
        if (away) throw away;
        return false;
      }
      await clock.sleep(pollMilliseconds, this.#context.signal);
    }
  }

  /** What an account must and should have more, for an answer that has so many output tokens and goes on. */
  #growth({ lease: local, held }: Hold, said: number): Growth {
    const { kind } = local.account;
    return { least: this.#wants.amount(kind, said) - held, most: this.#wants.amount(kind, said + this.#wants.step) - held };
  }

  #cover(): void {
    let output = Infinity;
    for (const { lease, held } of this.#claims) output = Math.min(output, this.#wants.output(lease.account.kind, held));
    this.output = output;
    // An answer that has its maximum is ended by that: how many tokens it has so far is only guessed at.
    this.comfort = this.#wants.isOpen ? output - this.#wants.step / 2 : Infinity;
  }
}

/** One of the streams at a time that an owner is allowed. */
class StreamPermit implements Permit {
  readonly #accounts: Accounts;
  readonly #claim: Hold;

  constructor(accounts: Accounts, hold: Hold) {
    this.#accounts = accounts;
    this.#claim = hold;
  }

  get owner(): Owner {
    return this.#claim.lease.account.owner;
  }

  giveBack(): void {
    this.#accounts.settle(this.#claim, 0);
  }
}

/** Does it cost more the longer the answer is? */
const isGrowing = ({ lease: holding }: Hold) => holding.account.month !== '';

/** In the unit of the claim's account. */
function costOf({ lease: holding }: Hold, row: UsageRow): number {
  switch (holding.account.kind) {
    case 'inference':
    case 'train':
      return row.planTokens;
    case 'usd':
      return row.costUsd ?? 0;
    case 'requests':
    case 'streams':
      return 0;
    default:
      return holding.account.kind satisfies never;
  }
}

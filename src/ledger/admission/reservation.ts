import type { Clock } from '#kit/async/clock';
import type { Owner } from '#core/account';
import type { Fault } from '#core/fault';
import type { Context } from '#core/generate';
import type { Permit } from '#core/permits';
import type { UsageRow } from '#core/usage-row';
import { pollMilliseconds, type Accounts } from './accounts.ts';
import { noteAllowances } from './allowances.ts';
import type { Claim, Growth } from './local-lease.ts';
import type { CallJournal } from '../journal/journal.ts';
import type { Wants } from './cost-estimate.ts';

/** Milliseconds for which an answer that may go on stops, while others are asked to give back what they do not need. */
const growPatience = 450;

export interface ReservationParts {
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
  readonly #parts: ReservationParts;
  readonly #context: Context;
  readonly #wants: Wants;
  readonly #claims: readonly Claim[];
  #isSettled = false;

  /** @param claims what is set aside, of each account that is limited */
  constructor(parts: ReservationParts, context: Context, wants: Wants, claims: readonly Claim[], at: number, waited: number) {
    this.#parts = parts;
    this.#context = context;
    this.#wants = wants;
    this.#claims = claims;
    this.at = at;
    this.waited = waited;
    this.promptTokens = wants.promptTokens;
    this.bound = undefined;
    this.isOpen = false;
    if (claims.length === 0) return;
    this.#cover();
    this.bound = wants.bound(this.output);
    if (wants.isUnwatched && this.output !== Infinity)
      for (const claim of claims) if (isGrowing(claim)) parts.accounts.trim(claim, wants.amount(claim.holding.account.kind, this.output));
    this.isOpen = wants.isOpen && this.output !== Infinity;
  }

  /** For an answer that has so many output tokens and goes on: sets more aside, and asks for it before it is needed. @returns false when nothing is left */
  grow(said: number): boolean | Promise<boolean> {
    const lacking = this.#extend(said);
    if (said <= this.output) {
      if (lacking) {
        this.comfort = this.output; // asked once; the answer comes in time, or is waited for
        for (const claim of this.#claims) if (isGrowing(claim)) this.#parts.accounts.grow(claim.holding, this.#growth(claim, said));
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
      for (const claim of this.#claims) {
        if (claim.holding.account.kind === 'streams' && !claim.isTaken && permits?.isHeld) permits.keep(new StreamPermit(this.#parts.accounts, claim));
        else this.#parts.accounts.settle(claim, costOf(claim, row));
      }
      if (this.#claims.length > 0 && !this.#wants.isStream) noteAllowances(this.#context.progress, this.#claims, this.#parts.clock);
    }
  }

  /** Takes what is there up to a step beyond what was said. @returns whether less was there */
  #extend(said: number): boolean {
    const now = this.#parts.clock.monotonic();
    const wanted = said + this.#wants.step;
    let reach = wanted;
    for (const { holding, held } of this.#claims) {
      const more = Math.max(0, Math.min(holding.free, holding.room(now)));
      reach = Math.min(reach, this.#wants.output(holding.account.kind, held + more));
    }
    if (reach > this.output)
      for (const claim of this.#claims) {
        const amount = this.#wants.amount(claim.holding.account.kind, reach);
        if (amount > claim.held && isGrowing(claim)) claim.holding.grow(claim, amount);
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
      const lacking = this.#claims.filter((claim) => isGrowing(claim) && this.#growth(claim, said).least > 0);
      if (lacking.some((claim) => this.#growth(claim, said).least > claim.holding.room(now))) return false;
      let away: Fault | undefined;
      await Promise.all(lacking.map((claim) => accounts.grown(claim.holding, this.#growth(claim, said)))).catch((fault: Fault) => (away = fault));
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
  #growth({ holding, held }: Claim, said: number): Growth {
    const { kind } = holding.account;
    return { least: this.#wants.amount(kind, said) - held, most: this.#wants.amount(kind, said + this.#wants.step) - held };
  }

  #cover(): void {
    let output = Infinity;
    for (const { holding, held } of this.#claims) output = Math.min(output, this.#wants.output(holding.account.kind, held));
    this.output = output;
    // An answer that has its maximum is ended by that: how many tokens it has so far is only guessed at.
    this.comfort = this.#wants.isOpen ? output - this.#wants.step / 2 : Infinity;
  }
}

/** One of the streams at a time that an owner is allowed. */
class StreamPermit implements Permit {
  readonly #accounts: Accounts;
  readonly #claim: Claim;

  constructor(accounts: Accounts, claim: Claim) {
    this.#accounts = accounts;
    this.#claim = claim;
  }

  get owner(): Owner {
    return this.#claim.holding.account.owner;
  }

  giveBack(): void {
    this.#accounts.settle(this.#claim, 0);
  }
}

/** Does it cost more the longer the answer is? */
const isGrowing = ({ holding }: Claim) => holding.account.month !== '';

/** In the unit of the claim's account. */
function costOf({ holding }: Claim, row: UsageRow): number {
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

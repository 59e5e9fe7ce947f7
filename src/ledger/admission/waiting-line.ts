import type { Clock } from '#kit/async/clock';
import { inUnits } from '#kit/text/in-units';
import type { Context } from '#core/context';
import { Fault } from '#core/fault';
import type { LimitedTeam } from '#core/plan';
import type { CountTokens } from '#core/measure';
import type { Accounts } from './accounts.ts';
import { noteAllowances } from './allowances.ts';
import type { CostEstimate } from './cost-estimate.ts';
import { capitalized, limitWords, unitOf } from './limit-words.ts';
import { LineWait } from './line-wait.ts';
import type { Hold } from './local-lease.ts';
import { graver, secondsUntil, type Obstacle } from './obstacle.ts';

export interface WaitingLineDeps {
  /** Exact. @throws Fault `rate-limited`, `overloaded` where too much is being counted; the signal's reason */
  readonly countTokens: CountTokens;
  /** A team as its refusals name it; undefined where it is not known. */
  readonly teamOf?: (teamId: number) => LimitedTeam | undefined;
  readonly clock: Clock;
}

/** Milliseconds that a call waits where only running calls or other holders stand in its way. */
const patience = 2000;

/** Takes the holds of calls that cannot have them at once, in the order of the calls. */
export class WaitingLine {
  readonly #deps: WaitingLineDeps;
  readonly #accounts: Accounts;

  constructor(deps: WaitingLineDeps, accounts: Accounts) {
    this.#deps = deps;
    this.#accounts = accounts;
  }

  /**
   * Takes all holds of a call when it is its turn. Near the edge of an account its prompt is counted first.
   * @throws Fault `quota-spent`, `rate-limited`, `overloaded`; the reason of the caller's signal
   */
  async take(context: Context, estimate: CostEstimate, holds: readonly Hold[]): Promise<void> {
    const { clock } = this.#deps;
    const accounts = this.#accounts;
    const wait = new LineWait(clock, context.signal, patience);
    accounts.enter(holds);
    try {
      for (;;) {
        const now = clock.monotonic();
        if (!estimate.isCounted && estimate.isNear(holds, now)) await this.#count(estimate, holds, context);
        else if (estimate.isUnwatched) estimate.setAmounts(holds, now); // they follow what is available
        let obstacle = accounts.take(holds);
        if (obstacle && !estimate.isCounted && (obstacle.lack === 'spent' || (obstacle.lack === 'minute' && obstacle.hold.lease.account.kind === 'tokens'))) {
          await this.#count(estimate, holds, context);
          obstacle = accounts.take(holds);
        }
        if (!obstacle) break;
        noteAllowances(context.progress, holds, clock, obstacle.hold.lease.minute ? obstacle.hold : undefined);
        if (obstacle.lack === 'spent' || obstacle.lack === 'minute' || wait.isOver) throw this.#limitFault(obstacle, estimate, context);
        await wait.next(holds, accounts);
      }
    } finally {
      wait.end();
      accounts.leave(holds);
    }
  }

  /**
   * Counts the prompt. A caller who cannot pay however many tokens it has is refused before that. Meanwhile the call keeps its order but leaves its lines:
   * counting may take long, and others spend from the same accounts.
   */
  async #count(estimate: CostEstimate, holds: readonly Hold[], context: Context): Promise<void> {
    const { clock, countTokens } = this.#deps;
    const now = clock.monotonic();
    let hopeless: Obstacle | undefined;
    for (const hold of holds) {
      const lack = hold.lease.lack(hold, now);
      const isHopeless = lack === 'minute' ? hold.lease.account.kind === 'requests' : lack === 'spent' && estimate.isBeyond(hold);
      if (lack && isHopeless) hopeless = graver(hopeless, { hold, lack }, clock);
    }
    if (hopeless) {
      noteAllowances(context.progress, holds, clock, hopeless.hold.lease.minute ? hopeless.hold : undefined);
      throw this.#limitFault(hopeless, estimate, context);
    }
    this.#accounts.leave(holds);
    await estimate.count(countTokens, context);
    estimate.setAmounts(holds, clock.monotonic());
  }

  /** The fault of a call that a limit keeps out: it names the limit and whose it is. */
  #limitFault({ hold, lack }: Obstacle, estimate: CostEstimate, { caller }: Context): Fault {
    const { clock, teamOf = () => undefined } = this.#deps;
    const { account, limit, minute } = hold.lease;
    const words = limitWords(account, caller, teamOf);
    const retryAfter = secondsUntil(hold, clock);
    if (lack === 'spent') return estimate.spentFault(hold, words, retryAfter);
    if (hold.lease.isOutOfContact(clock.monotonic())) return this.#accounts.awayFault();
    const never = limit > 0 ? {} : ({ never: true } as const);
    const its = capitalized(words.of);
    if (account.kind === 'tokens' && hold.least > limit && limit > 0) return estimate.minuteFault(hold, words);
    if (minute) {
      const cure = limit > 0 ? `send this again in ${inUnits(Math.ceil(retryAfter), 'seconds')}` : 'ask an administrator';
      const text = `${its} allows ${inUnits(limit, unitOf(account.kind))} a minute (${words.limit}): ${cure}.`;
      return new Fault('rate-limited', text, { retryAfter, unbegun: true, ...never, limit: account.kind });
    }
    const rest = `what is left of ${words.of} for ${words.period} (${words.limit})`;
    let text = `Running requests have reserved ${rest}: wait until one of them ends.`;
    if (account.kind === 'streams')
      text = `${its} allows ${inUnits(limit, 'streams')} at a time (${words.limit}): ${limit > 0 ? 'wait until another stream ends' : 'ask an administrator'}.`;
    else if (lack === 'elsewhere')
      text = `Other servers have reserved ${rest}: try again, and if this continues, ask an administrator whether one of them is lost (dragoman doctor).`;
    return new Fault('rate-limited', text, { retryAfter: account.kind === 'streams' ? retryAfter : 1, unbegun: true, ...never, limit: account.kind });
  }
}

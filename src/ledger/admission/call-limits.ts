import type { Account, AccountKind, Balance, Owner } from '#core/account';
import type { Clock } from '#kit/async/clock';
import type { Caller, Context } from '#core/context';
import { Fault } from '#core/fault';
import type { Permits } from '#core/permits';
import { monthOf, secondsToNextMonth, type Plan } from '#core/plan';
import type { RoutedCall } from '#core/routed-call';
import type { Accounts } from './accounts.ts';
import { Hold } from './local-lease.ts';

export interface CallLimitsDeps {
  /** The plan of the caller's own; undefined: its name is not known. */
  readonly planOf: (caller: Caller) => Plan | undefined;
  /** `{}` for a team without limits; undefined: what it may spend is not known. */
  readonly teamPlan: (teamId: number) => Plan | undefined;
  readonly clock: Clock;
}

export const noHolds: readonly Hold[] = [];

/** The accounts that limit a call, by the plans of its caller and of the caller's teams. */
export class CallLimits {
  readonly #deps: CallLimitsDeps;
  readonly #accounts: Accounts;

  constructor(deps: CallLimitsDeps, accounts: Accounts) {
    this.#deps = deps;
    this.#accounts = accounts;
  }

  /**
   * One hold for each account that limits the call. Nothing is set aside yet.
   *
   * @param at milliseconds since 1970: the month of the accounts
   * @throws Fault `quota-spent` where a plan is not known, `forbidden` where a plan in US dollars meets a model without a price
   */
  holdsOf(call: RoutedCall, { caller, balance = 'inference', permits }: Context, at: number): readonly Hold[] {
    const { planOf, teamPlan } = this.#deps;
    let holds = this.#add(noHolds, `user:${caller.userId}`, planOf(caller), call, balance, at);
    for (const teamId of caller.teamIds) holds = this.#add(holds, `team:${teamId}`, teamPlan(teamId), call, balance, at);
    for (const hold of holds) hold.isTaken = hasTaken(permits, hold);
    return holds;
  }

  #add(holds: readonly Hold[], owner: Owner, plan: Plan | undefined, call: RoutedCall, balance: Balance, at: number): readonly Hold[] {
    if (!plan || !isSane(plan))
      throw new Fault('quota-spent', 'Your plan does not exist on this server: ask an administrator.', { retryAfter: secondsToNextMonth(at) });
    const tokens = balance === 'train' ? plan.monthlyTrainTokens : plan.monthlyTokens;
    const { monthlyUsd, requestsPerMinute, concurrentStreams } = plan;
    const streams = call.stream ? concurrentStreams : undefined;
    if (tokens === undefined && monthlyUsd === undefined && requestsPerMinute === undefined && streams === undefined) return holds;
    if (monthlyUsd !== undefined && !call.route.price)
      throw new Fault('forbidden', `Your plan is limited in US dollars, and ${call.route.name} has no price.`, { field: 'model' });
    const now = this.#deps.clock.monotonic();
    const month = monthOf(at);
    const all = [...holds];
    const add = (kind: AccountKind, limit: number | undefined, account: Account = { owner, kind, month }) => {
      if (limit !== undefined) all.push(new Hold(this.#accounts.find(account, limit, now)));
    };
    add('requests', requestsPerMinute, { owner, kind: 'requests', month: '' });
    add('streams', streams, { owner, kind: 'streams', month: '' });
    add(balance, tokens);
    add('usd', monthlyUsd);
    return all;
  }
}

/** Has another step of the request taken this permit? */
function hasTaken(permits: Permits, { lease: { account } }: Hold): boolean {
  if (account.kind === 'requests') return permits.isCounted(account.owner);
  return account.kind === 'streams' && permits.hasStream(account.owner);
}

/** A plan with a limit that is no number allows nothing: its caller is refused, not let through. */
function isSane({ monthlyTokens, monthlyTrainTokens, monthlyUsd, requestsPerMinute, concurrentStreams }: Plan): boolean {
  return isLimit(monthlyTokens) && isLimit(monthlyTrainTokens) && isLimit(monthlyUsd) && isLimit(requestsPerMinute) && isLimit(concurrentStreams);
}

/** Also of what the types do not allow: plans come out of a database. */
const isLimit = (limit: unknown) => limit === undefined || (typeof limit === 'number' && limit >= 0);

import type { AccountKind, Balance, Book, Owner } from '#core/account';
import type { Clock } from '#kit/async/clock';
import type { Caller, Context } from '#core/context';
import { Fault } from '#core/fault';
import type { Permits } from '#core/permits';
import { permitKind } from '#core/lease';
import { areLimits, dayOf, monthOf, secondsToNextMonth, type LimitedTeam, type ModelLimits, type Plan } from '#core/plan';
import type { RoutedCall } from '#core/routed-call';
import type { Accounts } from './accounts.ts';
import { capitalized, ownerWords } from './limit-words.ts';
import { Hold } from './local-lease.ts';

export interface CallLimitsDeps {
  /** The plan of the caller's own; undefined: its name is not known. */
  readonly planOf: (caller: Caller) => Plan | undefined;
  /** `{}` for a team without limits; undefined: what it may spend is not known. */
  readonly teamPlan: (teamId: number) => Plan | undefined;
  /** A team as its refusals name it; undefined where it is not known. */
  readonly teamOf?: (teamId: number) => LimitedTeam | undefined;
  /** The name of the model behind a name or an alias; undefined: there is none. Asked only for limits of single models. */
  readonly modelName?: (name: string) => string | undefined;
  readonly clock: Clock;
}

export const noHolds: readonly Hold[] = [];

interface Limited {
  readonly caller: Caller;
  readonly call: RoutedCall;
  readonly balance: Balance;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly holds: Hold[];
}

/** The accounts that limit a call: by the plan of its caller, the caller's teams and the API key. */
export class CallLimits {
  readonly #deps: CallLimitsDeps;
  readonly #accounts: Accounts;

  constructor(deps: CallLimitsDeps, accounts: Accounts) {
    this.#deps = deps;
    this.#accounts = accounts;
  }

  /**
   * One hold for each account that limits the call. Nothing is set aside yet.
   * @param at milliseconds since 1970: the month and the day of the accounts
   * @throws Fault `quota-spent` where limits are not known, `forbidden` where a limit in US dollars meets a model without a price
   */
  holdsOf(call: RoutedCall, { caller, balance = 'inference', permits }: Context, at: number): readonly Hold[] {
    const { planOf, teamPlan } = this.#deps;
    let holds: Hold[] | undefined;
    const add = (whose: 'user' | 'team' | 'key', id: number, plan: Plan | undefined) => {
      if (!plan || !isSane(plan)) throw this.#unknownLimits(`${whose}:${id}`, caller, at);
      if (isLimiting(plan)) this.#add({ caller, call, balance, at, holds: (holds ??= []) }, whose, id, plan);
    };
    add('user', caller.userId, planOf(caller));
    for (const teamId of caller.teamIds) add('team', teamId, teamPlan(teamId));
    if (caller.keyLimits) add('key', caller.keyId, caller.keyLimits);
    if (holds === undefined) return noHolds;
    for (const hold of holds) hold.isTaken = hasTaken(permits, hold);
    return holds;
  }

  #add(limited: Limited, whose: 'user' | 'team' | 'key', id: number, plan: Plan): void {
    const { call, balance, at } = limited;
    const owner: Owner = `${whose}:${id}`;
    const isInference = balance === 'inference';
    const { modelLimits, dailyUsd, monthlyUsd } = plan;
    if ((monthlyUsd ?? dailyUsd) !== undefined) this.#requirePrice(limited, owner, monthlyUsd === undefined ? 'dailyUsd' : 'monthlyUsd');
    this.#hold(limited, owner, 'requests', plan.requestsPerMinute);
    this.#hold(limited, owner, 'streams', call.stream ? plan.concurrentStreams : undefined);
    if (isInference) this.#hold(limited, owner, 'tokens', plan.tokensPerMinute);
    this.#hold(limited, owner, balance, isInference ? plan.monthlyTokens : plan.monthlyTrainTokens);
    this.#hold(limited, owner, 'usd', monthlyUsd);
    if ((plan.dailyTokens ?? dailyUsd) !== undefined) {
      const day: Book = `${owner}@${dayOf(at)}`;
      if (isInference) this.#hold(limited, day, 'inference', plan.dailyTokens);
      this.#hold(limited, day, 'usd', dailyUsd);
    }
    if (modelLimits) this.#addModel(limited, owner, modelLimits);
  }

  #addModel(limited: Limited, owner: Owner, all: Readonly<Record<string, ModelLimits>>): void {
    const { call, balance } = limited;
    const { name } = call.route;
    const { modelName } = this.#deps;
    for (const [given, limits] of Object.entries(all)) {
      if (given !== name && (!modelName || modelName(given) !== name)) continue;
      const book: Book = `${owner}/${name}`;
      if (limits.monthlyUsd !== undefined) this.#requirePrice(limited, owner, 'modelLimits');
      this.#hold(limited, book, 'requests', limits.requestsPerMinute);
      if (balance === 'inference') this.#hold(limited, book, 'inference', limits.monthlyTokens);
      this.#hold(limited, book, 'usd', limits.monthlyUsd);
      return; // of a model and its aliases one stands
    }
  }

  #hold({ holds, at }: Limited, owner: Book, kind: AccountKind, limit: number | undefined): void {
    if (limit === undefined) return;
    const month = permitKind(kind) === undefined ? monthOf(at) : '';
    holds.push(new Hold(this.#accounts.find({ owner, kind, month }, limit, this.#deps.clock.monotonic())));
  }

  #requirePrice({ call, caller }: Limited, owner: Owner, member: keyof Plan): void {
    if (call.route.price) return;
    const { name } = call.route;
    const its = capitalized(ownerWords(owner, caller, this.#teamOf, member));
    throw new Fault(
      'forbidden',
      `${its} is limited in US dollars, and ${name} has no price: an administrator can set it as models.${name}.price in the settings.`,
      { field: 'model' },
    );
  }

  #unknownLimits(owner: Owner, caller: Caller, at: number): Fault {
    const its = ownerWords(owner, caller, this.#teamOf, 'monthlyTokens');
    const what =
      owner.startsWith('user:') && caller.limits === undefined ? `${capitalized(its)} does not exist on this server` : `The limits of ${its} cannot be read`;
    return new Fault('quota-spent', `${what}: ask an administrator.`, { retryAfter: secondsToNextMonth(at) });
  }

  get #teamOf() {
    return this.#deps.teamOf ?? (() => undefined);
  }
}

/** Has another step of the request taken this permit? */
function hasTaken(permits: Permits, { lease: { account } }: Hold): boolean {
  if (account.kind === 'requests') return permits.isCounted(account.owner);
  return account.kind === 'streams' && permits.hasStream(account.owner);
}

/** Whether any limit of spending is set. */
function isLimiting(plan: Plan): boolean {
  const { monthlyTokens, monthlyTrainTokens, dailyTokens, monthlyUsd, dailyUsd } = plan;
  const { requestsPerMinute, tokensPerMinute, concurrentStreams, modelLimits } = plan;
  return (
    (monthlyTokens ?? monthlyTrainTokens ?? dailyTokens ?? monthlyUsd ?? dailyUsd ?? requestsPerMinute ?? tokensPerMinute ?? concurrentStreams) !== undefined ||
    modelLimits !== undefined
  );
}

/** Limits of which one is no number allow nothing: their caller is refused, not let through. */
function isSane(plan: Plan): boolean {
  const { monthlyTokens, monthlyTrainTokens, dailyTokens, monthlyUsd, dailyUsd, requestsPerMinute, tokensPerMinute, concurrentStreams, modelLimits } = plan;
  return (
    isLimit(monthlyTokens) &&
    isLimit(monthlyTrainTokens) &&
    isLimit(dailyTokens) &&
    isLimit(monthlyUsd) &&
    isLimit(dailyUsd) &&
    isLimit(requestsPerMinute) &&
    isLimit(tokensPerMinute) &&
    isLimit(concurrentStreams) &&
    (modelLimits === undefined || areModelLimits(modelLimits))
  );
}

/** Also of what the types do not allow: limits come out of a database. */
const isLimit = (limit: unknown) => limit === undefined || (typeof limit === 'number' && limit >= 0);

const areModelLimits = (all: unknown) =>
  areLimits(all) && Object.values(all as object).every((one: unknown) => areLimits(one) && Object.values(one as object).every(isLimit));

import { partsOf, type Account, type AccountKind } from '#core/account';
import type { Caller } from '#core/context';
import { secondsToNextDay, secondsToNextMonth, type LimitedTeam, type Plan } from '#core/plan';

/** A limit as its refusal names it. */
export interface LimitWords {
  /** Whose it is: `your plan "free"`, `your user account`, `the plan "free" of your team "research"`, `your API key "ci"`. */
  readonly of: string;
  /** `this month` or `today`; empty for limits of a minute and of streams. */
  readonly period: string;
  /** The member of the limits: `dailyTokens`, `modelLimits.gpt-5.2.monthlyTokens`. */
  readonly limit: string;
}

/** @param teamOf undefined where it is not known */
export function limitWords({ owner: book, kind, month }: Account, caller: Caller, teamOf: (id: number) => LimitedTeam | undefined): LimitWords {
  const { owner, day, model } = partsOf(book);
  const member = memberOf(kind, day !== undefined);
  const its = ownerWords(owner, caller, teamOf, model === undefined ? member : 'modelLimits');
  return {
    of: model === undefined ? its : `${its} for the model ${model}`,
    period: month === '' ? '' : day === undefined ? 'this month' : 'today',
    limit: model === undefined ? member : `modelLimits.${model}.${member}`,
  };
}

/** @param member the one that limits: it may be a limit of the owner's own */
export function ownerWords(owner: string, caller: Caller, teamOf: (id: number) => LimitedTeam | undefined, member: keyof Plan): string {
  if (owner.startsWith('key:')) return `your API key "${caller.keyName}"`;
  if (owner.startsWith('user:')) return caller.limits?.[member] === undefined ? `your plan "${caller.plan}"` : 'your user account';
  const team = teamOf(Number(owner.slice(owner.indexOf(':') + 1)));
  if (!team) return 'your team';
  const named = `your team "${team.name}"`;
  return team.limits?.[member] === undefined ? `the plan "${team.plan}" of ${named}` : named;
}

function memberOf(kind: AccountKind, isDaily: boolean): keyof Plan {
  switch (kind) {
    case 'inference':
      return isDaily ? 'dailyTokens' : 'monthlyTokens';
    case 'train':
      return 'monthlyTrainTokens';
    case 'usd':
      return isDaily ? 'dailyUsd' : 'monthlyUsd';
    case 'requests':
      return 'requestsPerMinute';
    case 'tokens':
      return 'tokensPerMinute';
    case 'streams':
      return 'concurrentStreams';
    default:
      return kind satisfies never;
  }
}

export const unitOf = (kind: AccountKind): string =>
  ({ inference: 'tokens', train: 'training tokens', usd: 'US dollars', requests: 'requests', tokens: 'tokens', streams: 'streams' })[kind];

/** At the beginning of a sentence. */
export const capitalized = (words: string): string => `${words[0]!.toUpperCase()}${words.slice(1)}`;

/** Seconds to the end of an account's month or day, UTC. @param now milliseconds since 1970 */
export const secondsLeft = ({ owner }: Account, now: number): number =>
  owner.includes('@') && partsOf(owner).day !== undefined ? secondsToNextDay(now) : secondsToNextMonth(now);

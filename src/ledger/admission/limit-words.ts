import { partsOf, type Account, type AccountKind } from '#core/account';
import type { Caller } from '#core/context';
import { secondsToNextDay, secondsToNextMonth } from '#core/plan';

/** A limit as its refusal names it. */
export interface LimitWords {
  /** Whose it is: `your plan`, `your team "research"`, `your API key "ci"`. */
  readonly of: string;
  /** `this month` or `today`; empty for limits of a minute and of streams. */
  readonly period: string;
  /** The member of the limits: `dailyTokens`, `modelLimits.gpt-5.2.monthlyTokens`. */
  readonly limit: string;
}

/** @param teamName undefined where it is not known */
export function limitWords({ owner: book, kind, month }: Account, caller: Caller, teamName: (id: number) => string | undefined): LimitWords {
  const { owner, day, model } = partsOf(book);
  const id = Number(owner.slice(owner.indexOf(':') + 1));
  const name = owner.startsWith('team:') ? teamName(id) : undefined;
  const its = owner.startsWith('user:')
    ? 'your plan'
    : owner.startsWith('key:')
      ? `your API key "${caller.keyName}"`
      : `your team${name === undefined ? '' : ` "${name}"`}`;
  const member = memberOf(kind, day !== undefined);
  return {
    of: model === undefined ? its : `${its} for the model ${model}`,
    period: month === '' ? '' : day === undefined ? 'this month' : 'today',
    limit: model === undefined ? member : `modelLimits.${model}.${member}`,
  };
}

function memberOf(kind: AccountKind, isDaily: boolean): string {
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

/** What an account counts, in words. */
export const unitOf = (kind: AccountKind): string =>
  ({ inference: 'tokens', train: 'training tokens', usd: 'US dollars', requests: 'requests', tokens: 'tokens', streams: 'streams' })[kind];

/** Seconds to the end of an account's month or day, UTC. @param now milliseconds since 1970 */
export const secondsLeft = ({ owner }: Account, now: number): number =>
  owner.includes('@') && partsOf(owner).day !== undefined ? secondsToNextDay(now) : secondsToNextMonth(now);

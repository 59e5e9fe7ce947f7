import type { Clock } from '#kit/async/clock';
import type { Account } from '#core/account';
import type { Allowance, Progress } from '#core/context';
import type { Accounts } from './accounts.ts';
import type { Hold } from './local-lease.ts';
import { secondsLeft } from './limit-words.ts';

/**
 * Notes what is left of the tightest limits of requests and of tokens, for the answer's headers.
 * @param refused the hold for which the minute has too little left: other processes have used what this one does not know of
 */
export function noteAllowances(progress: Progress, holds: readonly Hold[], clock: Clock, refused?: Hold): void {
  progress.areLimitsKnown = true;
  if (holds.length === 0) return;
  const now = clock.monotonic();
  let requests: Allowance | undefined;
  let tokens: Allowance | undefined;
  for (const hold of holds) {
    const { lease } = hold;
    const { account, limit, minute } = lease;
    if (!isShown(account)) continue;
    const most = hold === refused ? Math.ceil(hold.least) - 1 : Infinity;
    const remaining = Math.max(0, Math.min(lease.remaining(now), most));
    if (account.kind === 'requests') {
      if (!(requests && requests.remaining <= remaining)) requests = { limit, remaining, reset: minute!.reset(now) };
    } else if (!(tokens && tokens.remaining <= remaining)) {
      tokens = { limit, remaining, reset: minute ? minute.reset(now) : secondsLeft(account, clock.now()) };
    }
  }
  if (requests) progress.requests = requests;
  if (tokens) progress.tokens = tokens;
}

const isShown = ({ kind }: Account): boolean => kind !== 'usd' && kind !== 'streams';

/** What all holders have spent of accounts, in their order. */
export type SpentOf = (accounts: readonly Account[]) => Promise<readonly number[]>;

const accountsAtOnce = 500;

/** Updates the accounts in use with what all holders have spent. @throws what `spentOf` throws */
export async function learnSpent(accounts: Pick<Accounts, 'values'>, spentOf: SpentOf, clock: Pick<Clock, 'monotonic'>): Promise<void> {
  const leases = [...accounts.values()].filter(({ account }) => isShown(account));
  for (let from = 0; from < leases.length; from += accountsAtOnce) {
    const some = leases.slice(from, from + accountsAtOnce);
    const spent = await spentOf(some.map(({ account }) => account));
    for (const [at, lease] of some.entries()) lease.learn(spent[at]!, clock.monotonic());
  }
}

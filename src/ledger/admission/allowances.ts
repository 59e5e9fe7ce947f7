import type { Clock } from '#kit/async/clock';
import type { Allowance, Progress } from '#core/context';
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
    if (account.kind === 'usd' || account.kind === 'streams') continue;
    const most = hold === refused ? Math.ceil(hold.least) - 1 : Infinity;
    const remaining = Math.max(0, Math.min(lease.room(now), most));
    if (account.kind === 'requests') {
      if (!(requests && requests.remaining <= remaining)) requests = { limit, remaining, reset: minute!.reset(now) };
    } else if (!(tokens && tokens.remaining <= remaining)) {
      tokens = { limit, remaining, reset: minute ? minute.reset(now) : secondsLeft(account, clock.now()) };
    }
  }
  if (requests) progress.requests = requests;
  if (tokens) progress.tokens = tokens;
}

import type { Progress } from './context.ts';
import { sumOfKnown } from './usage.ts';

/**
 * Makes a call that goes on beside others of its request. Its row is booked by what it notes itself: its attempts, its target, and whether the cache answered.
 * When it is over, they join those of the request; not whether the cache answered, which is said of the answer alone.
 */
export async function withOwnProgress<Result>(all: Progress, call: (own: Progress) => Promise<Result>): Promise<Result> {
  const own: Progress = { attempts: [] };
  try {
    return await call(own);
  } finally {
    join(all, own);
  }
}

/** The same for a call made on behalf of another, such as a check: only its cost is added to the other. */
export async function billedTo<Result>(all: Progress, call: (own: Progress) => Promise<Result>): Promise<Result> {
  const own: Progress = { attempts: [] };
  try {
    return await call(own);
  } finally {
    joinCosts(all, own);
  }
}

function join(all: Progress, own: Progress): void {
  const { attempts, booked, planTokens: _, costUsd: __, warnings = [], flags = [], cache: ___, ...latest } = own;
  all.attempts.push(...attempts);
  for (const warning of warnings) (all.warnings ??= []).push(warning);
  for (const flag of flags) (all.flags ??= []).push(flag);
  const sum = sumOfKnown(all.booked, booked);
  if (sum) all.booked = sum;
  joinCosts(all, own);
  Object.assign(all, latest);
}

function joinCosts(all: Progress, { planTokens, costUsd }: Progress): void {
  if (planTokens !== undefined) all.planTokens = (all.planTokens ?? 0) + planTokens;
  if (costUsd !== undefined) all.costUsd = (all.costUsd ?? 0) + costUsd;
}

import type { Clock } from '#kit/clock';
import type { Call } from '#model/call';
import type { Caller, Generate } from '#model/generate';
import { admitted } from './admitted.ts';
import { failover, type Waits } from './failover.ts';
import type { Health } from './health.ts';
import type { Ledger } from './ledger/index.ts';
import { metered } from './metered.ts';
import { inParts } from './parts.ts';
import { resolved, type Models } from './resolve.ts';
import { openRetryBudget } from './retry-budget.ts';

export interface GatewayParts {
  /** The models as a caller sees them. */
  readonly models: (caller: Caller) => Models;
  readonly ledger: Ledger;
  readonly health: Health;
  readonly routing: () => { readonly retryBudget: number };
  readonly waits: () => Waits;
  readonly clock: Clock;
}

/**
 * What happens to every call, in this order. `metered` stands inside `admitted`: settling turns the reservation into the booked amount in one step,
 * so that there is no moment in which neither counts.
 */
export function gateway({ models, ledger, health, routing, waits, clock }: GatewayParts): Generate<Call> {
  const budget = openRetryBudget(() => routing().retryBudget, clock);
  return resolved(models, admitted(ledger, metered(clock, inParts(clock, failover({ health, budget, waits, clock })))));
}

import type { Clock } from '#kit/async/clock';
import type { Call } from '#core/routed-call';
import type { Generate } from '#core/generate';
import type { Events } from '#core/event';
import type { Caller, Context } from '#core/context';
import { admitted, unreserved } from './rules/admitted.ts';
import { cached, type CachedDeps } from './rules/cached.ts';
import type { AdmittedCall } from './rules/admitted.ts';
import { failover, type Waits } from './routing/failover.ts';
import { guarded, type GuardedDeps } from './rules/guarded.ts';
import type { Health } from './routing/health.ts';
import type { Ledger } from '#ledger/index';
import { metered } from './rules/metered.ts';
import { inParts } from './rules/in-parts.ts';
import { resolved, type Models } from './rules/resolved.ts';
import { openRetryBudget } from './routing/retry-budget.ts';

export interface GatewayDeps extends Pick<CachedDeps, 'answers' | 'ttlOf'>, Pick<GuardedDeps, 'guards'> {
  /** The models as a caller sees them. */
  readonly models: (caller: Caller) => Models;
  readonly ledger: Ledger;
  readonly health: Health;
  readonly routing: () => { readonly retryBudget: number };
  readonly waits: () => Waits;
  readonly clock: Clock;
}

export interface Gateway {
  readonly generate: Generate<Call>;
  /** Without checks and cache, for calls that the gateway makes itself in the course of another. */
  readonly booked: Generate<Call>;
  /** Could this call be made and paid for now? For one that is made later. @throws Fault as `generate` does before it asks anybody */
  affords(call: Call, context: Context): Promise<void>;
}

/**
 * What happens to every call, in this order. `metered` stands inside `admitted`: settling turns the reservation into the booked amount in one step,
 * so that there is no moment in which neither counts. `guarded` and `cached` stand outside of both: what they answer themselves reserves nothing.
 */
export function gateway({ models, ledger, health, routing, waits, clock, guards, answers, ttlOf }: GatewayDeps): Gateway {
  const budget = openRetryBudget(() => routing().retryBudget, clock);
  const paid = admitted(ledger, metered(clock, inParts(clock, failover({ health, budget, waits, clock }))));
  const free = (inner: Generate<AdmittedCall>) => unreserved(ledger, metered(clock, inner));
  const askable = resolved(models, async function* (call, context) {
    await ledger.affords(call, context);
    yield [];
  });
  const replayed = (said: readonly Events[]) => free(({ stream }) => replay(stream ? said : [said.flat()]));
  return {
    generate: resolved(models, guarded({ guards, refused: free(refusing) }, cached({ answers, ttlOf, replayed }, paid))),
    booked: resolved(models, paid),
    async affords(call, context) {
      for await (const _ of askable(call, context));
    },
  };
}

async function* replay(said: readonly Events[]): AsyncGenerator<Events> {
  yield* said;
}

/** Throws what a check said, where the books can hear it. */
const refusing: Generate<AdmittedCall> = (_, { progress }) => ({
  [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(progress.refused ?? new Error('A call without an answer.')) }),
});

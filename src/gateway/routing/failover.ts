import type { Clock } from '#kit/async/clock';
import { isConversation } from '#core/routed-call';
import { speaks, type GenerateEvent } from '#core/event';
import { Fault } from '#core/fault';
import type { Generate } from '#core/generate';
import type { Events } from '#core/event';
import type { Attempt, TargetContext } from '#core/context';
import { placesOf, type Target } from '#core/target';
import { affinityOf } from './affinity.ts';
import { allOut } from './all-out.ts';
import type { AdmittedCall } from '../rules/admitted.ts';
import type { Health } from './health.ts';
import { hasChoice } from './order.ts';
import type { RetryBudget } from './retry-budget.ts';

/** How long a target may be silent, in seconds. */
export interface Waits {
  readonly hangSeconds: { readonly stream: number; readonly whole: number };
  readonly firstByteSeconds: number;
  readonly streamIdleSeconds: number;
}

export interface FailoverDeps {
  readonly health: Health;
  readonly budget: RetryBudget;
  readonly waits: () => Waits;
  readonly clock: Clock;
}

/**
 * Failover: tries the targets of a call in turn, each at most once. It may leave a target only before the first event with content: what a client has read
 * cannot be taken back.
 *
 * @throws Fault of the target that decided: the one that emitted content, the one that refused the request itself, or, if all failed, that of `allOut`
 */
export function failover({ health, budget, waits, clock }: FailoverDeps): Generate<AdmittedCall> {
  return async function* (call, context) {
    const faults: Fault[] = [];
    let left = health.ordered(call.route.targets, hasChoice(call.route.targets) && isConversation(call) ? affinityOf(call, context.caller) : undefined);
    let otherFailures = 0;
    const { userId } = context.caller;
    for (let trial = health.next(left, userId); trial; trial = health.next(left, userId)) {
      const { target } = trial;
      const attempt: Attempt = { provider: target.provider, ...(target.region ? { region: target.region } : {}), model: target.model };
      context.progress.attempts.push(attempt);
      context.progress.target = target;
      budget.sent(target.provider);
      const { hangSeconds, firstByteSeconds, streamIdleSeconds } = waits();
      const hang = Math.min(call.stream ? hangSeconds.stream : hangSeconds.whole, firstByteSeconds);
      const mayMove = (left.length > 0 || call.movesOn === true) && (!health.cools || budget.has(target.provider));
      const head = mayMove ? hang : firstByteSeconds;
      const startedAt = clock.monotonic();
      const held: GenerateEvent[] = []; // events before the first content: a target that fails leaves no trace in the answer
      let spoken = false;
      let judged = false;
      try {
        for await (const events of answerOf(target, call, { ...context, patience: { head, firstByte: firstByteSeconds, idle: streamIdleSeconds } })) {
          if (!spoken && !events.some((event) => speaks(event) || event.type === 'finished')) {
            held.push(...events);
            continue;
          }
          if (!spoken) {
            spoken = judged = true;
            attempt.milliseconds = clock.monotonic() - startedAt;
            health.succeeded(trial, attempt.milliseconds); // the target is healthy again, however long the answer takes
            if (held.length > 0) yield held;
          }
          yield events;
        }
        if (spoken) return;
        judged = true;
        health.succeeded(trial, clock.monotonic() - startedAt);
        yield held;
        return;
      } catch (error) {
        judged = true;
        attempt.milliseconds ??= clock.monotonic() - startedAt;
        if (context.signal.aborted) {
          health.released(trial); // the client has disconnected, which is no failure of the target
          if (held.length > 0 && !spoken && !(context.signal.reason instanceof Fault)) yield held; // usage that the target has reported is paid for
          throw context.signal.reason;
        }
        const fault = error instanceof Fault ? error : new Fault('upstream-failed', 'The provider failed.', { cause: error, elsewhere: true });
        attempt.fault = fault.code;
        if (fault.details.said !== undefined) attempt.said = fault.details.said;
        health.failed(trial, fault);
        const { elsewhere, key, exceedsLimit } = fault.details;
        if (spoken || !(elsewhere || key)) throw fault;
        faults.push(fault);
        if (key || exceedsLimit) {
          const others = left.filter(({ provider }) => provider !== target.provider);
          left = key ? others : [...others, ...left.filter((one) => !others.includes(one))];
          continue;
        }
        if (fault.code === 'upstream-failed' && !fault.details.absent && ++otherFailures > 1) break;
        if (fault.code === 'timed-out' && (left.length > 0 || call.movesOn) && health.cools && !budget.take(target.provider)) break;
      } finally {
        if (!judged) health.released(trial);
      }
    }
    throw allOut(faults) ?? noneAsked(call, health);
  };
}

/** A conversation is answered by the target's `generate`; a task has a function of its own for it. */
function answerOf(target: Target, call: AdmittedCall, context: TargetContext): AsyncIterable<Events> {
  return isConversation(call) ? target.generate(call, context) : call.ask(target, context);
}

function noneAsked({ route }: AdmittedCall, health: Health): Fault {
  return new Fault('overloaded', `No provider of ${route.name} is available right now.`, { retryAfter: health.wait(placesOf(route.targets)) });
}

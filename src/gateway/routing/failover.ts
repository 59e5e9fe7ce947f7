import type { Clock } from '#kit/async/clock';
import { threeDecimals } from '#kit/async/three-decimals';
import { isConversation } from '#core/routed-call';
import { speaks, type GenerateEvent } from '#core/event';
import { Fault } from '#core/fault';
import { gathered, inBothVerbs, type Generate } from '#core/generate';
import type { Events } from '#core/event';
import type { Attempt, Context, TargetContext } from '#core/context';
import { placesOf, type Target } from '#core/target';
import { affinityOf } from './affinity.ts';
import { allOut } from './all-out.ts';
import type { AdmittedCall } from '../rules/admitted.ts';
import type { Health, Trial } from './health.ts';
import { namingProvider, saidNo } from './named-provider.ts';
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
 * @throws Fault of the target that decided: the one that emitted content, the one that refused the request itself, or, if all failed, that of `allOut`
 */
export function failover(deps: FailoverDeps): Generate<AdmittedCall> {
  return inBothVerbs(
    async function* (call, context) {
      const tries = new Tries(deps, call, context);
      for (let one = tries.next(); one; one = tries.next()) {
        const held: GenerateEvent[] = []; // events before the first content: a target that fails leaves no trace in the answer
        try {
          for await (const events of answerOf(one.target, call, one.context)) {
            if (!one.hasAnswered && !events.some((event) => speaks(event) || event.type === 'finished')) {
              held.push(...events);
              continue;
            }
            if (!one.hasAnswered) {
              one.answered();
              if (held.length > 0) yield held;
            }
            yield events;
          }
          if (one.hasAnswered) return;
          one.answered();
          yield held;
          return;
        } catch (error) {
          // Usage that the target has reported is paid for, though its client has left.
          if (context.signal.aborted && !one.hasAnswered && held.length > 0 && !(context.signal.reason instanceof Fault)) yield held;
          tries.failed(one, error);
        } finally {
          one.end();
        }
      }
      throw tries.fault();
    },
    async (call, context) => {
      const tries = new Tries(deps, call, context);
      for (let one = tries.next(); one; one = tries.next()) {
        try {
          const events = await wholeAnswerOf(one.target, call, one.context);
          one.answered();
          return events;
        } catch (error) {
          tries.failed(one, error);
        } finally {
          one.end();
        }
      }
      throw tries.fault();
    },
  );
}

class Tries {
  readonly #deps: FailoverDeps;
  readonly #call: AdmittedCall;
  readonly #context: Context;
  readonly #faults: Fault[] = [];
  /** Whose fault each of them is. */
  readonly #providers: string[] = [];
  #left: Target[];
  #otherFailures = 0;
  /** No further target is tried. */
  #isOver = false;

  constructor(deps: FailoverDeps, call: AdmittedCall, context: Context) {
    const { targets } = call.route;
    this.#deps = deps;
    this.#call = call;
    this.#context = context;
    this.#left = deps.health.ordered(targets, hasChoice(targets) && isConversation(call) ? affinityOf(call, context.caller) : undefined);
  }

  /** The next one, which is to be asked now; undefined where none is left. */
  next(): OneTry | undefined {
    const { health, budget, waits } = this.#deps;
    const trial = this.#isOver ? undefined : health.next(this.#left, this.#context.caller.userId);
    if (!trial) return undefined;
    const { provider } = trial.target;
    if (this.#isNewAt(provider)) budget.sent(provider);
    const { hangSeconds, firstByteSeconds, streamIdleSeconds } = waits();
    const hang = Math.min(this.#call.stream ? hangSeconds.stream : hangSeconds.whole, firstByteSeconds);
    const mayMove = this.#hasOthers && (!health.cools || budget.has(provider));
    const head = mayMove ? hang : firstByteSeconds;
    return new OneTry(this.#deps, trial, { ...this.#context, patience: { head, firstByte: firstByteSeconds, idle: streamIdleSeconds }, keys: health.keys });
  }

  /** @throws what ends the call: the fault, where no other target may be tried after it, or the signal's reason */
  failed(one: OneTry, error: unknown): void {
    const { health, budget } = this.#deps;
    const { signal } = this.#context;
    const { provider } = one.target;
    if (signal.aborted) throw signal.reason; // the client has disconnected, which is no failure of the target
    const fault = error instanceof Fault ? error : new Fault('upstream-failed', 'The provider failed.', { cause: error, elsewhere: true });
    one.failed(fault);
    const { elsewhere, key, exceedsLimit, absent } = fault.details;
    if (one.hasAnswered || !(elsewhere || key)) throw namingProvider(fault, provider);
    this.#faults.push(fault);
    this.#providers.push(provider);
    if (key || exceedsLimit) {
      const others = this.#left.filter((other) => other.provider !== provider);
      this.#left = key ? others : [...others, ...this.#left.filter((other) => !others.includes(other))];
    } else if (fault.code === 'upstream-failed' && !absent && ++this.#otherFailures > 1) this.#isOver = true;
    else if (fault.code === 'timed-out' && this.#hasOthers && health.cools && !budget.take(provider)) this.#isOver = true;
  }

  /** The fault of a call that no target answered. */
  fault(): Fault {
    const last = allOut(this.#faults);
    return last ? namingProvider(last, this.#providers[this.#faults.indexOf(last)]!) : noneAsked(this.#call, this.#deps.health);
  }

  /** Is this a request for the provider, and no retry? A move there after a hang is one, which the budget of another has paid for. */
  #isNewAt(provider: string): boolean {
    return !this.#context.progress.attempts.some((before) => before.provider === provider || before.fault === 'timed-out');
  }

  get #hasOthers(): boolean {
    return this.#left.length > 0 || this.#call.movesOn === true;
  }
}

class OneTry {
  readonly context: TargetContext;
  readonly #deps: FailoverDeps;
  readonly #trial: Trial;
  readonly #attempt: Attempt;
  readonly #startedAt: number;
  #isJudged = false;
  hasAnswered = false;

  constructor(deps: FailoverDeps, trial: Trial, context: TargetContext) {
    const { provider, region, model } = trial.target;
    this.#deps = deps;
    this.#trial = trial;
    this.context = context;
    this.#attempt = region ? { provider, region, model } : { provider, model };
    this.#startedAt = deps.clock.monotonic();
    context.progress.attempts.push(this.#attempt);
    context.progress.target = trial.target;
  }

  get target(): Target {
    return this.#trial.target;
  }

  /** The target is healthy again, however long the answer takes. */
  answered(): void {
    this.hasAnswered = this.#isJudged = true;
    this.#attempt.milliseconds = this.#milliseconds;
    this.#deps.health.succeeded(this.#trial, this.#attempt.milliseconds);
  }

  failed(fault: Fault): void {
    this.#isJudged = true;
    this.#attempt.milliseconds ??= this.#milliseconds;
    this.#attempt.fault = fault.code;
    const { status, code } = saidNo(fault);
    if (status !== undefined) this.#attempt.status = status;
    if (code !== undefined) this.#attempt.code = code;
    if (fault.details.said !== undefined) this.#attempt.said = fault.details.said;
    this.#deps.health.failed(this.#trial, fault);
  }

  /** To be called in any case: an attempt without a result says nothing about the target. */
  end(): void {
    if (this.#isJudged) return;
    this.#attempt.milliseconds ??= this.#milliseconds;
    this.#deps.health.released(this.#trial);
  }

  get #milliseconds(): number {
    return threeDecimals(this.#deps.clock.monotonic() - this.#startedAt);
  }
}

/** A conversation is answered by the target's `generate`; a task has a function of its own for it. */
function answerOf(target: Target, call: AdmittedCall, context: TargetContext): AsyncIterable<Events> {
  return isConversation(call) ? target.generate(call, context) : call.ask(target, context);
}

function wholeAnswerOf(target: Target, call: AdmittedCall, context: TargetContext): Promise<Events> {
  return isConversation(call) && target.answer ? target.answer(call, context) : gathered(answerOf(target, call, context));
}

function noneAsked({ route }: AdmittedCall, health: Health): Fault {
  return new Fault('overloaded', `No provider of ${route.name} is available right now.`, { retryAfter: health.wait(placesOf(route.targets)) });
}

import { isConversation, type RoutedCall } from '#core/routed-call';
import { Fault, queueFull } from '#core/fault';
import type { Caller, Context } from '#core/context';
import { billedTo } from '#core/own-progress';
import { QueueFull } from '#kit/async/fair-semaphore';
import { PatternTooSlow } from '#kit/patterns/index';
import { UpstreamError } from '#kit/upstream/response';

export interface CheckSettings {
  readonly name: string;
  readonly when: readonly When[];
  readonly kind: 'regex' | 'pii' | 'moderation' | 'http';
  readonly pattern?: string;
  readonly entities?: readonly string[];
  readonly model?: string;
  readonly url?: string;
  readonly action: Action;
  /** Names of models, not aliases; empty: all. */
  readonly models: readonly string[];
  readonly keys: readonly string[];
  readonly users: readonly string[];
  readonly stream: 'sentence' | 'whole';
  readonly onFailure: 'refuse' | 'allow';
}

export type When = 'before' | 'after';
export type Action = 'deny' | 'mask' | 'flag';

/** The verdict of a check on a text; undefined: the text may pass. `mask` has the replacement text. */
export type Verdict = { readonly action: 'deny' | 'flag' } | { readonly action: 'mask'; readonly text: string } | undefined;

/** Evaluates texts. @returns a verdict for each. @throws any error that prevents the evaluation */
export type Evaluate = (texts: readonly string[], at: EvaluationContext) => Promise<readonly Verdict[]>;

export interface EvaluationContext {
  readonly when: When;
  readonly call: RoutedCall;
  readonly context: Context;
  /** Texts that a reader sees as one although they arrive in pieces. They are evaluated too, but not masked. */
  readonly runs: readonly string[];
  /** Returns the number of the next step that a check takes in this request. */
  readonly nextStep: () => number;
}

export interface Check extends Pick<CheckSettings, 'name' | 'action' | 'stream' | 'onFailure'> {
  readonly evaluate: Evaluate;
}

/** Whether the check applies to this call of this caller. */
export function holdsFor({ models, keys, users }: CheckSettings, { route }: RoutedCall, { keyName, email }: Caller): boolean {
  return (
    (models.length === 0 || models.includes(route.name)) &&
    (keys.length === 0 || keys.includes(keyName)) &&
    (users.length === 0 || users.some((user) => user.toLowerCase() === email.toLowerCase()))
  );
}

/** What checks report in addition to the texts. */
export interface Notes {
  flagged(check: string): void;
  masked(check: string): void;
}

/**
 * Applies the checks one after the other: a later one does not see what an earlier one masked.
 * @returns the texts that may pass; the same list if nothing was masked
 * @throws Fault `invalid` (content-policy) for denied content; `upstream-failed` or `overloaded` if a check cannot be made
 */
export async function applyChecks(checks: readonly Check[], texts: readonly string[], at: EvaluationContext, notes: Notes): Promise<readonly string[]> {
  let left = texts;
  for (const check of checks) {
    const verdicts = await verdictsOf(check, left, at);
    for (const [place, verdict] of verdicts.entries()) {
      if (verdict?.action === 'deny') throw denied(check, at);
      if (verdict?.action === 'flag') notes.flagged(check.name);
      if (verdict?.action === 'mask' && verdict.text !== left[place]) {
        left = left.with(place, verdict.text);
        notes.masked(check.name);
      }
    }
  }
  return left;
}

async function verdictsOf(check: Check, texts: readonly string[], at: EvaluationContext): Promise<readonly Verdict[]> {
  try {
    return texts.length === 0 ? [] : await check.evaluate(texts, at);
  } catch (error) {
    const { signal } = at.context;
    if (signal.aborted) throw signal.reason;
    if (error instanceof QueueFull) throw queueFull(error); // not subject to `onFailure`: a caller could bypass a check by flooding it
    if (error instanceof Fault && ownMatters.has(error.code)) throw error;
    if (check.onFailure === 'allow') return [];
    const isAway = error instanceof PatternTooSlow || error instanceof UpstreamError || (error instanceof Fault && error.status > 502);
    const message = `The check "${check.name}" failed, and no request or answer passes without it.`;
    throw new Fault(isAway ? 'overloaded' : 'upstream-failed', message, { cause: error, ...(isAway ? { retryAfter: 1 } : {}) });
  }
}

/** Faults that the caller can resolve: no quota is left for the check, or there is too much to check. */
const ownMatters: ReadonlySet<string> = new Set(['quota-spent', 'rate-limited', 'too-large']);

export function denied({ name }: Pick<Check, 'name'>, { when, call }: Pick<EvaluationContext, 'when' | 'call'>): Fault {
  const what = when === 'after' ? 'the answer' : isConversation(call) ? 'this conversation' : 'this request';
  return new Fault('invalid', `The content policy does not allow ${what} (check "${name}").`, { reason: 'content-policy' });
}

/**
 * Makes a call of the gateway's own, whose cost is part of that of the request. It runs as the user, but without the model restrictions of the key and the model
 * choice of the request.
 */
export function inOwnContext<Result>({ context, nextStep }: EvaluationContext, call: (own: Context) => Promise<Result>): Promise<Result> {
  const { review: _, ...rest } = context;
  const { models: __, ...caller } = context.caller;
  return billedTo(context.progress, (progress) =>
    call({ ...rest, caller, step: nextStep(), headers: {}, strict: false, targets: undefined, cacheSeconds: undefined, progress }),
  );
}

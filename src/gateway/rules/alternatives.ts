import type { Attempt, Context } from '#core/context';
import type { Events } from '#core/event';
import type { Fault } from '#core/fault';
import { where, type Generate } from '#core/generate';
import { inSteps } from '#core/permits';
import type { RoutedCall } from '#core/routed-call';
import { stepOf, steps } from '#core/steps';
import { among, narrowedTo, placesOf, type Model, type Target } from '#core/target';
import { firstAnswer, isLimited } from './first-answer.ts';
import { warned } from './warned.ts';

/** A call that more than one model may answer. */
export type ResolvedCall = RoutedCall & { readonly alternatives?: Alternatives };

interface Alternatives {
  readonly routes: readonly Model[];
  /** The models that the caller may use. */
  readonly models: { find(name: string): Model | undefined };
}

/**
 * Tries one model after the other: the next one when all targets of a model have failed, the larger one when the conversation was too long for it. Each is
 * admitted and booked separately, as steps of the same request, because prices differ. A target is asked once, whichever models have it.
 * @throws Fault as failover does
 */
export function alternating(inner: Generate<RoutedCall>): Generate<ResolvedCall> {
  return where<ResolvedCall, RoutedCall, Alternatives>(
    ({ alternatives }) => alternatives,
    (alternatives, call, context) => inSteps(context.permits, firstOf(call, alternatives, context, inner)),
    inner,
  );
}

function firstOf(resolved: ResolvedCall, { routes, models }: Alternatives, context: Context, inner: Generate<RoutedCall>): AsyncIterable<Events> {
  const { alternatives: _, ...call } = resolved;
  const { attempts } = context.progress;
  const left = routes.filter(({ name }, at) => routes.findIndex((route) => route.name === name) === at); // an alias may name a model twice
  const asked = new Set<string>();
  const warnings = new Map<string, string>();
  let before = 0;
  let hasFailed = false;
  return firstAnswer({
    left,
    most: steps.alternative.most,
    signal: context.signal,
    ask(route, at) {
      if (at === 0) before = attempts.length; // those of other calls of the request
      asked.add(route.name);
      const answer = inner({ ...call, route, movesOn: left.length > 0 }, { ...context, step: stepOf(context.step, 'alternative', at) });
      return warnings.size > 0 ? warned(answer, { before: [...warnings.values()] }) : answer;
    },
    moveOn(fault, route) {
      const tried = attempts.slice(before);
      const larger = largerThan(route, fault, context, models);
      const next = larger && !asked.has(larger.name) ? unasked(larger, tried) : undefined;
      if (next) {
        warnings.set(next.name, `model: the conversation exceeds the context of ${route.name}, so ${next.name} answers instead`);
        left.splice(0, left.length, next, ...left.filter(({ name }) => name !== next.name));
      } else {
        warnings.delete(route.name);
        if (fault.details.key) leaveProviders(left, route);
        else if (!isElsewhere(fault) && !(hasFailed && isLimited(fault))) throw fault;
      }
      hasFailed = true;
      left.splice(0, left.length, ...left.flatMap((one) => unasked(one, tried) ?? []));
    },
  });
}

/** The model restricted to the targets that have not been tried; undefined where none is left. */
function unasked(model: Model, tried: readonly Attempt[]): Model | undefined {
  const isLeft = (target: Target) => !tried.some((one) => one.provider === target.provider && one.region === target.region && one.model === target.model);
  if (placesOf(model.targets).every(isLeft)) return model;
  const targets = model.targets.flatMap((group) => among(group, isLeft) ?? []);
  return targets.length === 0 ? undefined : narrowedTo(model, targets);
}

/** A strict caller gets the requested model or none. */
function largerThan({ larger }: Model, { details }: Fault, { strict }: Context, models: Alternatives['models']): Model | undefined {
  if (larger === undefined || details.reason !== 'context-length' || strict) return undefined;
  const model = models.find(larger);
  return model?.kind === 'chat' ? model : undefined;
}

/** Removes the models of the providers that refuse our credentials: those of a model whose targets all do. */
function leaveProviders(left: Model[], { targets }: Model): void {
  const refusing = new Set(placesOf(targets).map(({ provider }) => provider));
  left.splice(0, left.length, ...left.filter((one) => placesOf(one.targets).some(({ provider }) => !refusing.has(provider))));
}

/** Whether another model might accept the call. */
const isElsewhere = ({ code, details }: Fault) => details.elsewhere === true || code === 'overloaded' || details.reason === 'model';

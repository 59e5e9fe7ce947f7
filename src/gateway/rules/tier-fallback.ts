import type { Fault } from '#core/fault';
import { inBothVerbs, where, wholeAnswer, type Generate } from '#core/generate';
import type { GenerateCall } from '#core/call';
import type { Context } from '#core/context';
import type { Events } from '#core/event';
import { stepOf, steps } from '#core/steps';
import { firstAnswer } from './first-answer.ts';

/**
 * Tries the models of a tier (`Context.tier`) one after the other, if the one before is not available to the account. Each is booked separately, as steps of
 * the same request. A caller that has chosen the models itself (`Context.targets`) gets no others.
 * @throws Fault of the last model that was tried
 */
export function fallingBack(inner: Generate): Generate {
  const first = where(severalModels, firstOf, inner);
  return inBothVerbs(
    (call, context) => first(withFirst(call, context), context),
    (call, context) => wholeAnswer(first, withFirst(call, context), context),
  );

  function firstOf(models: readonly string[], call: GenerateCall, context: Context): AsyncIterable<Events> {
    const left = models.slice(0, steps.tier.most);
    return firstAnswer({
      left,
      most: steps.tier.most,
      signal: context.signal,
      ask: (model, at) => inner({ ...call, model }, at === 0 ? context : { ...context, step: stepOf(context.step, 'tier', at) }),
      moveOn(fault) {
        if (!isUnavailable(fault) || left.length === 0) throw fault;
      },
    });
  }
}

const withFirst = (call: GenerateCall, { tier }: Context): GenerateCall => (tier ? { ...call, model: tier[0] } : call);

const severalModels = (_: GenerateCall, { tier, targets }: Context) => (tier && !targets && tier.length > 1 ? tier : undefined);

const isUnavailable = ({ code, details }: Fault) => code === 'not-found' && details.reason === 'model';

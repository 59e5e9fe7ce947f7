import type { Fault } from '#core/fault';
import type { Generate } from '#core/generate';
import { stepOf, steps } from '#core/steps';
import { firstAnswer } from './first-answer.ts';

/**
 * Tries the models of a tier (`Context.tier`) one after the other, if the one before is not available to the account. Each is booked separately, as steps of
 * the same request. A caller that has chosen the models itself (`Context.targets`) gets no others.
 *
 * @throws Fault of the last model that was tried
 */
export function fallingBack(inner: Generate): Generate {
  return (call, context) => {
    const { tier, targets, signal } = context;
    if (!tier) return inner(call, context);
    if (targets || tier.length === 1) return inner({ ...call, model: tier[0] }, context);
    const left = tier.slice(0, steps.tier.most);
    return firstAnswer({
      left,
      most: steps.tier.most,
      signal,
      ask: (model, at) => inner({ ...call, model }, at === 0 ? context : { ...context, step: stepOf(context.step, 'tier', at) }),
      moveOn(fault) {
        if (!isUnavailable(fault) || left.length === 0) throw fault;
      },
    });
  };
}

const isUnavailable = ({ code, details }: Fault) => code === 'not-found' && details.reason === 'model';

import { Fault } from '#core/fault';
import type { Generate } from '#core/generate';
import { steps } from '#core/steps';

/**
 * Asks for one model after the other while the one before is not available to us. What each takes is booked by itself, as steps of the same request.
 *
 * @param tier names of models of one tier, the wanted one first; of no account where the caller has chosen by itself whom to ask
 */
export function fallingBack(generate: Generate, tier: readonly string[]): Generate {
  return async function* (call, context) {
    const names = context.targets ? tier.slice(0, 1) : tier.slice(0, steps.mostOfTier);
    for (const [at, model] of names.entries()) {
      let begun = false;
      try {
        for await (const said of generate({ ...call, model }, { ...context, step: context.step + at * steps.tier })) {
          begun = true;
          yield said;
        }
        return;
      } catch (error) {
        const isMissing = error instanceof Fault && error.code === 'not-found' && error.details.reason === 'model';
        if (begun || !isMissing || at === names.length - 1) throw error;
      }
    }
  };
}

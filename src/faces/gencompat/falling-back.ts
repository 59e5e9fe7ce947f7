import { Fault } from '#model/fault';
import type { Generate } from '#model/generate';

/** What asking one model may take: an answer between searches, and a repair of each of its candidates, several times. */
const stepsEach = 10_000;

/**
 * Asks for one model after the other while the one before is not available to us. What each takes is booked by itself, as steps of the same request.
 *
 * @param tier names of models of one tier, the wanted one first; of no account where the caller has chosen by itself whom to ask
 */
export function fallingBack(generate: Generate, tier: readonly string[]): Generate {
  return async function* (call, context) {
    const names = context.targets ? tier.slice(0, 1) : tier;
    for (const [at, model] of names.entries()) {
      let begun = false;
      try {
        for await (const said of generate({ ...call, model }, { ...context, step: context.step + at * stepsEach })) {
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

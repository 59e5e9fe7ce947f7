import type { GenerateCall } from '#core/call';

/**
 * The member of a call that asks for a dearer tier. A cheaper one is not certain, and what is set aside has to be enough.
 *
 * @param rateOf what tokens of a model cost in the tier, as a multiple of the usual price; of no name, what they cost for most models
 */
export const askedRate = (rateOf: (model: string) => number): Pick<GenerateCall, 'tierRate'> => (rateOf('') > 1 ? { tierRate: rateOf } : {});

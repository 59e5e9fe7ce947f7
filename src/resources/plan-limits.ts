import { Type } from 'typebox';
import type { Plan } from '#core/plan';

const count = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });

/** The limits of a plan as they are written to us; the same a user may have of their own. */
export const limits = {
  monthlyTokens: count('Inference in a calendar month, UTC (plan tokens).'),
  monthlyTrainTokens: count('Training in a calendar month, UTC (plan tokens).'),
  monthlyUsd: Type.Number({
    minimum: 0,
    maximum: 1e12,
    description: 'Spending in a calendar month, UTC (US dollars); models without a price are then refused.',
  }),
  requestsPerMinute: count('Requests in a minute.'),
  concurrentStreams: count('Streams at a time.'),
} satisfies Record<Exclude<keyof Plan, 'residency'>, unknown>;

/** The same, none of them needed: what is left out is no limit of that kind. */
export const optionalLimits = {
  monthlyTokens: Type.Optional(limits.monthlyTokens),
  monthlyTrainTokens: Type.Optional(limits.monthlyTrainTokens),
  monthlyUsd: Type.Optional(limits.monthlyUsd),
  requestsPerMinute: Type.Optional(limits.requestsPerMinute),
  concurrentStreams: Type.Optional(limits.concurrentStreams),
};

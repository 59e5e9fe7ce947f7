import { Type } from 'typebox';
import { closed, optionalOrNull } from '#http/schemas';
import type { ModelLimits, Plan } from '#core/plan';

const count = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });
const usd = (description: string) => Type.Number({ minimum: 0, maximum: 1e12, description });

const modelName = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '^(?:\\*|(?=.*[^\\s\\p{C}])[^*\\p{C}\\u2028\\u2029]*)$',
  expected: 'must be the name of a model, or "*" alone for all: there are no patterns',
});

const modelNames = Type.Array(modelName, {
  minItems: 1,
  maxItems: 100,
  description: 'Names of the only models that there are; absent, or with `*` among them: all.',
});

const modelLimit = {
  monthlyTokens: Type.Optional(count('Inference with it in a calendar month, UTC (plan tokens).')),
  monthlyUsd: Type.Optional(usd('Spending on it in a calendar month, UTC (US dollars).')),
  requestsPerMinute: Type.Optional(count('Requests to it in a minute.')),
} satisfies Record<keyof ModelLimits, unknown>;

/** The limits of a plan as they are written to us; users, teams and API keys may have the same of their own. */
const limits = {
  monthlyTokens: count('Inference in a calendar month, UTC (plan tokens).'),
  monthlyTrainTokens: count('Training in a calendar month, UTC (plan tokens).'),
  dailyTokens: count('Inference in a calendar day, UTC (plan tokens).'),
  monthlyUsd: usd('Spending in a calendar month, UTC (US dollars); models without a price are then refused.'),
  dailyUsd: usd('Spending in a calendar day, UTC (US dollars); models without a price are then refused.'),
  requestsPerMinute: count('Requests in any 60 seconds.'),
  tokensPerMinute: count('Inference in any 60 seconds (plan tokens). An answer that has begun may pass it, and the next calls wait for what it used.'),
  concurrentStreams: count('Streams at a time.'),
  models: modelNames,
  modelLimits: Type.Record(Type.String({ pattern: '^[^*]*$' }), closed(modelLimit), {
    maxProperties: 100,
    additionalProperties: Type.Never({ expected: 'must name one model: there are no patterns, and limits of all models together are those of the plan' }),
    description: 'Limits of single models, by their names.',
  }),
} satisfies Record<Exclude<keyof Plan, 'residency' | 'storageBytes'>, unknown>;

/** The same, none of them needed: what is left out is no limit of that kind. */
export const optionalLimits = Type.Partial(Type.Object(limits)).properties;

/** The same in a change of what has limits of its own: null takes one away. */
export const changedLimits = {
  monthlyTokens: optionalOrNull(limits.monthlyTokens),
  monthlyTrainTokens: optionalOrNull(limits.monthlyTrainTokens),
  dailyTokens: optionalOrNull(limits.dailyTokens),
  monthlyUsd: optionalOrNull(limits.monthlyUsd),
  dailyUsd: optionalOrNull(limits.dailyUsd),
  requestsPerMinute: optionalOrNull(limits.requestsPerMinute),
  tokensPerMinute: optionalOrNull(limits.tokensPerMinute),
  concurrentStreams: optionalOrNull(limits.concurrentStreams),
  models: optionalOrNull(limits.models),
  modelLimits: optionalOrNull(limits.modelLimits),
};

const storageBytes = count('Originals of files (bytes), each content once; a file beyond it is refused.');

/** Of plans and users alone. */
export const optionalStorage = { storageBytes: Type.Optional(storageBytes) };
export const changedStorage = { storageBytes: optionalOrNull(storageBytes) };

/** A change of limits: null takes one away. */
export type LimitsChange = { readonly [Name in keyof Plan]?: Plan[Name] | null };

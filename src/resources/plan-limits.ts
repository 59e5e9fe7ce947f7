import { Type } from 'typebox';
import { closed } from '#http/schemas';
import type { ModelLimits, Plan } from '#core/plan';

const count = (description: string) => Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });
const usd = (description: string) => Type.Number({ minimum: 0, maximum: 1e12, description });

const modelNames = Type.Array(Type.String({ minLength: 1, maxLength: 200, pattern: '^[^\\p{C}]*$', expected: 'must be the name of a model' }), {
  minItems: 1,
  maxItems: 100,
  description: 'Names of the only models that there are; absent: all.',
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
  tokensPerMinute: count('Inference in any 60 seconds (plan tokens).'),
  concurrentStreams: count('Streams at a time.'),
  models: modelNames,
  modelLimits: Type.Record(Type.String(), closed(modelLimit), {
    maxProperties: 100,
    description: 'Limits of single models, by their names.',
  }),
} satisfies Record<Exclude<keyof Plan, 'residency' | 'storageBytes'>, unknown>;

/** The same, none of them needed: what is left out is no limit of that kind. */
export const optionalLimits = {
  monthlyTokens: Type.Optional(limits.monthlyTokens),
  monthlyTrainTokens: Type.Optional(limits.monthlyTrainTokens),
  dailyTokens: Type.Optional(limits.dailyTokens),
  monthlyUsd: Type.Optional(limits.monthlyUsd),
  dailyUsd: Type.Optional(limits.dailyUsd),
  requestsPerMinute: Type.Optional(limits.requestsPerMinute),
  tokensPerMinute: Type.Optional(limits.tokensPerMinute),
  concurrentStreams: Type.Optional(limits.concurrentStreams),
  models: Type.Optional(limits.models),
  modelLimits: Type.Optional(limits.modelLimits),
};

const none = Type.Null();

/** The same in a change of what has limits of its own: null takes one away. */
export const changedLimits = {
  monthlyTokens: Type.Optional(Type.Union([limits.monthlyTokens, none])),
  monthlyTrainTokens: Type.Optional(Type.Union([limits.monthlyTrainTokens, none])),
  dailyTokens: Type.Optional(Type.Union([limits.dailyTokens, none])),
  monthlyUsd: Type.Optional(Type.Union([limits.monthlyUsd, none])),
  dailyUsd: Type.Optional(Type.Union([limits.dailyUsd, none])),
  requestsPerMinute: Type.Optional(Type.Union([limits.requestsPerMinute, none])),
  tokensPerMinute: Type.Optional(Type.Union([limits.tokensPerMinute, none])),
  concurrentStreams: Type.Optional(Type.Union([limits.concurrentStreams, none])),
  models: Type.Optional(Type.Union([limits.models, none])),
  modelLimits: Type.Optional(Type.Union([limits.modelLimits, none])),
};

const storageBytes = count('Originals of files (bytes), each content once; a file beyond it is refused.');

/** Of plans and users alone. */
export const optionalStorage = { storageBytes: Type.Optional(storageBytes) };
export const changedStorage = { storageBytes: Type.Optional(Type.Union([storageBytes, none])) };

/** A change of limits: null takes one away. */
export type LimitsChange = { readonly [Name in keyof Plan]?: Plan[Name] | null };

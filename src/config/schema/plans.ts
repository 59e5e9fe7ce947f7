import { Type, type Static } from 'typebox';
import { count, group, list, named, oneOf, record, spending, word, yes } from './shapes.ts';

const modelLimits = record('Limits of one model.', {
  monthlyTokens: Type.Optional(count('Inference quota for the model per calendar month, UTC', 'plan tokens', 0)),
  monthlyUsd: Type.Optional(spending('Spending limit for the model per calendar month, UTC')),
  requestsPerMinute: Type.Optional(count('Maximum number of requests to the model per minute', 'requests', 0)),
});

const plan = record('Limits of the users of a plan.', {
  monthlyTokens: Type.Optional(count('Inference quota per calendar month, UTC', 'plan tokens', 0)),
  monthlyTrainTokens: Type.Optional(
    count('Training quota per calendar month, UTC; also pays for embeddings if `charge.embeddings` is train', 'plan tokens', 0),
  ),
  dailyTokens: Type.Optional(count('Inference quota per calendar day, UTC', 'plan tokens', 0)),
  requestsPerMinute: Type.Optional(count('Maximum number of requests per minute', 'requests', 0)),
  tokensPerMinute: Type.Optional(
    count('Maximum of inference in any 60 seconds; an answer that has begun may pass it, and the next calls wait for what it used', 'plan tokens', 0),
  ),
  concurrentStreams: Type.Optional(count('Maximum number of concurrent streams', 'streams', 0)),
  monthlyUsd: Type.Optional(spending('Spending limit per calendar month, UTC; if set, models without a price are refused')),
  dailyUsd: Type.Optional(spending('Spending limit per calendar day, UTC; if set, models without a price are refused')),
  models: Type.Optional(
    Type.Array(word('Name or alias of a model, or "*".'), {
      minItems: 1,
      maxItems: 100,
      description: 'The only models that there are for users of this plan; absent, or with "*" among them: all.',
    }),
  ),
  modelLimits: Type.Optional(
    Type.Unsafe<Record<string, Static<typeof modelLimits>>>({
      type: 'object',
      additionalProperties: modelLimits,
      maxProperties: 100,
      description: 'Limits of single models, by name or alias.',
    }),
  ),
  storageBytes: Type.Optional(count('Originals of files of a user, each content once', 'bytes', 0)),
  residency: Type.Optional(
    word(
      'Name of a region list under `residency` of a provider; other regions, and providers without regions, are never used for users of this plan. The built-in models remain available.',
    ),
  ),
});

export const plans = named(
  'Plans, by name. An absent member means no limit; 0 allows nothing. The built-in plan `unlimited`, the plan of the first user, has no limits unless it is defined here.',
  plan,
  {
    examples: [
      {
        free: { monthlyTokens: 200000, monthlyTrainTokens: 200000, requestsPerMinute: 60, concurrentStreams: 20 },
        team: { monthlyTokens: 20000000, monthlyTrainTokens: 5000000, requestsPerMinute: 600, monthlyUsd: 500 },
      },
    ],
  },
);

export const newUsers = group('Defaults for new users.', {
  plan: Type.Optional(word('Plan of a new user; absent: `free` if there is a plan of that name, otherwise `unlimited`.', { examples: ['free'] })),
  signup: yes(
    'Whether people may sign up themselves, at POST /server/session/signup. Nobody proves there that the e-mail address is theirs; they get `plan`, so name one with limits.',
    false,
  ),
  domains: list('Domains of the e-mail addresses that may sign up; subdomains are not included; empty: all.', word('A domain.')),
});

export const charge = group('Balances that usage is charged to.', {
  embeddings: oneOf('Balance that embeddings are charged to.', ['inference', 'train'], { default: 'inference' }),
});

import { Type } from 'typebox';
import { amount, count, group, list, named, oneOf, record, word, yes } from './shapes.ts';

const plan = record('What its users may use.', {
  monthlyTokens: Type.Optional(count('Inference in a calendar month, UTC', 'plan tokens', 0)),
  monthlyTrainTokens: Type.Optional(count('Training in a calendar month, UTC, and embeddings where `charge.embeddings` says train', 'plan tokens', 0)),
  requestsPerMinute: Type.Optional(count('Requests in a minute', 'requests', 0)),
  concurrentStreams: Type.Optional(count('Streams at a time', 'streams', 0)),
  monthlyUsd: Type.Optional(amount('Spending in a calendar month, UTC; models without a price are then refused', 'US dollars')),
  residency: Type.Optional(
    word(
      'A list of regions under `residency` of a provider; no other region is ever tried for its users, nor a provider without regions. The built-in models answer.',
    ),
  ),
});

export const plans = named(
  'Plans, by name. A member left out is no limit of that kind, 0 allows nothing. The plan `unlimited` is built in, without limits unless it is named here: it is the plan of the first user.',
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

export const newUsers = group('What a new user gets that is added without it.', {
  plan: Type.Optional(word('Their plan; absent: `free` if there is a plan of that name, else `unlimited`.', { examples: ['free'] })),
  signup: yes('May people register themselves?', false),
  domains: list('Who registers must have an e-mail address in one of these domains; empty: in any.', word('A domain.')),
});

export const charge = group('From which balance things are paid.', {
  embeddings: oneOf('The balance for embeddings.', ['inference', 'train'], { default: 'inference' }),
});

import { Type } from 'typebox';
import { catalogueDate } from '#core/catalogue-date';
import { abilities } from '#core/target';
import { amount, count, list, named, oneOf, record, word } from './shapes.ts';

const rates = {
  input: amount('A million tokens of the prompt', 'US dollars'),
  output: amount('A million tokens of the answer; embeddings have none', 'US dollars', { default: 0 }),
  cached: Type.Optional(amount('A million tokens of the prompt that the provider had read before; absent: as the rest of it', 'US dollars')),
  cacheWrite: Type.Optional(
    amount(
      'A million tokens of the prompt that the provider writes into its cache for some minutes; absent: 1.25 times input at the address of Anthropic, elsewhere as the rest of the prompt',
      'US dollars',
    ),
  ),
  cacheWrite1h: Type.Optional(amount('The same for an hour; absent: twice input at the address of Anthropic, elsewhere as for some minutes', 'US dollars')),
};

const price = (description: string) =>
  record(description, {
    ...rates,
    input: Type.Optional(amount('A million tokens of the prompt; may be left out, and is 0 then, where picture, second or character is given', 'US dollars')),
    long: Type.Optional(record('What all of it costs where the prompt is long.', { above: count('A longer prompt than this', 'tokens', 1), ...rates })),
    picture: Type.Optional(
      amount('One picture that is made, beside the tokens; without any of these three it costs as the 1,000 tokens of an answer', 'US dollars'),
    ),
    second: Type.Optional(
      amount('One second of sound that is written down or spoken, beside the tokens; fifteen characters take one to be spoken', 'US dollars'),
    ),
    character: Type.Optional(amount('One character that is spoken, beside the tokens', 'US dollars')),
  });

const target = record('A provider and one of its models.', {
  provider: word('A name under `providers`, or `built-in`.'),
  model: Type.Optional(word("The model's name there; absent: the name that was asked for.")),
  weight: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      description: 'Share of the calls, against the other weights; without one the target is a fallback, in the listed order.',
    }),
  ),
  price: Type.Optional(price('What it costs there; absent: as the model.')),
});

const model = record('What stands behind a model name.', {
  kind: oneOf('What it makes.', ['chat', 'embedding', 'speech', 'moderation'], { default: 'chat' }),
  targets: list('Who answers: the weighted ones by chance, then the others in order.', target),
  aliases: list('Other names for it.', word('A model name.')),
  tier: Type.Optional(oneOf('Its class when a name of the Gemini-style interface falls back; absent: read from a name of the five forms.', ['flash', 'pro'])),
  limits: Type.Object(
    {
      context: Type.Optional(count('Prompt and answer together', 'tokens', 1)),
      output: Type.Optional(count('The answer', 'tokens', 1)),
    },
    { additionalProperties: false, description: `What fits; absent: as in the catalogue of ${catalogueDate}, if it is there, else unknown.`, default: {} },
  ),
  rate: Type.Object(
    {
      input: amount('One token of the prompt', 'plan tokens', { default: 1 }),
      output: amount('One token of the answer', 'plan tokens', { default: 1 }),
    },
    { additionalProperties: false, description: 'What a token of this model costs in plan tokens.', default: {} },
  ),
  price: Type.Optional(price(`What it costs at each target; absent: as in the catalogue of ${catalogueDate}, if it is there, else unknown.`)),
  abilities: Type.Optional(
    Type.Array(oneOf('An ability.', abilities), {
      description: `What it can do, for who asks (GET /models/{id}); absent: as in the catalogue of ${catalogueDate}, if it is there, else unknown.`,
    }),
  ),
  larger: Type.Optional(word('The model that answers where a provider says that the conversation is longer than the context of this one.')),
  residency: Type.Optional(word('A list of regions under `residency` of a provider; no other region is ever tried, nor a provider without regions.')),
  dimensions: Type.Optional(count('Length of an embedding', 'numbers', 1)),
  tokensPerSecond: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      description: 'Pace of a streamed answer, for the built-in models only (tokens per second); absent: as fast as it goes.',
    }),
  ),
});

export const models = named(
  'The models that clients may ask for, by name. "*" stands for any other chat model name. The three built-in names always answer and need no entry.',
  model,
  {
    examples: [
      {
        'gpt-5.2': {
          targets: [
            { provider: 'openai', model: 'gpt-5.2', weight: 1 },
            { provider: 'claude', model: 'claude-sonnet-5' },
          ],
          price: { input: 1.25, output: 10 },
          rate: { input: 1, output: 1 },
          limits: { context: 400000, output: 128000 },
          aliases: ['gpt-4o'],
        },
        'gemini-2.5-flash': { targets: [{ provider: 'platform', model: 'gemini-2.5-flash' }], tier: 'flash' },
        'gemini-2.5-pro': { targets: [{ provider: 'platform', model: 'gemini-2.5-pro' }], tier: 'pro', residency: 'us' },
        'text-embedding-3-small': { kind: 'embedding', targets: [{ provider: 'openai', model: 'text-embedding-3-small' }], dimensions: 1536 },
        'tts-1': { kind: 'speech', targets: [{ provider: 'openai', model: 'tts-1' }] },
        'built-in': { tokensPerSecond: 50 },
        '*': { targets: [{ provider: 'openai' }] },
      },
    ],
  },
);

export const defaults = Type.Object(
  {
    chat: Type.Optional(word('What gencompat and followUp are where they are left out.')),
    embedding: Type.Optional(word('For an embedding name that nobody knows.')),
    gencompat: Type.Optional(word('The first choice of its tier, for a Gemini-style name without a model of its own.')),
    speech: Type.Optional(word('For speech.')),
    followUp: Type.Optional(word('For follow-up questions.')),
  },
  {
    additionalProperties: false,
    default: {},
    description:
      'The model where none is named. Without providers each is the built-in one; else the first model of its kind in `models`, or the built-in one if there is none; gencompat and followUp are as chat.',
    examples: [{ chat: 'gpt-5.2', embedding: 'text-embedding-3-small', gencompat: 'gemini-2.5-flash', speech: 'tts-1', followUp: 'gpt-5.2' }],
  },
);

import { Type, type Static } from 'typebox';
import { catalogueDate } from '#core/catalogue-date';
import { abilities } from '#core/target';
import { amount, count, list, oneOf, record, word, yes } from './shapes.ts';

const rates = {
  input: amount('Price of 1 million prompt tokens', 'US dollars'),
  output: amount('Price of 1 million output tokens; embeddings have none', 'US dollars', { default: 0 }),
  cached: Type.Optional(amount('Price of 1 million prompt tokens read from the cache of the provider; absent: same as input', 'US dollars')),
  cacheWrite: Type.Optional(
    amount(
      'Price of 1 million prompt tokens written to the cache of the provider for a few minutes; absent: 1.25 times input at the Anthropic API, elsewhere same as input',
      'US dollars',
    ),
  ),
  cacheWrite1h: Type.Optional(
    amount(
      'Price of 1 million prompt tokens written to the cache of the provider for one hour; absent: twice input at the Anthropic API, elsewhere same as cacheWrite',
      'US dollars',
    ),
  ),
};

const price = (description: string) =>
  record(description, {
    ...rates,
    input: Type.Optional(amount('Price of 1 million prompt tokens; optional if picture, second or character is given, and then 0', 'US dollars')),
    long: Type.Optional(
      record('Prices of the whole request if its prompt is long.', { above: count('Prompt length above which these prices apply', 'tokens', 1), ...rates }),
    ),
    picture: Type.Optional(
      amount(
        'Price of one generated image, in addition to the tokens; if picture, second and character are all absent, an image costs as much as 1,000 output tokens',
        'US dollars',
      ),
    ),
    second: Type.Optional(
      amount(
        'Price of one second of audio, transcribed or synthesized, in addition to the tokens; 15 characters of text count as one second of speech',
        'US dollars',
      ),
    ),
    character: Type.Optional(amount('Price of one character of synthesized speech, in addition to the tokens', 'US dollars')),
    search: Type.Optional(
      amount(
        'Price of one web search by the provider, in addition to the tokens; absent: 0.01 at the OpenAI and Anthropic APIs, 0.014 at the Gemini API, where an answer of Gemini 2.5 with searches costs 0.035 whatever their number, elsewhere 0',
        'US dollars',
      ),
    ),
  });

const target = record('A target: a provider and one of its models.', {
  provider: word('Name of a provider under `providers`, or `built-in`.'),
  model: Type.Optional(word('Model name at the provider; absent: the requested name.')),
  weight: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      description: 'Share of the calls, relative to the other weights; a target without a weight is a fallback, tried in the listed order.',
    }),
  ),
  price: Type.Optional(price('Prices at this target; absent: the prices of the model.')),
});

const model = record('The targets and properties of a model.', {
  kind: oneOf('Kind of the model.', ['chat', 'embedding', 'speech', 'moderation'], { default: 'chat' }),
  targets: list('Targets that answer: weighted targets are drawn at random, then the others are tried in order.', target),
  aliases: list('Other names of the model.', word('A model name.')),
  tier: Type.Optional(
    oneOf('Tier of the model, for fallback in the Gemini-style interface; absent: derived from a model name of a known form.', ['flash', 'pro']),
  ),
  limits: Type.Object(
    {
      context: Type.Optional(count('Context window: prompt and answer together', 'tokens', 1)),
      output: Type.Optional(count('Longest answer', 'tokens', 1)),
    },
    {
      additionalProperties: false,
      description: `Token limits of the model; absent: from the catalogue of ${catalogueDate}, or unknown if the catalogue has no entry.`,
      default: {},
    },
  ),
  rate: Type.Object(
    {
      input: amount('Cost of one prompt token', 'plan tokens', { default: 1 }),
      output: amount('Cost of one output token', 'plan tokens', { default: 1 }),
    },
    { additionalProperties: false, description: 'Conversion of the tokens of this model into plan tokens.', default: {} },
  ),
  price: Type.Optional(
    price(`Prices at every target without prices of its own; absent: from the catalogue of ${catalogueDate}, or unknown if the catalogue has no entry.`),
  ),
  abilities: Type.Optional(
    Type.Array(oneOf('An ability.', abilities), {
      description: `Abilities of the model, as shown by GET /models/{id}; absent: from the catalogue of ${catalogueDate}, or unknown if the catalogue has no entry.`,
    }),
  ),
  larger: Type.Optional(word('Fallback model for conversations that a provider rejects as longer than the context of this model.')),
  residency: Type.Optional(word('Name of a region list under `residency` of a provider; other regions, and providers without regions, are never used.')),
  dimensions: Type.Optional(count('Length of an embedding', 'dimensions', 1)),
  tokensPerSecond: Type.Optional(
    Type.Number({
      exclusiveMinimum: 0,
      description: 'Speed of a streamed answer, for the built-in models only (tokens per second); absent: unlimited.',
    }),
  ),
});

/** `built-in: false` hides the built-in models; all other members are models. */
export const models = Type.Unsafe<Record<string, Static<typeof model>>>(
  Type.Object(
    { 'built-in': Type.Optional(Type.Union([model, Type.Literal(false)], { description: 'The built-in chat model; false hides all built-in models.' })) },
    {
      additionalProperties: model,
      description:
        'Models that clients may request, by name. "*" matches any other chat model name. The built-in models (built-in, built-in-embedding, built-in-speech) need no entry, and are available unless `built-in` is false.',
      default: {},
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
  ),
);

export const defaults = Type.Object(
  {
    chat: Type.Optional(word('Chat model; also the default of gencompat and followUp.')),
    embedding: Type.Optional(
      word(
        'Model for embedding requests that name an unknown model. Default: the first embedding model of `models`; where there is none, `text-embedding-3-small` of the providers that speak OpenAI chat, or 404 without one.',
      ),
    ),
    fallback: yes('Whether embedding requests that name an unknown model are answered by the model `embedding`; false: they are answered with 404.', true),
    gencompat: Type.Optional(word('Preferred model of its tier for Gemini-style names that match no model.')),
    speech: Type.Optional(word('Model for speech.')),
    followUp: Type.Optional(word('Model for follow-up questions.')),
  },
  {
    additionalProperties: false,
    default: {},
    description:
      'Default models. If absent: the first model of the kind in `models`, or the built-in model if there is none or no provider is set (for embeddings: if no provider is set); gencompat and followUp default to chat.',
    examples: [{ chat: 'gpt-5.2', embedding: 'text-embedding-3-small', gencompat: 'gemini-2.5-flash', speech: 'tts-1', followUp: 'gpt-5.2' }],
  },
);

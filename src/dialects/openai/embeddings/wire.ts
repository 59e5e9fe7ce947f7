import { Type } from 'typebox';

/** OpenAI's embeddings. https://platform.openai.com/docs/api-reference/embeddings */
export const dialect = 'openai-embeddings';

export const mostInputs = 256;

/** Token ids are below this: no vocabulary is larger. */
export const mostTokenIds = 10_000_000;

const Tokens = Type.Array(Type.Integer({ minimum: 0, maximum: mostTokenIds }), { minItems: 1 });

export const EmbeddingRequest = Type.Object(
  {
    model: Type.Optional(Type.String({ minLength: 1, maxLength: 200, default: 'text-embedding-3-small' })),
    input: Type.Union(
      [
        Type.String({ minLength: 1 }),
        Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: mostInputs }),
        Tokens,
        Type.Array(Tokens, { minItems: 1, maxItems: mostInputs }),
      ],
      { description: 'A text, or up to 256; a text may be given as its tokens.' },
    ),
    dimensions: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1, maximum: 100_000 }), Type.Null()], { description: 'How many numbers a vector is to have.' }),
    ),
    encoding_format: Type.Optional(Type.Union([Type.Literal('float'), Type.Literal('base64'), Type.Null()])),
    user: Type.Optional(Type.Union([Type.String(), Type.Null()], { description: 'Your end user, for the provider.' })),
  },
  { additionalProperties: true },
);

/** The response schema of the OpenAPI document; a response may have further members that its provider sent. */
export const EmbeddingList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(
    Type.Object({
      object: Type.Literal('embedding'),
      index: Type.Integer(),
      embedding: Type.Union([Type.Array(Type.Number()), Type.String({ description: 'Base64 of 32-bit floats, little-endian.' })]),
    }),
  ),
  model: Type.String({ description: 'The model that answered.' }),
  usage: Type.Object({ prompt_tokens: Type.Integer(), total_tokens: Type.Integer() }),
});

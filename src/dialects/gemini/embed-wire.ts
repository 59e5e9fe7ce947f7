import { Type, type Static, type TProperties } from 'typebox';
import { optional } from '../shared/schemas.ts';

/** Embeddings of the Gemini API (https://ai.google.dev/api/embeddings), and of the cloud platform's `predict`. */

/** Per request of a client. */
export const mostInputs = 256;

const dimensionality = optional(Type.Integer({ minimum: 1, maximum: 100_000, description: 'How many numbers a vector is to have.' }));
const title = optional(Type.String({ maxLength: 10_000, description: 'Of the document, for RETRIEVAL_DOCUMENT.' }));
export const purpose = {
  taskType: optional(Type.String({ maxLength: 100, description: 'What the vector is for: `RETRIEVAL_QUERY`, `RETRIEVAL_DOCUMENT`, `SEMANTIC_SIMILARITY`…' })),
  title,
  outputDimensionality: dimensionality,
};
const Texts = Type.Object({
  parts: Type.Array(Type.Object({ text: Type.String() }), { minItems: 1, maxItems: 1000, description: 'Texts: they are read as one.' }),
});

export type EmbedRequest = Static<typeof EmbedRequest>;
export const EmbedRequest = Type.Object(
  {
    model: optional(Type.String({ maxLength: 300, description: 'The model of the address once more.' })),
    content: Texts,
    ...purpose,
    embedContentConfig: optional(Type.Object(purpose, { description: 'The same members, as clients of the platform send them.' })),
  },
  { description: 'A text whose vector is wanted.' },
);

export const BatchEmbedRequest = Type.Object({
  requests: Type.Array(EmbedRequest, { minItems: 1, maxItems: mostInputs, description: 'One for each text; all ask for the same outputDimensionality.' }),
});

export const Instance = Type.Object({ content: Type.String(), taskType: purpose.taskType, title });
export const PredictRequest = Type.Object({
  instances: Type.Array(Instance, {
    minItems: 1,
    maxItems: mostInputs,
    description: 'One for each text.',
  }),
  parameters: optional(Type.Object({ outputDimensionality: dimensionality, autoTruncate: optional(Type.Boolean()) })),
});

/** The response schemas of the OpenAPI document. */
const vector = { values: Type.Array(Type.Number()) } satisfies TProperties;
const Embedding = Type.Object(vector);
const Statistics = Type.Object({ token_count: Type.Integer(), truncated: Type.Boolean({ description: 'Only the beginning of the text was read.' }) });
const usage = { usageMetadata: Type.Object({ promptTokenCount: Type.Integer() }) } satisfies TProperties;
export const EmbedResponse = Type.Object({ embedding: Embedding, ...usage });
export const BatchEmbedResponse = Type.Object({ embeddings: Type.Array(Embedding), ...usage });
export const PredictResponse = Type.Object({ predictions: Type.Array(Type.Object({ embeddings: Type.Object({ statistics: Statistics, ...vector }) })) });

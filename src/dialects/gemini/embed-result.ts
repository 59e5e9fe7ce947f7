import { encoded, type Vector } from '#core/embed';
import type { Usage } from '#core/event';
import { Fault } from '#core/fault';
import { isObject, type JsonObject } from '#core/json';
import { isCount } from '../shared/read-fields.ts';

/** Answers with vectors ↔ result. */

export interface EmbedResult {
  readonly vectors: readonly Vector[];
  readonly usage: Usage;
}

/** The vectors that a provider sent, and the tokens that they cost where it says so. */
export interface Vectors {
  readonly vectors: readonly (readonly number[])[];
  readonly tokens: number | undefined;
}

/** The answer to `embedContent`. */
export const encodeEmbedResult = ({ vectors, usage }: EmbedResult): JsonObject => ({ embedding: embeddingOf(vectors[0]!), ...tokensOf(usage) });

/** The answer to `batchEmbedContents`. */
export const encodeBatchEmbedResult = ({ vectors, usage }: EmbedResult): JsonObject => ({ embeddings: vectors.map(embeddingOf), ...tokensOf(usage) });

/** The answer to `predict`. */
export const encodePredictResult = ({ vectors }: EmbedResult): JsonObject => ({
  predictions: vectors.map((vector) => ({ embeddings: embeddingOf(vector) })),
});

const embeddingOf = (vector: Vector) => ({ values: encoded(vector, 'float') });
const tokensOf = ({ input }: Usage) => ({ usageMetadata: { promptTokenCount: input } });

/** A provider's answer to `batchEmbedContents`. @param count of the texts that were sent @throws Fault `upstream-failed` where it is none */
export function decodeBatchEmbedResult(body: unknown, count: number): Vectors {
  const embeddings = isObject(body) ? body['embeddings'] : undefined;
  const usage = isObject(body) && isObject(body['usageMetadata']) ? body['usageMetadata']['promptTokenCount'] : undefined;
  return { vectors: listOf(embeddings, count).map(valuesOf), tokens: isCount(usage) ? usage : undefined };
}

/** A provider's answer to `predict`. @throws as `decodeBatchEmbedResult` */
export function decodePredictResult(body: unknown, count: number): Vectors {
  const predictions = listOf(isObject(body) ? body['predictions'] : undefined, count);
  const told = predictions.map((one) => {
    const statistics = isObject(one) && isObject(one['embeddings']) ? one['embeddings']['statistics'] : undefined;
    const tokens = isObject(statistics) ? statistics['token_count'] : undefined;
    return isCount(tokens) ? tokens : undefined;
  });
  return {
    vectors: predictions.map((one) => valuesOf(isObject(one) ? one['embeddings'] : undefined)),
    tokens: told.every((tokens) => tokens !== undefined) ? told.reduce((sum, tokens) => sum + tokens, 0) : undefined,
  };
}

function listOf(value: unknown, count: number): readonly unknown[] {
  if (!Array.isArray(value) || value.length !== count) throw malformed();
  return value;
}

function valuesOf(embedding: unknown): readonly number[] {
  const values = isObject(embedding) ? embedding['values'] : undefined;
  if (!Array.isArray(values) || values.length === 0 || !values.every((one) => typeof one === 'number')) throw malformed();
  return values;
}

const malformed = () => new Fault('upstream-failed', 'The provider sent something that is not a list of embeddings.', { elsewhere: true });

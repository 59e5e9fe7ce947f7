import { encoded, type Vector } from '#core/embed';
import type { Usage } from '#core/event';
import { Fault } from '#core/fault';
import { isObject, type JsonObject } from '#core/json';
import { isCount } from '../shared/read-fields.ts';

/** Embedding responses ↔ result. */

export interface EmbedResult {
  readonly vectors: readonly Vector[];
  readonly usage: Usage;
}

/** The vectors that a provider sent, and its input token count where it reports one. */
export interface Vectors {
  readonly vectors: readonly (readonly number[])[];
  readonly tokens: number | undefined;
}

/** The response of `embedContent`. */
export const encodeEmbedResult = ({ vectors, usage }: EmbedResult): JsonObject => ({ embedding: embeddingOf(vectors[0]!), ...tokensOf(usage) });

/** The response of `batchEmbedContents`. */
export const encodeBatchEmbedResult = ({ vectors, usage }: EmbedResult): JsonObject => ({ embeddings: vectors.map(embeddingOf), ...tokensOf(usage) });

/** The response of `predict`. */
export const encodePredictResult = ({ vectors }: EmbedResult): JsonObject => ({
  predictions: vectors.map((vector) => ({ embeddings: embeddingOf(vector) })),
});

const embeddingOf = (vector: Vector) => ({ values: encoded(vector, 'float') });
const tokensOf = ({ input }: Usage) => ({ usageMetadata: { promptTokenCount: input } });

/** A provider's answer to `batchEmbedContents`. @param count number of texts that were sent @throws Fault `upstream-failed` where it is not one */
export function decodeBatchEmbedResult(body: unknown, count: number): Vectors {
  const embeddings = isObject(body) ? body['embeddings'] : undefined;
  const usage = isObject(body) && isObject(body['usageMetadata']) ? body['usageMetadata']['promptTokenCount'] : undefined;
  return { vectors: listOf(embeddings, count).map(valuesOf), tokens: isCount(usage) ? usage : undefined };
}

/** A provider's answer to `predict`. @throws as `decodeBatchEmbedResult` */
export function decodePredictResult(body: unknown, count: number): Vectors {
  const predictions = listOf(isObject(body) ? body['predictions'] : undefined, count);
  const counts = predictions.map((one) => {
    const statistics = isObject(one) && isObject(one['embeddings']) ? one['embeddings']['statistics'] : undefined;
    const tokens = isObject(statistics) ? statistics['token_count'] : undefined;
    return isCount(tokens) ? tokens : undefined;
  });
  return {
    vectors: predictions.map((one) => valuesOf(isObject(one) ? one['embeddings'] : undefined)),
    tokens: counts.every((tokens) => tokens !== undefined) ? counts.reduce((sum, tokens) => sum + tokens, 0) : undefined,
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

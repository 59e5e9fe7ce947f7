import { encoded, type EmbedCall, type InputStatistics, type Vector } from '#core/embed';
import type { Usage } from '#core/event';
import { Fault } from '#core/fault';
import { isObject } from '#core/json';
import { readLongList, writeLongList } from '#kit/json/long-list';
import { BadJson } from '#kit/json/scan';
import { isCount } from '../shared/read-fields.ts';
import { faultOfError } from './faults.ts';

/** Embedding responses ↔ result. */

export interface EmbedResult {
  readonly vectors: readonly Vector[];
  readonly usage: Usage;
  readonly statistics?: readonly InputStatistics[];
}

/** The vectors that a provider sent, and its input token count where it reports one. */
export interface Vectors {
  readonly vectors: readonly (readonly number[])[];
  readonly tokens: number | undefined;
  readonly statistics?: readonly InputStatistics[];
}

/** The response of `embedContent`, as JSON. */
export const encodeEmbedResult = ({ vectors, usage }: EmbedResult): string => JSON.stringify({ embedding: embeddingOf(vectors[0]!), ...tokensOf(usage) });

/** The response of `batchEmbedContents`, as JSON. */
export const encodeBatchEmbedResult = ({ vectors, usage }: EmbedResult): Promise<string> =>
  writeLongList({ embeddings: vectors.map(embeddingOf), ...tokensOf(usage) }, 'embeddings');

/** The response of `predict`, as JSON. Where nobody counted each text, it has its share of all tokens: SDKs of the platform read the statistics unasked. */
export function encodePredictResult({ vectors, usage, statistics }: EmbedResult, { inputs }: Pick<EmbedCall, 'inputs'>): Promise<string> {
  const shares = sharesOf(usage.input, inputs);
  const predictions = vectors.map((vector, at) => {
    const { tokens, truncated } = statistics?.[at] ?? { tokens: shares[at]!, truncated: false };
    return { embeddings: { statistics: { token_count: tokens, truncated }, ...embeddingOf(vector) } };
  });
  return writeLongList({ predictions }, 'predictions');
}

/** Whole numbers whose sum is that of all tokens, in proportion to the lengths of the inputs. */
function sharesOf(tokens: number, inputs: EmbedCall['inputs']): readonly number[] {
  const characters = inputs.reduce((sum, { length }) => sum + length, 0);
  let before = 0;
  let given = 0;
  return inputs.map(({ length }) => {
    before += length;
    const share = Math.round((tokens * before) / characters) - given;
    given += share;
    return share;
  });
}

const embeddingOf = (vector: Vector) => ({ values: encoded(vector, 'float') });
const tokensOf = ({ input }: Usage) => ({ usageMetadata: { promptTokenCount: input } });

/** A provider's answer to `batchEmbedContents`. @param count number of texts that were sent @throws Fault `upstream-failed` where it is not one */
export async function decodeBatchEmbedResult(bytes: Uint8Array, count: number): Promise<Vectors> {
  const body = await read(bytes, 'embeddings');
  const embeddings = isObject(body) ? body['embeddings'] : undefined;
  const usage = isObject(body) && isObject(body['usageMetadata']) ? body['usageMetadata']['promptTokenCount'] : undefined;
  return { vectors: listOf(embeddings, count).map(valuesOf), tokens: isCount(usage) && usage > 0 ? usage : undefined };
}

/** A provider's answer to `predict`. @throws as `decodeBatchEmbedResult` */
export async function decodePredictResult(bytes: Uint8Array, count: number): Promise<Vectors> {
  const body = await read(bytes, 'predictions');
  const predictions = listOf(isObject(body) ? body['predictions'] : undefined, count);
  const statistics = predictions.flatMap((one) => {
    const its = isObject(one) && isObject(one['embeddings']) ? one['embeddings']['statistics'] : undefined;
    const tokens = isObject(its) ? its['token_count'] : undefined;
    return isObject(its) && isCount(tokens) && tokens > 0 ? [{ tokens, truncated: its['truncated'] === true }] : [];
  });
  const isCounted = statistics.length === count;
  return {
    vectors: predictions.map((one) => valuesOf(isObject(one) ? one['embeddings'] : undefined)),
    tokens: isCounted ? statistics.reduce((sum, { tokens }) => sum + tokens, 0) : undefined,
    ...(isCounted ? { statistics } : {}),
  };
}

/** @throws Fault `upstream-failed` where it is no JSON, or the fault that an error in the place of an answer means */
async function read(bytes: Uint8Array, list: string): Promise<unknown> {
  const body = await readLongList(bytes, list).catch((error: unknown) => {
    throw error instanceof BadJson ? malformed() : error;
  });
  if (isObject(body) && isObject(body['error']) && body[list] === undefined) throw faultOfError(body['error']);
  return body;
}

function listOf(value: unknown, count: number): readonly unknown[] {
  if (!Array.isArray(value) || value.length !== count) throw malformed();
  return value;
}

function valuesOf(embedding: unknown): readonly number[] {
  const values = isObject(embedding) ? embedding['values'] : undefined;
  if (!Array.isArray(values) || values.length === 0 || !values.every(Number.isFinite)) throw malformed();
  return values;
}

const malformed = () => new Fault('upstream-failed', 'The provider sent something that is not a list of embeddings.', { elsewhere: true });

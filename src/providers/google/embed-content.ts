import { encodeBatchEmbed, encodePredict } from '#dialects/gemini/embed-request';
import { decodeBatchEmbedResult, decodePredictResult, type Vectors } from '#dialects/gemini/embed-result';
import { unknownIgnored, type EmbedCall, type Embedded } from '#core/embed';
import { notHonoured } from '#core/fault';
import type { TargetContext } from '#core/context';
import type { JsonObject } from '#core/json';
import { attempt } from '../shared/attempt.ts';
import type { OperationEndpoint } from '../shared/operation.ts';
import { whole } from '../shared/post.ts';
import { hasTokens, withTexts } from '../shared/token-inputs.ts';
import { openTokens } from '#kit/tokens/index';

/** Embeddings in the content generation API. */
interface EmbedEndpoint extends OperationEndpoint {
  /** The operation, and the maximum number of texts and bytes per request of it. */
  readonly embedding: EmbedOperation;
}

export interface EmbedOperation {
  readonly name: string;
  readonly most: { readonly texts: number; readonly bytes: number };
  encode(texts: readonly string[], call: EmbedCall, purposes: EmbedCall['purposes'], model: string): JsonObject;
  decode(bytes: Uint8Array, count: number): Promise<Vectors>;
}

/** The Gemini API, whose batches have at most 100 texts. */
export const batchEmbed: EmbedOperation = {
  name: 'batchEmbedContents',
  most: { texts: 100, bytes: 750_000 },
  encode: encodeBatchEmbed,
  decode: decodeBatchEmbedResult,
};

/** The cloud platform: at most 250 texts and 20,000 tokens per request, and one text for a model of the Gemini family. */
export const predict = (model: string): EmbedOperation => ({
  name: 'predict',
  most: { texts: /(^|\/)gemini-/.test(model) ? 1 : 250, bytes: 60_000 },
  encode: encodePredict,
  decode: decodePredictResult,
});

/** Concurrent requests per call. */
const atATime = 4;

/** The vectors of texts, in as many requests as needed. @throws Fault of the first failed request */
export async function embedContent(endpoint: EmbedEndpoint, call: EmbedCall, context: TargetContext): Promise<Embedded> {
  const ignored = [...(call.user === undefined ? [] : ['user: this API has no such field']), ...unknownIgnored(call)];
  if (context.strict && ignored.length > 0) throw notHonoured(ignored);
  const batches = inBatches(await textsOf(call), endpoint.embedding.most);
  const answers = await inParallel(batches, (batch) => embedBatch(endpoint, call, batch, context));
  const counts = answers.map(({ tokens }) => tokens);
  const statistics = answers.flatMap((one) => one.statistics ?? []);
  const isCounted = counts.every((tokens) => tokens !== undefined);
  return {
    model: endpoint.model,
    ignored,
    ...(isCounted ? { usage: { input: counts.reduce((sum, tokens) => sum + tokens, 0), output: 0, source: 'provider' } } : {}),
    answer: { vectors: answers.flatMap(({ vectors }) => vectors), ...(statistics.length === call.inputs.length ? { statistics } : {}) },
  };
}

/** Runs several jobs at a time, in order. After a failure no further job starts, and those in progress are awaited. */
async function inParallel<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<readonly Result[]> {
  const results: Result[] = [];
  const failures: unknown[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < items.length && failures.length === 0; at = next++) {
      try {
        results[at] = await work(items[at]!);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atATime, items.length) }, worker));
  if (failures.length > 0) throw failures[0];
  return results;
}

async function textsOf(call: EmbedCall): Promise<readonly string[]> {
  if (!hasTokens(call)) return call.inputs as readonly string[];
  const tokens = await openTokens();
  return withTexts(call, await tokens.decoder()).inputs;
}

/** The texts of one request, and the index of the first of them in the call. */
interface Batch {
  readonly from: number;
  readonly texts: readonly string[];
}

function inBatches(texts: readonly string[], most: EmbedOperation['most']): readonly Batch[] {
  const batches: { from: number; texts: string[] }[] = [];
  let bytes = 0;
  for (const [from, text] of texts.entries()) {
    const size = Buffer.byteLength(text);
    const last = batches.at(-1);
    if (last && last.texts.length < most.texts && bytes + size <= most.bytes) {
      last.texts.push(text);
      bytes += size;
    } else {
      batches.push({ from, texts: [text] });
      bytes = size;
    }
  }
  return batches;
}

async function embedBatch(endpoint: EmbedEndpoint, call: EmbedCall, { from, texts }: Batch, context: TargetContext): Promise<Vectors> {
  const { embedding, model } = endpoint;
  const body = JSON.stringify(embedding.encode(texts, call, call.purposes?.slice(from, from + texts.length), model));
  const { response } = await attempt(endpoint, { operation: embedding.name, body, ignored: [] }, context);
  try {
    return await embedding.decode(await whole(response, context), texts.length);
  } finally {
    response.leave();
  }
}

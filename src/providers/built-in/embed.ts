import { normalized } from '#kit/text/normalized';
import { QueueFull } from '#kit/async/fair-semaphore';
import type { Tokens } from '#kit/tokens/index';
import { purposesIgnored, unknownIgnored, type EmbedCall, type Embedded } from '#core/embed';
import { Fault, queueFull } from '#core/fault';
import type { Context } from '#core/context';
import { fewAtOnce } from '#kit/async/few-at-once';
import { hasTokens, withTexts } from '../shared/token-inputs.ts';
import { sentenceDimensions, type Read, type Sentences } from './sentence/sentence.ts';

const embeddingName = 'built-in-embedding';

/**
 * What ranks by these vectors count beside those by words. On Cranfield (bench/README.md, Retrieval) they find half as much, and a larger weight makes the two
 * together worse than words alone.
 */
export const embeddingWeight = 0.05;

export interface EmbedDeps {
  readonly sentences: Sentences;
  readonly tokens: () => Promise<Tokens>;
}

/** Most characters of a text that are read, and of a piece of it: the model is slow on longer ones. */
const mostCharacters = 32_768;
const pieceCharacters = 1000;

/**
 * Embeddings by the packaged sentence model. The vector of a longer text is the mean of its pieces; fewer dimensions are the first ones, normalized to length
 * 1.
 * @throws Fault `invalid` for tokens of another vocabulary than cl100k, and for more dimensions than the model has
 */
export function embedder({ sentences, tokens }: EmbedDeps): (call: EmbedCall, context: Pick<Context, 'caller' | 'signal' | 'strict'>) => Promise<Embedded> {
  return async (call, { caller, signal, strict }) => {
    const { dimensions = sentenceDimensions } = call;
    if (dimensions > sentenceDimensions)
      throw new Fault('invalid', `dimensions must be at most ${sentenceDimensions}: ${embeddingName} makes no more.`, { field: 'dimensions' });
    const texts = hasTokens(call) ? withTexts(call, await (await tokens()).decoder()).inputs : (call.inputs as readonly string[]);
    const ignored = [
      ...purposesIgnored(call),
      ...unknownIgnored(call),
      ...(dimensions < sentenceDimensions ? [`dimensions: the first ${dimensions} of ${sentenceDimensions}`] : []),
      ...texts.flatMap((text, at) => (text.length > mostCharacters ? [`input[${at}]: its first ${mostCharacters} characters are read`] : [])).slice(0, 5),
    ];
    if (strict && ignored[0])
      throw new Fault('invalid', `${embeddingName} does not support ${ignored[0].replace(/\.$/, '')}.`, { field: ignored[0].split(':', 1)[0]! });
    const owner = String(caller.userId);
    const size = texts.reduce((sum, text) => sum + Math.min(text.length, mostCharacters), 0);
    const input = await shared((await tokens()).countAll(texts, { owner, signal }));
    const vectors = await shared(
      sentences.reading({ owner, size, signal, isUrgent: isQuestion(call) }, (read) =>
        // the normalization that the model expects
        fewAtOnce(texts, sentences.threads, async (text) => unit(await mean(normalized(text.slice(0, mostCharacters), 'NFKC'), read), dimensions)),
      ),
    );
    return { model: embeddingName, ignored, usage: { input, output: 0, source: 'provider' }, answer: { vectors } };
  };
}

/** Somebody waits for the vector of a question, while documents are many. */
const isQuestion = ({ inputs, purposes = [] }: EmbedCall): boolean => inputs.length === 1 && purposes[0]?.task === 'RETRIEVAL_QUERY';

/** @throws Fault `rate-limited` or `overloaded` if too much of this work is waiting */
async function shared<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof QueueFull ? queueFull(error) : error;
  }
}

async function mean(text: string, read: Read): Promise<Float32Array> {
  const sum = new Float32Array(sentenceDimensions);
  for (let at = 0; at < text.length; at += pieceCharacters) {
    const vector = await read(text.slice(at, at + pieceCharacters));
    for (let index = 0; index < sum.length; index++) sum[index]! += vector[index]!;
  }
  return sum;
}

function unit(vector: Float32Array, dimensions: number): readonly number[] {
  const numbers = Array.from(vector.subarray(0, dimensions));
  const length = Math.hypot(...numbers) || 1;
  return numbers.map((number) => Math.fround(number / length));
}

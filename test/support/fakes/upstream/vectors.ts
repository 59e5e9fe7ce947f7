import { whole } from './answer.ts';
import type { Behaviour } from './behaviour.ts';

/** The embedding that the fake makes of an input: three numbers that tell it apart from others. */
export function vectorOf(input: string | readonly number[]): readonly [number, number, number] {
  const codes = typeof input === 'string' ? [...input].map((character) => character.codePointAt(0)!) : input;
  const sum = codes.reduce((all, code) => (all * 31 + code) % 997, 7);
  return [sum / 1024, codes.length % 512, 0.5];
}

export interface VectorManners {
  /** As some servers do, whatever was asked for. */
  readonly encoding?: 'float' | 'base64';
  readonly usage?: 'missing' | { readonly prompt_tokens: unknown };
  /** The last vectors come first. */
  readonly backwards?: boolean;
  readonly count?: number;
}

/** A list of embeddings, as OpenAI writes it: a token a word. */
export const vectors = ({ encoding, usage, backwards = false, count }: VectorManners = {}): Behaviour => ({
  name: 'vectors',
  when: { path: /\/embeddings/ },
  answer({ request }) {
    const asked = request.json as {
      readonly input: string | readonly (string | number | readonly number[])[];
      readonly encoding_format?: string;
      readonly model: string;
    };
    const inputs = typeof asked.input === 'string' || typeof asked.input[0] === 'number' ? [asked.input as string] : (asked.input as readonly string[]);
    const data = inputs.slice(0, count).map((input, index) => ({
      object: 'embedding',
      index,
      embedding: (encoding ?? asked.encoding_format) === 'base64' ? base64(vectorOf(input)) : vectorOf(input),
    }));
    const words = inputs.reduce((sum, input) => sum + (typeof input === 'string' ? input.split(' ').length : (input as readonly number[]).length), 0);
    const told = usage === 'missing' ? {} : { usage: usage ?? { prompt_tokens: words, total_tokens: words } };
    return whole(200, JSON.stringify({ object: 'list', data: backwards ? data.toReversed() : data, model: `${asked.model}-v1`, ...told }), {
      'content-type': 'application/json',
    });
  },
});

/** The same in Google's words: a batch of the Gemini API, or a prediction of the platform. `usage`: is it told? */
export const googleVectors = ({ usage = true, count }: { readonly usage?: boolean; readonly count?: number } = {}): Behaviour => ({
  name: 'googleVectors',
  when: { path: /:(batchEmbedContents|predict)$/ },
  answer({ request }) {
    const asked = request.json as GoogleBatch;
    const texts = (asked.requests?.map(({ content }) => content.parts[0]!.text) ?? asked.instances!.map(({ content }) => content)).slice(0, count);
    const tokens = texts.map((text) => text.split(' ').length);
    const answer = asked.requests
      ? {
          embeddings: texts.map((text) => ({ values: vectorOf(text) })),
          ...(usage ? { usageMetadata: { promptTokenCount: tokens.reduce((sum, one) => sum + one, 0) } } : {}),
        }
      : {
          predictions: texts.map((text, at) => ({
            embeddings: { values: vectorOf(text), ...(usage ? { statistics: { truncated: false, token_count: tokens[at] } } : {}) },
          })),
        };
    return whole(200, JSON.stringify(answer), { 'content-type': 'application/json' });
  },
});

interface GoogleBatch {
  readonly requests?: readonly { readonly content: { readonly parts: readonly { readonly text: string }[] } }[];
  readonly instances?: readonly { readonly content: string }[];
}

/** An answer of this type for this operation. */
export const says = (path: RegExp, type: string, body: string | Buffer): Behaviour => ({
  name: 'says',
  when: { path },
  answer: () => whole(200, body, { 'content-type': type }),
});

function base64(numbers: readonly number[]): string {
  const bytes = Buffer.alloc(4 * numbers.length);
  numbers.forEach((number, at) => bytes.writeFloatLE(number, 4 * at));
  return bytes.toString('base64');
}

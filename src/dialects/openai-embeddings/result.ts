import { encoded, type EmbedCall, type Embedded, type Vector } from '#model/embed';
import type { Usage } from '#model/event';
import { Fault } from '#model/fault';
import { isObject, textOf, type JsonObject } from '#model/json';
import { isCount } from '../reading.ts';

/** An embeddings answer ↔ result. */

/**
 * The answer to a call in this dialect. Where it is what the client asked for, in the usual order of its members, only its ends are read and its bytes are
 * kept: 256 vectors of 1,536 floats are 8 MB, which to parse takes longer than to pass.
 *
 * @param model the upstream's name for it, for answers that do not say
 * @param isPassed may the client have the bytes as they came?
 * @throws Fault `upstream-failed` where it is none
 */
export function decodeResult(bytes: Uint8Array, call: EmbedCall, model: string, isPassed: boolean): Embedded {
  const read = isPassed ? endsOf(bytes, call) : undefined;
  if (read) return { model: read.model || model, ignored: [], ...(read.usage ? { usage: read.usage } : {}), answer: { bytes } };
  const body = parsed(bytes);
  if (!isObject(body) || !Array.isArray(body['data'])) throw malformed();
  const vectors = new Array<Vector | undefined>(call.inputs.length).fill(undefined);
  for (const [at, one] of (body['data'] as readonly unknown[]).entries()) {
    if (!isObject(one)) throw malformed();
    const index = one['index'] ?? at;
    const vector = one['embedding'];
    if (!Number.isSafeInteger(index) || !((index as number) in vectors) || !isVector(vector)) throw malformed();
    vectors[index as number] = encoded(vector, call.encoding);
  }
  if (!vectors.every((vector) => vector !== undefined)) throw malformed();
  const usage = usageOf(body['usage']);
  return { model: textOf(body['model']) || model, ignored: [], ...(usage ? { usage } : {}), answer: { vectors } };
}

/** The answer in the words of this dialect. */
export function encodeResult({ model, usage }: Embedded, vectors: readonly Vector[]): JsonObject {
  return {
    object: 'list',
    data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })),
    model,
    usage: { prompt_tokens: usage?.input ?? 0, total_tokens: usage?.input ?? 0 },
  };
}

const head = /^\s*\{\s*"object"\s*:\s*"list"\s*,\s*"data"\s*:\s*\[\s*\{\s*"object"\s*:\s*"embedding"\s*,\s*"index"\s*:\s*0\s*,\s*"embedding"\s*:\s*(["[])/;
const tail = /"index"\s*:\s*(\d+)\s*,\s*"embedding"/g;
const end = /\]\s*,\s*"model"\s*:\s*"([\x20\x21\x23-\x5b\x5d-\x7e]*)"\s*,\s*"usage"\s*:\s*(\{[^{}]*\})\s*\}\s*$/;
const endBytes = 1024;

/** What the two ends say, if the answer is as OpenAI writes it: with the encoding that was asked for and as many vectors. */
function endsOf(bytes: Uint8Array, { inputs, encoding }: EmbedCall): { readonly model: string; readonly usage: Usage | undefined } | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const opening = head.exec(buffer.toString('latin1', 0, endBytes));
  const closing = end.exec(buffer.toString('latin1', Math.max(0, buffer.length - endBytes)));
  if (!opening || !closing || (opening[1] === '[') !== (encoding === 'float')) return undefined;
  const last = buffer.lastIndexOf('"index"');
  const index = buffer
    .toString('latin1', last, last + 64)
    .matchAll(tail)
    .next().value?.[1];
  if (index !== String(inputs.length - 1)) return undefined;
  try {
    return { model: closing[1]!, usage: usageOf(JSON.parse(closing[2]!)) };
  } catch {
    return undefined;
  }
}

const isVector = (value: unknown): value is Vector => typeof value === 'string' || (Array.isArray(value) && value.every((one) => typeof one === 'number'));

function usageOf(value: unknown): Usage | undefined {
  const input = isObject(value) ? (value['prompt_tokens'] ?? value['total_tokens']) : undefined;
  return isCount(input) ? { input, output: 0, source: 'provider' } : undefined;
}

/** Without the cause: what JSON.parse says repeats a piece of the text. */
function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
  } catch {
    throw malformed();
  }
}

const malformed = () => new Fault('upstream-failed', 'The provider sent something that is not a list of embeddings.', { elsewhere: true });
